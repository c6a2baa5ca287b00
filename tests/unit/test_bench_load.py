"""The load measurement: the shape of the typing, what becomes of a question, figures, the search."""

import asyncio
import json
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from daemon.bench import load, loadtable, repo, rig, stats, survey, traces, typists, wire
from daemon.bench.crowd import Asked, Crowd, Ending, Side, play
from daemon.bench.outcome import Outcome

HOUR = 3600.0


def test_gaps_and_bursts_have_the_measured_shape() -> None:
    times = typists.edit_times(random.Random(1), 24 * HOUR)
    gaps = [b - a for a, b in pairwise(times)]
    for share, seconds in ((0.1, 0.021), (0.5, 0.113), (0.9, 0.581)):
        assert stats.percentile(gaps, share) == pytest.approx(seconds, rel=0.1)
    assert min(gaps) >= 1 / 59
    assert max(gaps) <= typists.LONGEST_S
    pause = typists.gap(1 - typists.PAUSES)
    ends = [n for n, gap in enumerate(gaps) if gap >= pause]
    bursts = [b - a for a, b in pairwise(ends)]
    assert stats.percentile(bursts, 0.5) == 3
    assert stats.percentile(bursts, 0.9) == pytest.approx(18, abs=1.5)


@pytest.fixture
def library(tmp_path: Path) -> list[typists.Document]:
    repo.generate(tmp_path / "made", 1500, 1, longest=typists.LINES)
    (tmp_path / "made/notes.txt").write_text("not a source file, whatever its size\n" * 90)
    return typists.documents(survey.copy(tmp_path / "made", tmp_path / "root"))


def test_streams_type_in_files_of_their_own_and_are_the_same_again(library: list[typists.Document]) -> None:
    assert len(library) >= 4
    assert all(typists.SMALLEST <= len(d.text.encode()) <= typists.LARGEST for d in library)
    assert all(d.path.read_text(encoding="utf-8") == d.text and d.path.suffix != ".txt" for d in library)
    streams = typists.streams(library, 4, 60, 1)
    assert len({stream.document.path for stream in streams}) == 4
    assert streams == typists.streams(library, 4, 60, 1)
    assert streams != typists.streams(library, 4, 60, 2)
    assert len({stream.times[:1] for stream in streams}) > 1
    for stream in streams:
        states = list(stream.states())
        assert len(states) == len(stream.times)
        assert all(0 <= state.cursor <= len(state.text) for state in states)
    many = typists.streams(library, 3 * len(library), 1, 1)
    assert all(stream.times for stream in many)
    assert len({stream.name for stream in many}) == 3 * len(library)


def test_snippets_are_of_the_library(library: list[typists.Document]) -> None:
    texts = "".join(document.text + "\n" for document in library)
    found = typists.snippets(library, random.Random(1))
    assert len(found) == typists.SNIPPETS
    assert all(snippet["text"] in texts for snippet in found)
    assert found != typists.snippets(library, random.Random(2))


ENGINE = {"idle": True, "cells_used": 70, "pages": {"host_bytes": 900}}


class Server:
    """Answers with what a question asks for: an answer after so many ms, a refusal, a failure."""

    def __init__(self) -> None:
        self.inside = self.most = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        status, body = "200 OK", {"resting": True, "engine": ENGINE}
        if head.startswith(b"POST"):
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            asked = json.loads(await reader.readexactly(length))
            self.inside += 1
            self.most = max(self.most, self.inside)
            left = asyncio.ensure_future(reader.read())
            await asyncio.wait({left}, timeout=asked["ms"] / 1000)
            left.cancel()
            self.inside -= 1
            status = asked.get("status", "200 OK")
            counters = {"prompt": 40, "evaluated": 3, "generated": 5}
            body = {"text": "x", "stop": asked.get("stop", "line"), "counters": counters}
        data = json.dumps(body).encode()
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        await writer.drain()


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[rig.Rig]:
    async with await asyncio.start_server(server.handle, "127.0.0.1", 0) as made:
        endpoint = wire.Endpoint("127.0.0.1", made.sockets[0].getsockname()[1])
        yield rig.Rig(endpoint, 0, {}, Path())


def stream(name: str, *times: float) -> typists.Stream:
    edits = tuple(traces.Edit(time, ((0, 0, "a"),)) for time in times)
    trace = traces.Trace(name, "", "", edits)
    return typists.Stream(name, typists.Document(Path(name), ""), times, trace)


async def test_what_becomes_of_a_question() -> None:
    asks = {
        "quick": {"ms": 1},
        "slow": {"ms": 60_000},
        "full": {"ms": 1, "status": "429 Too Many Requests"},
        "broken": {"ms": 1, "stop": "engine"},
    }

    def body(one: typists.Stream, state: traces.State) -> bytes:
        return json.dumps(asks[one.name]).encode()

    async with serving(Server()) as here:
        streams = [stream("quick", 0.0), stream("slow", 0.0, 0.2), stream("full", 0.1), stream("broken", 0.1)]
        found = await play(Side(here, body), streams, 1.0)
    assert [asked.ending for asked in found.asked] == [
        "answered",
        "cancelled",
        "waiting",
        "refused",
        "failed",
    ]
    quick, cancelled, waiting, refused, _ = found.asked
    assert quick.after is not None
    assert 0 < quick.after < quick.stood == 1000
    assert (quick.prompt, quick.evaluated, quick.tokens) == (40, 3, 45)
    assert (cancelled.stood, waiting.stood, refused.stood) == (200, 800, 900)
    assert (found.cells, found.paged) == (70, 900)
    assert found.request_cells == 45
    assert sum(found.count(ending) for ending in {a.ending for a in found.asked}) == 5


@pytest.mark.parametrize("alone", [True, False])
async def test_a_side_with_a_turn_asks_one_at_a_time(alone: bool) -> None:
    server = Server()
    async with serving(server) as here:
        side = Side(here, lambda *_: b'{"ms": 30}', asyncio.Lock() if alone else None)
        found = await play(side, [stream(f"s{n}", 0.0) for n in range(6)], 1.5)
    assert found.count("answered") == 6
    assert (server.most == 1) == alone


def asked(stood: float, after: float | None = None, ending: Ending = "cancelled", tokens: int = 0) -> Asked:
    if after is None:
        return Asked(stood, ending)
    return Asked(stood, "answered", after, tokens - 5, 3, tokens, after)


def test_figures_and_ratios() -> None:
    mine = Crowd(
        10, tuple(asked(5000, 100 + n, tokens=500) for n in range(100)), cells=8000, paged=20_000_000
    )
    its = Crowd(10, tuple(asked(5000, 1000 + 10 * n, tokens=2000) for n in range(20)), cells=2000)
    figures = loadtable.compared(mine, its, cell=10_000)
    assert (figures["p50_ms"], figures["p50_ms_naive"]) == (149, 1090)
    assert figures["p50_ratio"] == pytest.approx(1090 / 149)
    assert (figures["rate"], figures["rate_naive"], figures["rate_ratio"]) == (10, 2, 5)
    assert (figures["kv_mb"], figures["kv_mb_naive"], figures["kv_ratio"]) == (5, 20, 4)
    assert (figures["kv_held_mb"], figures["kv_held_ratio"]) == (100, 0.2)
    assert loadtable.bounds(50, mine, its) == []
    assert loadtable.served(mine)
    assert loadtable.served(its)
    both = mine + its
    assert (both.seconds, len(both.asked), both.cells, both.paged) == (20, 120, 8000, 20_000_000)


def test_what_the_naive_side_never_reaches_is_a_bound_and_what_we_do_not_reach_no_ratio() -> None:
    mine = Crowd(10, tuple(asked(5000, 100, tokens=500) for _ in range(20)), cells=1)
    never = Crowd(10, tuple(asked(1000.0 * n, ending="waiting") for n in range(1, 21)), cells=2000)
    figures = loadtable.compared(mine, never, cell=10_000)
    assert figures["p50_ms_naive"] == 16_000, "five of them waited for as long or longer"
    assert figures["p50_ratio"] == figures["p99_ratio"] == 160
    assert figures["rate_ratio"] == 20, "no answer counts as one"
    assert figures["kv_ratio"] == 4, "without an answer, the cells that were in use"
    assert len(loadtable.bounds(50, mine, never)) == 3
    cells = [list(column.cells) for column in loadtable.shown("x", figures, mine, never).columns]
    assert (cells[1][0], cells[2][0], cells[3][0]) == ("> 16000", "100", "≥ 160")
    assert not loadtable.served(never)
    assert math.isnan(loadtable.compared(never, mine, cell=1)["p50_ratio"])


def test_the_least_favourable_number_of_streams_stands_for_all() -> None:
    outcome = Outcome("load", 1)
    for name in ("p50_ratio", "p99_ratio", "rate_ratio", "kv_ratio", "kv_held_ratio"):
        outcome.figures |= {f"{name}_50": 9.0, f"{name}_100": 5.0}
    outcome.figures["p99_ratio_50"] = math.nan
    loadtable.conclude(outcome, (50, 100), {"": 12, "_naive": 0})
    assert outcome.figures["p50_ratio"] == outcome.figures["kv_ratio"] == 5
    assert math.isnan(outcome.figures["p99_ratio"])
    assert (outcome.figures["streams"], outcome.figures["streams_naive"]) == (12, 0)
    assert outcome.figures["streams_ratio"] == 12


@pytest.mark.parametrize(
    ("limit", "known", "first", "wanted", "tries"),
    [
        (13, {50: False, 100: False}, 4, range(10, 14), 6),
        (0, {50: False}, 1, range(1), 1),
        (3, {50: False}, 4, range(3, 4), 4),
        (60, {50: True, 100: False}, 4, range(50, 61), 2),
        (500, {50: True, 100: True}, 4, range(100, 101), 0),
    ],
)
async def test_the_most_streams_are_found_in_few_tries(
    limit: int, known: dict[int, bool], first: int, wanted: range, tries: int
) -> None:
    tried = []

    async def serves(count: int) -> bool:
        tried.append(count)
        return count <= limit

    assert await load.most(serves, known, first) in wanted
    assert len(tried) <= tries
