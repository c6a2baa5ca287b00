"""Where a text ends that the editor has closed already: earlier, and with nothing less to show."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.house import standing
from support.typed import Typing

from daemon.engine.closing import closed_at
from daemon.engine.stops import Stops
from daemon.nouns import Completion, CompletionRequest, Generation, Limits, Lines
from daemon.polish.ahead import closer_ahead
from daemon.polish.brackets import scan
from daemon.polish.emit import Emitter

ASKED = CompletionRequest(id="1", client="c", door="d", prefix="", replaces=False)


def asked(document: str, lines: Lines = "line") -> CompletionRequest:
    prefix, _, suffix = document.partition("‸")
    return msgspec.structs.replace(ASKED, prefix=prefix, suffix=suffix, limits=Limits(lines=lines))


def generated(request: CompletionRequest, raw: str, closes: str) -> tuple[Generation, int]:
    """What the engine makes of a model's text, and how much of it had to be generated."""
    line = request.prefix[request.prefix.rfind("\n") + 1 :]
    stops = Stops(request.limits, line, request.suffix, (), closes)
    taken = 0
    for taken, character in enumerate(raw, 1):  # noqa: B007 - counted
        stops.feed(character.encode("utf-8", "surrogatepass"))
        if stops.reason:
            break
    stops.finish()
    return Generation(text=stops.text, stop=stops.reason or "eos"), taken


def shown(request: CompletionRequest, raw: str, closes: str) -> tuple[Completion, int]:
    generation, taken = generated(request, raw, closes)
    return Emitter(request, request.replaces).finish(generation), taken


CASES = [
    # document, what the model says, what is generated of it
    ("total = sum(‸)", "prices) + tax\n", "prices"),
    ("total = sum(‸)", "p for p in (a, b))\n", "p for p in (a, b)"),
    ("call(first, ‸);", "second);\n", "second"),
    ("x = items[‸]", "0]\n", "0"),
    ("let p = { a: ‸ }", "f({ b: 1 }) }\n", "f({ b: 1 }) "),
    ('x = ["a‸"]', '", "b"]\n', '", "b"]'),  # between quotes more than one string may go
    ("f('‸')", "a b')\n", "a b')"),
    ("f(‸)", '")")\n', '")"'),
    ("f(‸)", "don't)\n", "don't)"),  # an apostrophe, or a string that goes on?
    ("f(‸)", "a  # see b)\n", "a  # see b)"),
    ("f(‸)", "a,\n  b)\n", "a,"),
    ("outer(inner(‸)", "a) + b)\n", "a) + b)"),  # one is missing: the text may close it
    ("outer(inner(‸))", "a) + b)\n", "a"),
    ("f(‸, b)", "a)\n", "a)"),  # what follows is no bracket
    ("f(‸", "a)\n", "a)"),
    ("f(‸)", "a]\n", "a]"),  # another bracket than the one behind the cursor
    ("f(‸)", ")\n", ""),
    ('    """‸"""', 'Say (x) once."""\n', 'Say (x) once."""'),
]


@pytest.mark.parametrize(("document", "raw", "text"), CASES)
def test_a_closer_behind_the_cursor_ends_the_text(document: str, raw: str, text: str) -> None:
    request = asked(document)
    generation, _ = generated(request, raw, closer_ahead(request))
    assert generation.text == text
    ended = raw[len(text) : len(text) + 1] != "\n"
    assert generation.stop == ("closed" if ended else "line")


@pytest.mark.parametrize("document", [case[0] for case in CASES])
def test_who_can_replace_or_wants_all_is_told_nothing(document: str) -> None:
    request = asked(document)
    assert not closer_ahead(msgspec.structs.replace(request, replaces=True))
    assert not closer_ahead(msgspec.structs.replace(request, limits=Limits(lines="free")))


PARTS = (
    *("a", "b.c", "f", " ", ", ", "=", ";", "\n", "\n    ", "'", '"', "`", "\\", "don't", "é"),
    *('"""', '""', "\\'"),
    *("(", ")", "[", "]", "{", "}", "()", "a(b)", "[0]", '")"', "'('", "f(x)\n", ");\n", "})\n", "# :)\n"),
)
code = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)
rests = st.sampled_from((")", "]", "}", '"', "'", "`", "))", ");", ") {", "),", '")', " )", "}\n", ")\n}\n"))


@settings(max_examples=300, deadline=None)
@given(code, rests, code, code, st.sampled_from(("line", "auto", "block")))
@example("f(", ")", "", "a) + b)\n", "line")
def test_nothing_that_would_be_shown_is_cut(
    before: str, rest: str, after: str, raw: str, lines: Lines
) -> None:
    request = asked(f"{before}‸{rest}{after}", lines)
    full, all_of_it = shown(request, raw, "")
    early, taken = shown(request, raw, closer_ahead(request))
    assert taken <= all_of_it
    if not early.text.startswith(full.text):  # all of it held a closer that nothing before the cursor lacks
        assert scan(full.text).closers
        assert full.text.startswith(early.text)


@given(code, st.sampled_from(")]}"))
def test_it_is_the_closer_that_polish_finds(text: str, closer: str) -> None:
    at = closed_at(text, closer)
    if at >= 0:
        assert scan(text).closers[0] == (at, closer)
        for more in ("'", '"', "`", ")", "\n"):
            assert scan(text + more).closers[0] == (at, closer)


async def test_who_can_replace_shares_no_run_that_ends_at_a_closer(tmp_path: Path) -> None:
    typing = Typing(tmp_path, lines=("f(a) + b",))
    typing.engine.hold()
    ask: dict[str, Any] = {"suffix": ")\n"}
    inserts, other = (typing.ask("f(", who, replaces=False, **ask) for who in ("me", "you"))
    replaces = typing.ask("f(", "they", **ask)
    tasks = [asyncio.create_task(typing.pipeline.complete(one)) for one in (inserts, other, replaces)]
    await typing.engine.until(lambda: len(typing.engine.jobs) == 2)
    assert [job.closes for job in typing.engine.jobs] == [")", ""]
    assert typing.joined("same") == 1
    typing.engine.go_on()
    done = await asyncio.gather(*tasks)
    assert [one.text for one in done] == ["a", "a", "a) + b"]
    await typing.pipeline.close()


async def test_a_replay_ends_where_the_answer_did() -> None:
    async with standing("a") as house:
        body = {"prefix": "f(", "suffix": ")\n", "path": "a.py", "replaces": False}
        name = (await house.ask("POST", "/v1/complete", body)).json["id"]
        assert (await house.ask("POST", f"/v1/ledger/{name}/replay", {})).json["same"]
        first, second = house.engine.jobs
        assert first.closes == second.closes == ")"
