"""What clients ask for in numbers and stops: clamped to what is possible, refused by name when no number.

`None` is as good as absent everywhere, and a negative count means "as you like", as it does to llama-server
and Ollama.
"""

from __future__ import annotations

from daemon.doors.answers import MAX_MS, MAX_TOKENS
from daemon.doors.house import House
from daemon.doors.wire import within
from daemon.errors import BadRequest
from daemon.nouns import Limits, Lines, Sampling

MAX_STOPS = 64
Number = int | float
Stops = tuple[str | None, ...] | str | None
"""One stop string or several."""


def limits(
    house: House,
    tokens: Number | None,
    stop: Stops = None,
    *,
    field: str = "max_tokens",
    lines: Lines | None = None,
    after_line: Number | None = None,
    indent: Number | None = None,
) -> Limits:
    """Limits of a request; `field` is what its dialect calls `tokens`. Raises BadRequest.

    `after_line`, in milliseconds, counts only once a line is complete, so it never shortens the first one.
    """
    defaults = house.settings.complete
    count = defaults.max_tokens if tokens is None or tokens < 0 else tokens
    within(field, count, 0, 2**31)
    stops = (stop,) if isinstance(stop, str) else stop or ()
    if len(stops) > MAX_STOPS:
        raise BadRequest(f"`stop` holds more than {MAX_STOPS} strings")
    return Limits(
        lines=lines or defaults.lines,
        tokens=max(1, min(int(count), MAX_TOKENS)),
        milliseconds=min(max(int(after_line or 0), defaults.time_ms), MAX_MS),
        milliseconds_after_line=None if after_line is None else min(int(after_line), MAX_MS),
        stop=tuple(s for s in stops if s),
        indent=None if indent is None else int(indent),
    )


def sampling(
    house: House,
    temperature: Number | None,
    top_p: Number | None,
    top_k: Number | None = None,
    seed: Number | None = None,
) -> Sampling:
    """Sampling of a request. Raises BadRequest."""
    defaults = house.settings.complete
    temperature = defaults.temperature if temperature is None else temperature
    top_p = defaults.top_p if top_p is None else top_p
    top_k = Sampling().top_k if top_k is None else top_k
    seed = seed or 0
    within("temperature", temperature, -(2**31), 2**31)
    within("top_p", top_p, -(2**31), 2**31)
    within("top_k", top_k, -(2**31), 2**31)
    within("seed", seed, -(2**63), 2**64)
    return Sampling(
        temperature=min(max(float(temperature), 0.0), 5.0),
        top_p=min(max(float(top_p), 0.0), 1.0),
        top_k=max(int(top_k), 0),
        seed=int(seed) & 0xFFFFFFFF if seed > 0 else 0,
    )
