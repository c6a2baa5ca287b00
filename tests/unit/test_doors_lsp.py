"""The language server over a real house: what an editor is answered, and what the daemon is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.house import Standing, standing
from support.lsp import Editor, edit, editor, place
from support.waiting import until

from daemon import roots
from daemon.settings import Index, Server

URI = "file:///work/a.py"
TEXT = "def total(order):\n    return \n"
CODEC = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with TemporaryDirectory(prefix="ft") as folder:
        monkeypatch.setenv("FORETYPE_HOME", folder)
        yield Path(folder)


def text_of(house: Standing, path: str = "/work/a.py") -> str | None:
    return next((document.text for document in house.mirror.documents() if document.path == path), None)


async def test_ghost_text_is_what_the_native_door_says_there() -> None:
    async with standing("sum(order)", found=True) as house, editor() as one:
        able = await one.initialize()
        assert able["inlineCompletionProvider"] == {}
        assert "completionProvider" not in able
        assert able["textDocumentSync"] == {"openClose": True, "change": 2, "save": {"includeText": True}}
        one.open(URI, TEXT)
        (item,) = await one.ghost(URI, 1, 11)
        body = {"text": TEXT, "cursor": {"line": 1, "character": 11}, "path": "/work/a.py"}
        native = (await house.ask("POST", "/v1/complete", body)).json
        assert item["insertText"] == native["text"] == "sum(order)"
        here = {"line": 1, "character": 11}
        assert item["range"] == {"start": here, "end": here}
        assert item["command"]["command"] == "foretype.didAcceptCompletion"
        asked = house.pipeline.requests[0]
        assert (asked.whole, asked.path, asked.language) == (True, "/work/a.py", "python")
        assert asked.client.startswith("lsp:test:")


async def test_editors_without_ghost_text_get_a_list() -> None:
    async with standing("der.price", found=True), editor() as one:
        able = await one.initialize({"textDocument": {}})
        assert able["completionProvider"]["triggerCharacters"]
        one.open(URI, "x = 你 + or\n")
        found = await one.ask("textDocument/completion", place(URI, 0, 10))
        assert found["isIncomplete"] is True
        (item,) = found["items"]
        span = edit((0, 8), (0, 10), "")["range"]
        assert item["textEdit"] == {"range": span, "newText": "order.price"}
        assert item["filterText"] == item["label"] == "order.price"
        assert item["sortText"] < "0"
        assert item["insertTextMode"] == 1
        assert (await one.ask("textDocument/completion", place(URI, 7, 0)))["items"] == []


@pytest.mark.parametrize("encoding", list(CODEC))
async def test_positions_are_counted_as_agreed(encoding: str) -> None:
    async with standing("b", found=True) as house, editor() as one:
        able = await one.initialize({"general": {"positionEncodings": [encoding, "utf-16"]}})
        assert able["positionEncoding"] == encoding
        line = "s = '😀é你' + "
        one.open(URI, f"\ufeff\r\n{line}\r\n")
        width = len("x".encode(CODEC[encoding]))
        at = len(line.encode(CODEC[encoding])) // width
        one.change(URI, 2, edit((1, at), (1, at), "a"))
        (item,) = await one.ghost(URI, 1, at + 1)
        assert item["range"]["end"] == {"line": 1, "character": at + 1}
        assert house.pipeline.requests[-1].prefix == f"\n{line}a"
        assert text_of(house) == f"\n{line}a\n"
        assert one.messages() == []


async def test_a_selected_item_is_gone_on_from() -> None:
    async with standing("_of(order)", found=True) as house, editor() as one:
        await one.initialize()
        one.open(URI, "x = tot\n")
        span = edit((0, 4), (0, 7), "")["range"]
        (item,) = await one.ghost(URI, 0, 7, selectedCompletionInfo={"range": span, "text": "total"})
        assert item["insertText"] == "total_of(order)"
        assert item["range"] == span
        asked = house.pipeline.requests[-1]
        assert (asked.prefix, asked.suffix, asked.whole) == ("x = total", "\n", False)
        name, *_ = item["command"]["arguments"]
        command = {
            "command": "foretype.didPartiallyAcceptCompletion",
            "arguments": [name, len("total_of(or")],
        }
        await one.ask("workspace/executeCommand", command)
        assert house.metrics.snapshot()["counters"]["feedback"] == {"word": 1}


async def test_a_cancelled_request_ends_its_work() -> None:
    async with standing("one two three four five six", found=True) as house, editor() as one:
        await one.initialize()
        one.open(URI, TEXT)
        house.engine.hold_after = 2
        number, future = one.begin(
            "textDocument/inlineCompletion", place(URI, 1, 11) | {"context": {"triggerKind": 2}}
        )
        await until(lambda: house.engine.held)
        one.tell("$/cancelRequest", {"id": number})
        assert (await future)["error"]["code"] == -32800
        house.engine.go_on()
        await until(lambda: "cancelled" in house.engine.ends.values())
        assert house.engine.late == 0


async def test_what_the_engine_says_of_failures_and_load_is_told_once() -> None:
    async with standing(found=True, loaded=False) as house, editor() as one:
        await one.initialize()
        one.open(URI, TEXT)
        assert await one.ghost(URI, 1, 11) == []
        assert one.messages() == []
        house.engine.loaded = True
        house.pipeline.refuse = True
        assert await one.ghost(URI, 1, 11) == await one.ghost(URI, 1, 11) == []
        assert len(one.messages()) == 1
        assert "/home/somebody" not in one.messages()[0]


async def test_a_busy_daemon_is_told_once_and_left_alone() -> None:
    full = Server(port=0, max_concurrent=1, high_mark=2, low_mark=1)
    async with standing("a b c d", found=True, server=full) as house, editor() as one:
        await one.initialize()
        one.open(URI, TEXT)
        await until(lambda: text_of(house) == TEXT)
        house.engine.hold()
        body = {"text": "x = ", "cursor": {"offset": 4}}
        other = asyncio.create_task(house.ask("POST", "/v1/complete", body))
        await until(lambda: house.traffic.waiting == 1)
        began = time.monotonic()
        for _ in range(3):
            assert await one.ghost(URI, 1, 11) == []
        asked = house.metrics.snapshot()["counters"]["refused"]
        assert sum(asked.values()) == 1 or time.monotonic() - began > 1, (
            "it was told to come back in a second"
        )
        assert len(one.messages()) == 1
        assert "busy" in one.messages()[0]
        house.engine.go_on()
        await other
        assert await one.ghost(URI, 1, 11, kind=1), "asked by hand it asks again at once"


async def test_documents_of_all_kinds_live_and_end() -> None:
    async with standing("rest()", found=True) as house, editor() as one:
        await one.initialize()
        for uri, path in (
            ("untitled:Untitled-1", "untitled:Untitled-1"),
            ("file:///c%C3%A4/%23a;b.py", "/cä/#a;b.py"),
            ("vscode-notebook-cell:/w/n.ipynb#W0", "vscode-notebook-cell:/w/n.ipynb#W0"),
        ):
            one.open(uri, "fn main() {\n    \n}\n", language="rust")
            (item,) = await one.ghost(uri, 1, 4)
            assert item["insertText"] == "rest()"
            assert text_of(house, path) == "fn main() {\n    \n}\n"
            one.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
            await until(lambda path=path: text_of(house, path) is None)
        one.change(URI, 2, edit((0, 0), (0, 0), "x"))
        assert await one.ghost(URI, 0, 0) == []


async def test_what_may_not_be_kept_is_asked_about_whole() -> None:
    uri = "file:///work/.env"
    async with standing("value", found=True) as house, editor() as one:
        await one.initialize()
        one.open(uri, "KEY=\n", language="dotenv")
        for version in (2, 3):
            assert [item["insertText"] for item in await one.ghost(uri, 0, 4)] == ["value"]
            one.change(uri, version, edit((0, 0), (0, 0), "# a\n"), edit((0, 0), (1, 0), ""))
        assert house.mirror.documents() == ()
        assert one.messages() == []


async def test_progress_of_loading_is_shown_and_ends() -> None:
    async with standing(found=True, loaded=False) as house, editor() as one:
        state = {"model": {"phase": "loading", "asked": "m", "share": 0.5, "detail": "reading"}}
        state["index"] = {"roots": [{"phase": "indexing", "done": 1, "total": 4}]}
        house.state.update(state)
        await one.initialize()
        kinds = [("begin", 50), ("begin", 25)]
        await one.heard(lambda: len(progress(one)) >= 2)
        assert [(p["kind"], p["percentage"]) for p in progress(one)] == kinds
        house.state.clear()
        await one.heard(lambda: [p["kind"] for p in progress(one)].count("end") == 2)
        assert [request["method"] for request in one.asked] == ["window/workDoneProgress/create"] * 2


def progress(one: Editor) -> list[Any]:
    return [m["params"]["value"] for m in one.said if m["method"] == "$/progress"]


async def test_degradations_are_told_once() -> None:
    async with standing("a", found=True) as house, editor() as one:
        house.state["degradations"] = ["CPU instead of the GPU: none is there"]
        await one.initialize()
        one.open(URI, TEXT)
        await one.heard(one.messages)
        await one.ghost(URI, 1, 11)
        assert one.messages() == ["Foretype: CPU instead of the GPU: none is there"]


async def test_the_end_is_in_order_and_tells_the_daemon() -> None:
    async with standing("a", found=True) as house:
        async with editor() as one:
            await one.initialize()
            one.open(URI, TEXT)
            await until(lambda: text_of(house) == TEXT)
            assert await one.ask("shutdown") is None
            one.tell("exit")
            await until(lambda: text_of(house) is None)
        async with editor() as one:  # this one crashes
            await one.initialize()
            one.open(URI, TEXT)
            await until(lambda: text_of(house) == TEXT)
        assert text_of(house) is None


async def test_what_became_of_an_answer_is_passed_on() -> None:
    async with standing("sum(order)", found=True) as house, editor() as one:
        await one.initialize()
        one.open(URI, TEXT)
        (item,) = await one.ghost(URI, 1, 11)
        for command in ("foretype.didShowCompletion", "github.copilot.didAcceptCompletionItem", "unknown"):
            arguments = item["command"]["arguments"]
            assert (
                await one.ask("workspace/executeCommand", {"command": command, "arguments": arguments})
                is None
            )
        one.tell("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 3})
        one.tell("textDocument/didShowCompletion", {"item": {}})
        one.tell("textDocument/didFocus", {"textDocument": {"uri": URI}})
        told = {"shown": 1, "accepted": 1, "word": 1}
        await until(lambda: house.metrics.snapshot()["counters"].get("feedback") == told)
        assert one.messages() == []


async def test_wrong_options_are_told_and_defaults_used() -> None:
    async with standing("a", found=True), editor() as one:
        able = await one.initialize(initializationOptions={"completion": 3})
        assert "completionProvider" not in able
        await one.heard(lambda: any("`$.completion`" in text for text in one.messages()))
    async with standing("a", found=True), editor() as one:
        able = await one.initialize(initializationOptions={"completion": "always", "other": 1})
        assert able["completionProvider"]["triggerCharacters"]


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_folder_of_an_editor_that_knows_one_is_indexed(home: Path, wanted: bool) -> None:
    folder = home / "project"
    folder.mkdir()
    async with standing("a", found=True), editor(Index()) as one:
        await one.initialize(rootUri=folder.as_uri(), initializationOptions={"index": wanted})
        one.open(URI, TEXT)
        await one.ghost(URI, 1, 11)
        if wanted:
            await until(one.logged)
            assert str(folder) in one.logged()[0]
        assert list(roots.registered()) == [folder.resolve()] * wanted
