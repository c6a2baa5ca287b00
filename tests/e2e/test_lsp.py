"""The language server as editors start it: real pipes, a real daemon, a real model."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from lsprotocol import types
from pytest_lsp import ClientServerConfig, client_capabilities
from support.living import COMMAND, Home, alive, home
from support.lsp import Server, edit, frame, place, started
from support.waiting import until

from daemon.doors import client

__all__ = ["home"]
TEXT = "# é😀\r\ndef total(order):\r\n    return \r\n"


def editor(home: Home, *arguments: str) -> contextlib.AbstractAsyncContextManager[Server]:
    return started([*COMMAND, "lsp", "--stdio", *arguments], home.environment)


@pytest.fixture
def flags(tiny_model: Path) -> tuple[str, ...]:
    return ("--port", "0", "--model", str(tiny_model))


async def first_ghost(one: Server, uri: str, line: int, character: int) -> dict:  # type: ignore[type-arg]
    """The first answer, once the model is there."""
    async with asyncio.timeout(60):
        while not (items := await one.ghost(uri, line, character, kind=1)):  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.05)  # who asks all the time keeps the model from loading
    return items[0]


def native(home: Home, path: Path, line: int, character: int) -> str:
    ask = {"path": str(path), "text": TEXT, "cursor": {"line": line, "character": character}}
    return str(client.request("POST", "/v1/complete", ask, at=client.Address(home.socket))["text"])


async def test_it_starts_the_daemon_and_says_what_the_native_door_says(
    home: Home, flags: tuple[str, ...]
) -> None:
    path = home.folder / "a.py"
    async with editor(home, *flags) as one:
        await one.initialize()
        one.open(path.as_uri(), TEXT)
        item = await first_ghost(one, path.as_uri(), 2, 11)
        assert item["insertText"] == await asyncio.to_thread(native, home, path, 2, 11)
        assert await one.ask("shutdown") is None
        one.tell("exit")
        assert await asyncio.wait_for(one.process.wait(), 5) == 0
    assert home.status()["pid"], "the daemon serves others"


async def test_an_editor_that_crashes_takes_its_server_along(home: Home, flags: tuple[str, ...]) -> None:
    async with editor(home, *flags) as one:
        await one.initialize()
        one.open((home.folder / "a.py").as_uri(), TEXT)
        await first_ghost(one, (home.folder / "a.py").as_uri(), 2, 11)
        one.begin(
            "textDocument/inlineCompletion", place("untitled:x", 0, 0) | {"context": {"triggerKind": 2}}
        )
        assert one.process.stdin
        one.process.stdin.close()
        assert await asyncio.wait_for(one.process.wait(), 3) == 1
    queue = home.status()["queue"]
    assert (queue["running"], queue["waiting"]) == (0, 0)


async def test_a_daemon_that_crashes_is_started_again(home: Home, flags: tuple[str, ...]) -> None:
    uri = (home.folder / "a.py").as_uri()
    async with editor(home, *flags) as one:
        await one.initialize()
        one.open(uri, TEXT)
        before = await first_ghost(one, uri, 2, 11)
        pid = (await asyncio.to_thread(home.status))["pid"]
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not alive(pid))
        one.change(uri, 2, edit((2, 4), (2, 4), "x"), edit((2, 4), (2, 5), ""))
        after = await first_ghost(one, uri, 2, 11)
        assert after["insertText"] == before["insertText"]
        assert (await asyncio.to_thread(home.status))["pid"] != pid


async def test_a_daemon_that_was_ended_stays_away_until_asked_by_hand(
    home: Home, flags: tuple[str, ...]
) -> None:
    uri = (home.folder / "a.py").as_uri()
    async with editor(home, *flags) as one:
        await one.initialize()
        one.open(uri, TEXT)
        await first_ghost(one, uri, 2, 11)
        assert (await asyncio.to_thread(home.run, "down")).returncode == 0
        for version in range(2, 6):
            one.change(uri, version, edit((0, 0), (0, 0), " "))
            assert await one.ghost(uri, 2, 11) == []
        assert not home.socket.exists()
        assert [text for text in one.messages() if "no daemon" in text] == one.messages()[-1:]
        assert await first_ghost(one, uri, 2, 11)


async def test_all_folders_of_a_workspace_are_indexed(home: Home, flags: tuple[str, ...]) -> None:
    folders = [home.folder / name for name in ("one", "two", "two/inner", "three")]
    for folder in folders:
        folder.mkdir()
        (folder / "a.py").write_text("def found():\n    pass\n")
    told = [{"uri": folder.as_uri(), "name": folder.name} for folder in [*folders[:3], Path.home()]]
    async with editor(home, *flags) as one:
        await one.initialize(workspaceFolders=told)
        event = {"added": [{"uri": folders[3].as_uri(), "name": "three"}], "removed": [told[0]]}
        one.tell("workspace/didChangeWorkspaceFolders", {"event": event})
        expected = [str(folder.resolve()) for folder in (folders[0], folders[1], folders[3])]

        def indexed() -> bool:
            roots = home.status()["index"]["roots"]
            return sorted(root["path"] for root in roots if root["phase"] == "ready") == sorted(expected)

        one.open((folders[0] / "a.py").as_uri(), TEXT)
        await first_ghost(one, (folders[0] / "a.py").as_uri(), 2, 11)
        await until(indexed)


async def test_cancelled_requests_leave_nothing_running(home: Home, flags: tuple[str, ...]) -> None:
    uri = (home.folder / "a.py").as_uri()
    async with editor(home, *flags) as one:
        await one.initialize()
        one.open(uri, TEXT)
        await first_ghost(one, uri, 2, 11)
        answers = []
        for version in range(2, 30):
            one.change(uri, version, edit((0, 0), (0, 0), "order = price\n" * version))
            number, answer = one.begin(
                "textDocument/inlineCompletion", place(uri, 1, 5) | {"context": {"triggerKind": 2}}
            )
            one.tell("$/cancelRequest", {"id": number})
            answers.append(answer)
        for answer in answers:
            assert (await answer).get("error", {"code": -32800})["code"] == -32800
        body = await asyncio.to_thread(home.status)
        assert (body["queue"]["running"], body["queue"]["waiting"]) == (0, 0)
        assert body["reuse"]["after_slice"] == 0


@pytest.mark.parametrize("spec", ["neovim@0.11.0", "visual_studio_code"])
async def test_another_client_library_agrees(home: Home, flags: tuple[str, ...], spec: str) -> None:
    """pytest-lsp's client checks what comes against what the editor said that it understands."""
    command = [*COMMAND, "lsp", *flags]
    other = await ClientServerConfig(command, server_env=home.environment).start()
    uri = (home.folder / "a.py").as_uri()
    result = await other.initialize_session(
        types.InitializeParams(capabilities=client_capabilities(spec), process_id=os.getpid())
    )
    assert result.capabilities.completion_provider is not None, "these have no inline completion yet"
    document = types.TextDocumentItem(uri, "python", 1, TEXT)
    other.text_document_did_open(types.DidOpenTextDocumentParams(document))
    params = types.CompletionParams(types.TextDocumentIdentifier(uri), types.Position(2, 11))
    items: list[types.CompletionItem] = []
    async with asyncio.timeout(60):
        while not items:
            found = await other.text_document_completion_async(params)
            assert isinstance(found, types.CompletionList)
            items = list(found.items)
            await asyncio.sleep(0.05)
    assert isinstance(items[0].text_edit, types.TextEdit)
    expected = await asyncio.to_thread(native, home, home.folder / "a.py", 2, 11)
    assert items[0].text_edit.new_text == expected
    await other.shutdown_session()
    await other.stop()


def test_it_says_what_keeps_it_from_starting(home: Home) -> None:
    (home.folder / "config").mkdir()
    (home.folder / "config/config.toml").write_text("[server]\nprot = 1\n")
    done = home.run("lsp")
    assert (done.returncode, done.stdout) == (2, "")
    assert "prot" in done.stderr


def test_an_editor_that_does_not_read_is_still_listened_to(home: Home, flags: tuple[str, ...]) -> None:
    command = [*COMMAND, "lsp", *flags]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=home.environment
    ) as process:
        assert process.stdin
        told = b"".join(frame({"id": number, "method": "nobody/knows"}) for number in range(4_000))
        writing = threading.Thread(target=process.stdin.write, args=(told,), daemon=True)
        writing.start()
        writing.join(30)
        assert not writing.is_alive(), "its answers fill the pipe, and it takes in more"
        process.stdin.close()
        assert process.wait(10) == 1
