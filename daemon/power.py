"""What is spared on battery, and when the model leaves memory. Nothing here sleeps or starts anything."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import msgspec

from daemon import settings
from daemon.nouns import Allowance, CompletionRequest, Noun
from daemon.ranges import least
from indexer.battery import on_battery

_LOOK_S = 10.0


class Power(Noun, frozen=True):
    """What may be spent now."""

    battery: bool = False
    prefetch: bool = True
    """Answers may be generated before they are asked for."""
    warm: bool = True
    """Prompts may be evaluated before they are asked for."""
    share: float = 1.0
    """Of the window that the settings allow."""
    why: str = "on the mains, or no battery is known"


class Policy:
    """Looks at the battery at most every 10 s."""

    def __init__(
        self,
        chosen: settings.Power,
        clock: Callable[[], float] = time.monotonic,
        battery_now: Callable[[], bool] = on_battery,
    ) -> None:
        self._chosen = chosen
        self._clock = clock
        self._battery_now = battery_now
        self._looked = -math.inf
        self._now = Power()

    @property
    def now(self) -> Power:
        """As it is, at most 10 s ago."""
        if (now := self._clock()) - self._looked >= _LOOK_S:
            self._looked, self._now = now, self._judged(self._battery_now())
        return self._now

    def _judged(self, battery: bool) -> Power:
        if not battery:
            return Power()
        if self._chosen.battery == "same":
            return Power(battery=True, why="on battery; power.battery is same: nothing is spared")
        share = self._chosen.window_percent / 100
        why = f"on battery: {share:.0%} of the window, nothing is evaluated or generated ahead"
        return Power(battery=True, prefetch=False, warm=False, share=share, why=why)


def fitted(request: CompletionRequest, power: Power, context: settings.Context) -> CompletionRequest:
    """The request with as much of the window as may be spent."""
    if power.share >= 1.0:
        return request
    allowed = request.allowance
    return msgspec.structs.replace(
        request,
        allowance=Allowance(
            prefix=_part(context.prefix_tokens, power, allowed.prefix),
            suffix=_part(context.suffix_tokens, power, allowed.suffix),
            middle=allowed.middle,
            extras=_part(context.extra_tokens, power, allowed.extras),
        ),
    )


def _part(tokens: int, power: Power, allowed: int | None) -> int:
    return least(int(tokens * power.share), allowed)


class Unused:
    """How long nothing was asked, and when that is long enough to unload the model."""

    def __init__(self, minutes: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`minutes` 0: never."""
        self._most = minutes * 60.0 or math.inf
        self._clock = clock
        self._last = clock()
        self.why = f"idle: nothing was asked for {minutes:g} min"

    def used(self) -> None:
        """Something was asked, opened or looked at."""
        self._last = self._clock()

    @property
    def idle_s(self) -> float:
        """Seconds since then."""
        return self._clock() - self._last

    @property
    def left_s(self) -> float:
        """Seconds until the model may go; not positive: now, infinite: never."""
        return self._most - self.idle_s


def facts(power: Power, unused: Unused) -> dict[str, Any]:
    """For status. `unload_in_s`: None when the model stays."""
    left = unused.left_s
    return {
        **msgspec.to_builtins(power),
        "idle_s": round(unused.idle_s, 1),
        "unload_in_s": round(max(left, 0.0), 1) if left < math.inf else None,
    }
