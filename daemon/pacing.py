"""How long a request waits for the next key before anything is worked on for it: mostly not at all.

It waits where three things come together: the client's last answers came too late for the person, who typed
on; an answer takes longer on this machine than the next key; and that key will come soon enough to be waited
for. A newer request of the client ends the wait, and the older one has cost nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from daemon.machine import EngineProfile
from daemon.nouns import CompletionRequest

_ANSWER = 8
"""Tokens of a common answer."""
_PAUSE_S = 0.6
"""A longer gap is a pause: who comes back from one is not kept waiting."""
_MOST = 0.75
_REACH = 1.1
"""So many of the last gaps, and a little more, are waited. Replayed on a recorded session this spares 5 % of
the runs for 1 to 3 % of the answers; half of the gaps 15 % for 5 to 12 %."""
_LEAST_S = 0.005
_KNOWN = 3
"""Gaps and answers that must be known of a client."""
_GAPS, _LAST, _CLIENTS, _SHOWN = 8, 6, 256, 4
_NEAR = 200
Later = Callable[[float, Callable[[], None]], object]


def _later(seconds: float, action: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, action)


class Pace:
    """One question on its way, however often it is asked at the same time."""

    def __init__(self, asked: CompletionRequest, begun: float) -> None:
        self.begun = begun
        self.answered = False
        """Set by whoever answers it."""
        self.late = False
        """A newer question of the client came while it waited: nothing is to be done for it."""
        self.woken = asyncio.Event()
        self._text = _text(asked)

    def asks(self, request: CompletionRequest) -> bool:
        """Whether a request is this question again, or wants a further answer to it."""
        return self._text == _text(request)


@dataclass(slots=True)
class _Client:
    gaps: deque[float] = field(default_factory=lambda: deque(maxlen=_GAPS))
    """Seconds between its last questions, pauses left out."""
    in_time: deque[bool] = field(default_factory=lambda: deque(maxlen=_LAST))
    """Whether its last questions were answered before the next."""
    last: Pace | None = None
    waiting: Pace | None = None
    wait_s: float = 0.0
    why: str = ""


class Pacing:
    """Of all clients of one event loop."""

    def __init__(
        self, most_ms: int, clock: Callable[[], float] = time.monotonic, later: Later = _later
    ) -> None:
        """`most_ms`: the longest wait; 0: none. `later` calls something after so many seconds."""
        self._most_s = most_ms / 1000.0
        self._clock = clock
        self._later = later
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        self._waits = self._spared = 0
        self._waited_s = 0.0

    async def turn(self, request: CompletionRequest, profile: EngineProfile | None) -> Pace:
        """Returns at the end of the request's wait. The caller looks at `late`, and sets `answered`."""
        pace = self._arrived(request, profile)
        if not pace.woken.is_set():
            await pace.woken.wait()
        return pace

    def known(self, request: CompletionRequest, profile: EngineProfile | None) -> None:
        """A request whose answer is known, and waits for nothing."""
        pace = self._arrived(request, profile, known=True)
        pace.answered = True

    def facts(self) -> dict[str, Any]:
        """For status: what was waited, what that spared, and why the newest clients wait or do not."""
        newest = list(self._clients.items())[-_SHOWN:]
        return {
            "waits": self._waits,
            "waited_ms": round(self._waited_s * 1000.0, 1),
            "spared": self._spared,
            "clients": {
                name: {"wait_ms": round(client.wait_s * 1000.0, 1), "why": client.why}
                for name, client in newest
            },
        }

    def _arrived(
        self, request: CompletionRequest, profile: EngineProfile | None, known: bool = False
    ) -> Pace:
        client, now = self._client(request.client), self._clock()
        pace = client.last
        if request.warm or (request.alternative and (pace is None or not pace.asks(request))):
            other = Pace(request, now)  # no key was pressed for it
            other.woken.set()
            return other
        if pace is not None and pace.asks(request) and now - pace.begun < _PAUSE_S:
            if request.manual:
                self._go(client, pace)
            return pace
        gap = now - pace.begun if pace is not None else _PAUSE_S
        if pace is not None and gap < _PAUSE_S:
            client.gaps.append(gap)
            client.in_time.append(pace.answered)
        if client.waiting is not None:
            client.waiting.late = True
            self._spared += 1
            self._go(client, client.waiting)
        client.last = pace = Pace(request, now)
        judged = (0.0, "its answer was known") if known else self._judged(client, request, profile, gap)
        client.wait_s, client.why = judged
        self._begin(client, pace)
        return pace

    def _begin(self, client: _Client, pace: Pace) -> None:
        if not client.wait_s:
            pace.woken.set()
            return
        client.waiting = pace
        self._waits += 1
        self._later(client.wait_s, lambda: self._go(client, pace))

    def _go(self, client: _Client, pace: Pace) -> None:
        """It waits no longer."""
        if client.waiting is pace:
            client.waiting = None
            self._waited_s += self._clock() - pace.begun
        pace.woken.set()

    def _judged(
        self, client: _Client, request: CompletionRequest, profile: EngineProfile | None, gap: float
    ) -> tuple[float, str]:
        """Seconds, and why in words."""
        if _exempt(request):
            return 0.0, "asked for by hand, or measured"
        if not self._most_s or profile is None:
            return 0.0, "complete.debounce_ms is 0" if profile is not None else "no model is loaded"
        if min(len(client.gaps), len(client.in_time)) < _KNOWN:
            return 0.0, "too little is known of its typing"
        if gap >= _PAUSE_S:
            return 0.0, "after a pause"
        late = client.in_time.count(False)
        if late * 2 <= len(client.in_time):
            return 0.0, "its answers come before its next request"
        gaps = sorted(client.gaps)
        usual, answer = gaps[len(gaps) // 2], _answer_s(profile)
        if answer <= usual:
            return 0.0, f"an answer takes {answer * 1000:.0f} ms here, a key {usual * 1000:.0f} ms"
        wait = gaps[int(_MOST * len(gaps))] * _REACH
        if not _LEAST_S <= wait <= self._most_s:
            return 0.0, f"a key takes {usual * 1000:.0f} ms: nothing is gained by waiting"
        why = f"a key takes {usual * 1000:.0f} ms, and {late} of {len(client.in_time)} answers came too late"
        return wait, why

    def _client(self, name: str) -> _Client:
        client = self._clients.setdefault(name, _Client())
        self._clients.move_to_end(name)
        if len(self._clients) > _CLIENTS:
            self._clients.popitem(last=False)
        return client


def _text(request: CompletionRequest) -> tuple[int, int, str, str]:
    """What tells one moment's texts of a client apart, without holding them."""
    before, after = request.prefix, request.suffix
    return len(before), len(after), before[-_NEAR:], after[:_NEAR]


def _exempt(request: CompletionRequest) -> bool:
    """Nobody types here, or somebody said when the answer must be there."""
    measured = not request.cache or request.margins or request.anchor_lines is not None
    return request.manual or measured or request.context == "now" or request.limits.deadline is not None


def _answer_s(profile: EngineProfile) -> float:
    """What a common answer takes when its prompt is evaluated; 0 where nothing was measured."""
    _, ms = min(profile.verify, default=(0, 0.0))
    return _ANSWER * ms / 1000.0
