"""Messages that no honest editor sends: the language server answers what can be answered, and lives on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.house import standing
from support.lsp import Editor, edit, editor, frame, place

URI = "file:///work/a.py"
TEXT = "def total(order):\n    return \n"
VALUES: list[Any] = [
    None, 3, "x", [], {}, [1], {"textDocument": None}, {"textDocument": {"uri": 3}},
    {"textDocument": {"uri": URI}},
    {"textDocument": {"uri": "not a uri\x00"}, "position": {"line": -1, "character": -1}},
    {"textDocument": {"uri": URI}, "position": {"line": 2**31, "character": 2**31}},
    {"textDocument": {"uri": URI}, "position": {"line": "1", "character": None}},
    {"textDocument": {"uri": URI, "version": 1}, "contentChanges": 3},
    {"textDocument": {"uri": URI, "version": "x"}, "contentChanges": [{"range": 3, "text": 3}]},
    {"textDocument": {"uri": URI, "languageId": 3, "version": None, "text": 3}},
    {"command": 3, "arguments": {}}, {"command": "foretype.didAcceptCompletion", "arguments": [[]]},
    {"item": 3}, {"item": {"command": {"arguments": [3]}}, "acceptedLength": "x"},
    {"event": {"added": 3}}, {"event": {"added": [{"uri": 3}], "removed": None}},
]  # fmt: skip
METHODS = [
    "textDocument/didOpen", "textDocument/didChange", "textDocument/didSave", "textDocument/didClose",
    "textDocument/didFocus", "textDocument/didShowCompletion", "textDocument/didAcceptCompletion",
    "textDocument/didPartiallyAcceptCompletion", "textDocument/inlineCompletion", "textDocument/completion",
    "workspace/executeCommand", "workspace/didChangeWorkspaceFolders", "$/cancelRequest", "$/setTrace",
    "initialize", "nobody/knows",
]  # fmt: skip
ASKED = [
    "textDocument/inlineCompletion", "textDocument/completion", "workspace/executeCommand", "initialize",
    "nobody/knows",
]  # fmt: skip
BODIES = [
    b"{", b"", b"[]", b"3", b"null", b"{}", b"\xff\xfe", b'{"jsonrpc":"2.0","id":1}', b"\x00" * 9,
    b'{"jsonrpc":"1.0","method":"initialize"}', b'{"jsonrpc":"2.0","method":3}', b"[" * 50_000,
    b'{"jsonrpc":"2.0","method":"initialized","params":"\xc3("}',
]  # fmt: skip


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with TemporaryDirectory(prefix="ft") as folder:
        monkeypatch.setenv("FORETYPE_HOME", folder)
        yield Path(folder)


async def alive(one: Editor) -> None:
    uri = "file:///work/another.py"
    one.open(uri, TEXT)
    (item,) = await one.ghost(uri, 1, 11)
    assert item["insertText"] == "answer()"
    one.tell("textDocument/didClose", {"textDocument": {"uri": uri}})


@pytest.mark.parametrize("method", METHODS)
async def test_parameters_of_other_types(method: str) -> None:
    async with standing(found=True), editor() as one:
        await one.initialize()
        one.open(URI, TEXT)
        for value in VALUES:
            one.tell(method, value)
            if method in ASKED:
                _, answer = one.begin(method, value)
                await asyncio.wait_for(answer, 10)
        await alive(one)
        assert not any(TEXT[:9] in text for text in (*one.messages(), *one.logged()))


@pytest.mark.parametrize("body", BODIES)
async def test_bodies_that_are_no_messages(body: bytes) -> None:
    async with standing(found=True), editor() as one:
        await one.initialize()
        one.send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        await alive(one)


async def test_headers_that_editors_may_add() -> None:
    async with standing(found=True), editor() as one:
        await one.initialize()
        body = json.dumps({"jsonrpc": "2.0", "method": "$/setTrace", "params": {"value": "off"}}).encode()
        kind = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"
        one.send(kind + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        await alive(one)


async def test_a_large_document_and_edits_beyond_it() -> None:
    async with standing(found=True), editor() as one:
        await one.initialize()
        one.open(URI, TEXT + "x" * 7_000_000)
        one.change(URI, 2, edit((1, 11), (1, 11), "s"), edit((90, 0), (99, 0), "y"))
        await one.ask("textDocument/inlineCompletion", place(URI, 1, 12) | {"context": {"triggerKind": 1}})
        one.send(frame({"method": "textDocument/didClose", "params": {"textDocument": {"uri": URI}}}))
        await alive(one)
