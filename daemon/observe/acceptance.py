"""What people make of the answers: shown, taken (whole, by line, by word), dismissed, typed over; and how
much of what was taken still stands later. Counts only, for this machine alone.

    answer → Offer ─ requests, changes of documents, what the client tells ─→ Fate → row of the ledger
                          taken → 30 s, 2 min, 5 min → how much of it stands → the row again

Clients that tell nothing are judged by the texts they send: an answer that the next text holds in its place
was taken, one that it contradicts was typed over. Who types letter by letter along an answer has typed it; of
a client that asks nothing meanwhile, that cannot be told from taking it. Where a client tells
what is taken, only that counts as taken. Nothing is followed in files on the deny list or left out.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from daemon.nouns import Completion, CompletionRequest
from daemon.observe.fates import TAKEN, Fate, Outcome
from daemon.observe.looks import Looks, keep
from daemon.observe.offers import Offer, offer, offered, secretive

Kind = Literal["accepted", "line", "word"]
AHEAD_S = 0.15
"""Nobody takes an answer so quickly: a request that holds it by then asks ahead, as llama.vim does."""
STALE_S = 600.0
"""An answer of which nothing was heard for so long was left."""
_CLIENTS = 64
_IDS = 512
_OUTCOMES: dict[Kind, Outcome] = {"accepted": "whole", "line": "line", "word": "word"}


class Rows(Protocol):
    """daemon.observe.ledger.Ledger as this room sees it."""

    def add(self, entry: Fate) -> None:
        """Write a row, in place of an older one of the same answer."""
        ...


class Acceptance:
    """Follows the newest answer of each client. For one event loop; nothing in it takes a millisecond.

    `text_of` gives the text of an open document by its path, or None; `left_out` tells whether the user or a
    project leaves a path out of everything; `clock` seconds since the epoch.
    """

    def __init__(
        self,
        rows: Rows,
        text_of: Callable[[str], str | None],
        *,
        on: bool = True,
        left_out: Callable[[str], object] = lambda path: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rows, self._text_of, self._on, self._clock = rows, text_of, on, clock
        self._left_out = left_out
        self._looks = Looks(text_of)
        self._open: OrderedDict[str, Offer] = OrderedDict()
        """Client → what it shows."""
        self._known: OrderedDict[str, tuple[Offer, int]] = OrderedDict()
        """Id of an answer → the offer that it is of, and where in it the answer begins."""
        self._telling: OrderedDict[str, None] = OrderedDict()
        """Clients that tell what is taken and what is not; some only tell what they show."""
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._looking: asyncio.Task[None] | None = None

    def asked(self, request: CompletionRequest) -> None:
        """A request came: its text says what became of the client's last answer."""
        if not self._on or request.warm or request.alternative:
            return
        found = self._open.get(request.client)
        if self._unkept(request):
            self._forget(request, found)
            return
        if found is not None and self._asks_ahead(found, request):
            return
        self._looks.see(request)
        if found is not None:
            self._follow(found, request)

    def answered(self, request: CompletionRequest, completion: Completion) -> None:
        """An answer goes out: from now on it is shown."""
        text = offered(request, completion) if self._on else ""
        if not text or self._unkept(request):
            return
        found, now = self._open.get(request.client), self._clock()
        if found is not None and request.alternative and found.here(request):
            found.add(completion.id, text)
            self._know(completion.id, found, found.done)
        elif found is not None and found.goes_on(request.id, text):
            found.text, found.heard = found.text[: found.done] + text, now
            self._know(completion.id, found, found.done)
        else:
            new = offer(request, completion, text, now)
            self._know(completion.id, new, 0)
            if found is not None and found.ahead == request.id:
                found.following = new
            elif not request.alternative:
                self._show(new)
        self._arm()

    def changed(self, path: str) -> None:
        """A document may have another text now."""
        for found in [one for one in self._open.values() if one.path == path]:
            text = self._text_of(path)
            if text is not None and (new := found.inserted(text)) is not None:
                self._grew(found, new, "")

    def shown(self, answer_id: str) -> bool:
        """The client shows an answer; False when its id is not known (any more)."""
        if (told := self._told(answer_id, judged=False)) is not None:
            self._write(told[0])
        return told is not None

    def accepted(
        self, answer_id: str, kind: Kind, characters: int | None = None, elapsed_ms: float | None = None
    ) -> bool:
        """The person took an answer, or `characters` (code points from its beginning) of it so far."""
        if (told := self._told(answer_id)) is None:
            return False
        found, start = told
        found.text = found.others.get(answer_id, found.text)
        outcome = _OUTCOMES[kind]
        count = found.end_of(outcome) if characters is None else found.told(start, characters)
        self._take(found, min(count, len(found.text)), outcome, elapsed_ms)
        return True

    def dismissed(self, answer_id: str, elapsed_ms: float | None = None) -> bool:
        """The person sent an answer away."""
        if (told := self._told(answer_id)) is None:
            return False
        self._decide(told[0], "dismissed", elapsed_ms)
        return True

    async def look(self) -> None:
        """Whatever is due by now: answers that were left, and texts that were taken some time ago."""
        now = self._clock()
        for stale in [one for one in self._open.values() if now - one.heard >= STALE_S]:
            self._decide(stale, "left")
        await self._looks.look(now, self._write)

    def close(self) -> None:
        """Write what is known of the answers that are still shown. Nothing is followed from then on."""
        self._on = False
        if self._timer is not None:
            self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()
        for found in list(self._open.values()):
            self._decide(found, "left")

    def _unkept(self, request: CompletionRequest) -> bool:
        """Whether nothing of a request's text may be kept."""
        return secretive(request) or bool(request.path and self._left_out(request.path))

    def _forget(self, request: CompletionRequest, found: Offer | None) -> None:
        if found is not None:
            self._decide(found, "left")
        path = request.path or ""
        self._looks.forget(request.client, path)
        for key in [key for key, (known, _) in self._known.items() if path and known.path == path]:
            del self._known[key]

    def _asks_ahead(self, found: Offer, request: CompletionRequest) -> bool:
        """Whether a request asks for what would follow an answer that nobody can have taken yet."""
        # A clock that was set back says nothing.
        ahead = 0.0 <= self._clock() - found.heard < AHEAD_S and found.asks_ahead(request)
        if ahead:
            found.ahead = request.id
        return ahead

    def _follow(self, found: Offer, request: CompletionRequest) -> None:
        new = found.grown(request.prefix)
        if new is not None:
            self._grew(found, new, request.id)
        elif found.stands(request.prefix, request.suffix):
            self._took(found, len(found.text), "whole")
        else:
            self._decide(found, "left")
        shown = self._open.get(request.client)
        if shown is not None and shown is found.following and not self._asks_ahead(shown, request):
            self._follow(shown, request)

    def _grew(self, found: Offer, new: str, request_id: str) -> None:
        """`new` stands in the place: it goes along the answer, past its end, or against it."""
        agreed = found.agreed(new)
        if not found.complete(agreed) and agreed < len(new):
            self._decide(found, "left" if found.passed(new) else "over")
            return
        if (outcome := found.step(agreed)) is not None:
            self._took(found, agreed, outcome)
        found.done, found.at = agreed, request_id

    def _took(self, found: Offer, characters: int, outcome: Outcome) -> None:
        """As the text says. Of a client that tells, it only says that the whole was typed."""
        if found.client not in self._telling:
            self._take(found, characters, outcome)
        elif outcome in ("whole", "typed"):
            self._take(found, characters, "typed")

    def _take(self, found: Offer, characters: int, outcome: Outcome, elapsed_ms: float | None = None) -> None:
        found.take(characters, outcome)
        if outcome in TAKEN:
            self._looks.begin(found, self._clock())
            self._arm()
        if outcome in ("whole", "typed") or found.over:
            self._decide(found, outcome, elapsed_ms)

    def _decide(self, found: Offer, outcome: Outcome, elapsed_ms: float | None = None) -> None:
        """An answer is shown no longer. What a client tells of one that was decided already counts too."""
        if self._open.get(found.client) is found:
            del self._open[found.client]
            if outcome in ("whole", "typed") and found.following is not None and self._on:
                found.following.born = found.following.heard = self._clock()
                self._show(found.following)
        after = found.fate.after_ms if found.over else max(0.0, self._clock() - found.born) * 1000
        found.take(found.done, outcome)
        found.over = True
        found.fate = msgspec.structs.replace(found.fate, after_ms=round(elapsed_ms or after, 1))
        self._write(found)

    def _write(self, found: Offer) -> None:
        """The row as it is known now; none before an answer is decided."""
        if found.over and found.outcome is not None:
            found.fate = msgspec.structs.replace(
                found.fate,
                outcome=found.outcome,
                characters=len(found.text),
                lines=found.text.rstrip("\n").count("\n") + 1,
                taken=found.taken,
            )
            self._rows.add(found.fate)

    def _show(self, new: Offer) -> None:
        """The newest answer of its client; the one before was left for it."""
        if (last := self._open.get(new.client)) is not None:
            self._decide(last, "left")
        if (lost := keep(self._open, new.client, new, _CLIENTS)) is not None:
            self._decide(lost, "left")

    def _know(self, answer_id: str, found: Offer, start: int) -> None:
        keep(self._known, answer_id, (found, start), _IDS)

    def _told(self, answer_id: str, *, judged: bool = True) -> tuple[Offer, int] | None:
        """The offer of an id that a client names: it is shown. With `judged` the client is one that tells."""
        if (told := self._known.get(answer_id)) is not None:
            if judged:
                keep(self._telling, told[0].client, None, _CLIENTS)
            told[0].fate = msgspec.structs.replace(told[0].fate, told=True)
        return told

    def _arm(self) -> None:
        """Look when something is due."""
        dues = [one.heard + STALE_S for one in self._open.values()]
        first = min([*dues, *([self._looks.due] if self._looks.due is not None else [])], default=None)
        if first is None or not self._on or (self._timer is not None and self._due <= first):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = first
        seconds = max(1.0, first - self._clock())
        self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._looking = asyncio.get_running_loop().create_task(self.look(), name="acceptance")
        self._looking.add_done_callback(lambda _: self._arm())
