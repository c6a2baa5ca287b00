"""What is counted while typing, and what acceptance reads from it."""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from daemon.bench import epochs, keystrokes, ours, realtime, traces, wire
from daemon.bench.keystrokes import Pair
from daemon.bench.outcome import Outcome
from daemon.bench.realtime import Beat, Heard
from daemon.errors import EngineFailed


def answer(
    first: float, last: float, *, evaluated: int = 2, stop: str = "limit", text: str = "x"
) -> ours.Answer:
    return ours.Answer(text, first, last, prompt=400, evaluated=evaluated, generated=12, stop=stop)


def pairs() -> list[Pair]:
    return [Pair(n > 0, answer(10, 100), answer(100, 250, evaluated=200)) for n in range(10)]


def test_ratios_are_peer_over_ours() -> None:
    figures = keystrokes.figures_of(pairs())
    assert figures["ttft_ratio_p50"] == 10
    assert figures["ttft_ratio_p90"] == 10
    assert figures["t12_ratio_p50"] == figures["t12_ratio_p99"] == 2.5
    assert figures["evaluated_p50"] == 2
    assert figures["evaluated_p50_peer"] == 200
    assert figures["reused_share"] == pytest.approx(398 / 400)
    assert figures["ttft_ms_p50"] == 10
    assert figures["full_reevaluations"] == 0


def test_an_answer_that_ended_early_is_no_twelfth_token() -> None:
    early = [*pairs(), Pair(True, answer(1, 1, stop="eos"), answer(100, 250)), Pair(True, answer(9, 9), None)]
    figures = keystrokes.figures_of(early)
    assert figures["t12_pairs"] == 10
    assert figures["t12_ratio_p50"] == 2.5


def test_without_a_peer_there_are_no_ratios() -> None:
    figures = keystrokes.figures_of([Pair(True, answer(10, 100))])
    assert "ttft_ratio_p50" not in figures
    assert keystrokes.shown("alone", figures).row_count == len(keystrokes.ROWS) + 1


def test_only_typing_that_evaluates_half_the_prompt_is_a_reevaluation() -> None:
    found = [
        Pair(False, answer(1, 1, evaluated=400)),
        Pair(True, answer(1, 1, evaluated=200)),
        Pair(True, answer(1, 1, evaluated=201)),
        Pair(True, ours.Answer("x", 1, 1, prompt=20, evaluated=20, stop="limit")),
    ]
    assert keystrokes.reevaluations(found) == [2]


def test_the_table_shows_both_sides_and_the_ratio() -> None:
    shown = keystrokes.shown("both", keystrokes.figures_of(pairs()))
    assert [str(column.header) for column in shown.columns][1:] == ["foretype", "peer", "ratio"]
    assert list(shown.columns[3].cells)[3] == "10 / 10 / 10"


def told(epoch: int, head: str, *shown: str, evaluated: int = 2) -> ours.Answer:
    context = tuple((source, 10) for source in shown)
    return ours.Answer(
        "x", 1, 1, prompt=100, evaluated=evaluated, epoch=epoch, head=head,
        ahead=10 * len(shown), stable=10 * len(shown), shown=context,
    )  # fmt: skip


def test_a_head_may_grow_and_another_epoch_may_have_another() -> None:
    answers = [
        told(0, ""),
        told(1, "h", "a"),
        told(1, "h", "a"),
        told(1, "i", "a", "b", evaluated=85),
        told(2, "j", "b"),
    ]
    figures = epochs.stable_figures(answers)
    assert figures["with_context_share"] == 0.8
    assert figures["epochs"] == 2
    assert figures["edits_per_epoch"] == 2
    assert figures["heads"] == 3
    assert figures["stable_reevaluated"] == 1


@pytest.mark.parametrize(
    "later", [told(1, "i", "a", "b"), told(1, "h", "a"), told(1, "h", "b", "a"), told(1, "i", "c", "a", "b")]
)
def test_a_head_that_changes_inside_an_epoch_is_an_error(later: ours.Answer) -> None:
    with pytest.raises(EngineFailed, match="the head of epoch 1 changed"):
        epochs.stable_figures([told(1, "h", "a", "b"), later])


def test_realtime_shares() -> None:
    heard = [
        Heard(0.1, after=50, text="abc", right=3),
        Heard(0.1),
        Heard(0.5, after=400, text="  ", right=2),
        Heard(4.0),
    ]
    figures = realtime.figures_of(heard)
    assert figures["answered_before_next"] == 0.5
    assert figures["pauses_answered"] == 0.5
    assert figures["chars_right_per_edit"] == 5 / 4
    assert figures["shown_before_next"] == 0.25
    assert set(realtime.figures_of(heard, "_peer")) == {f"{name}_peer" for name in figures}


def trace() -> traces.Trace:
    patches = [(0, 0, "r"), (1, 0, "e"), (2, 0, "t"), (3, 0, "\n"), (4, 0, "x")]
    times = [0.0, 0.05, 0.1, 30.0, 30.4]
    edits = tuple(traces.Edit(at, (patch,)) for at, patch in zip(times, patches, strict=True))
    return traces.Trace("small", "", "ret\nx", edits)


def test_beats_cut_pauses_and_know_what_follows() -> None:
    found = realtime.beats(trace(), 0, 5)
    assert [beat.gap for beat in found] == pytest.approx([0.05, 0.05, 4.0, 0.4, 4.0])
    assert [beat.at for beat in found] == pytest.approx([0.0, 0.05, 0.1, 4.1, 4.5])
    assert [beat.follows for beat in found] == ["et\nx", "t\nx", "\nx", "x", ""]
    mine, its = json.loads(found[1].mine), json.loads(found[1].its)
    assert (mine["prefix"], mine["lines"], mine["max_tokens"]) == ("re", "line", 32)
    assert (its["prompt"], its["stop"], its["n_predict"]) == ("re", ["\n"], 32)


@asynccontextmanager
async def slow_after(quick: int) -> AsyncIterator[tuple[wire.Endpoint, list[str], asyncio.Event]]:
    """A server that answers `quick` requests at once and leaves later ones without an answer."""
    log: list[str] = []
    both_left = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        log.append("asked")
        if len(log) <= quick:
            body = b'{"content":"et","stop_type":"word","timings":{"prompt_n":1}}'
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
        else:
            await reader.read()
            log.append("left")
            if log.count("left") == 2:
                both_left.set()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield wire.Endpoint("127.0.0.1", server.sockets[0].getsockname()[1]), log, both_left


async def test_play_leaves_what_was_not_answered_before_the_next_edit() -> None:
    score = [Beat(at, gap, "et\n", b"", b"{}") for at, gap in ((0.0, 0.2), (0.2, 0.05), (0.25, 0.05))]
    seen: list[tuple[int, int]] = []
    async with slow_after(1) as (endpoint, log, both_left):
        sent = [beat.its for beat in score]
        heard, failures = await realtime.play(
            score, sent, endpoint, ours.ask_peer_whole, lambda done, total: seen.append((done, total))
        )
        async with asyncio.timeout(5):
            await both_left.wait()
    assert failures == 0
    assert [entry.after is not None for entry in heard] == [True, False, False]
    assert heard[0].right == 2
    assert log.index("left") < len(log) - 1  # the second was left before the third was over
    assert seen[-1] == (3, 3)


async def test_play_counts_failures_as_not_answered() -> None:
    async with slow_after(0) as (endpoint, _, _):
        pass
    heard, failures = await realtime.play(
        [Beat(0.0, 0.2, "", b"", b"")], [b"{}"], endpoint, ours.ask_peer_whole, lambda done, total: None
    )
    assert (heard, failures) == ([Heard(0.2)], 1)


def test_answers_of_both_sides_are_read() -> None:
    event = {
        "text": "ab",
        "stop": "line",
        "raw": "ab ",
        "counters": {"prompt": 10, "evaluated": 3, "generated": 4},
        "timings": {"total": 7.5},
        "margins": [1.0, 2.0],
    }
    mine = ours.ours_answer(event, "ab", 1.0, 2.0)
    assert (mine.prompt, mine.evaluated, mine.reused, mine.engine_ms) == (10, 3, 7, 7.5)
    assert mine.margins == (1.0, 2.0)
    assert mine.whole
    event = {"timings": {"prompt_n": 3, "cache_n": 7, "predicted_n": 12}, "stop_type": "limit"}
    its = ours.peer_answer(event, "ab", 1.0, 2.0)
    assert (its.prompt, its.evaluated, its.reused, its.generated) == (10, 3, 7, 12)
    assert its.full


def test_an_outcome_is_one_flat_object() -> None:
    outcome = Outcome("typing", 3, {"a": 1.5, "b": math.nan}, model={"name": "m"}, profile={"threads": 2})
    data = json.loads(outcome.json())
    assert {"name", "model", "machine", "profile", "seed", "figures"} <= set(data)
    assert data["figures"] == {"a": 1.5}
    assert any("b" in note for note in data["notes"])
    assert data["machine"]["threads"] >= 1
