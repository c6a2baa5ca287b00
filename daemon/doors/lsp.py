"""The LSP dialect over stdio: frames in, frames out. What is asked goes to the daemon (lspshim.py).

pygls brings the protocol; its own copies of documents are not used, because they split lines where LSP does
not. Names of the Copilot language server are understood beside our own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcException
from pygls.io_ import run_async
from pygls.lsp.server import LanguageServer
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

import daemon
from daemon.documents.positions import Encoding
from daemon.doors import lspitems, lspprogress
from daemon.doors.lsplink import Link
from daemon.doors.lspnews import Bar, Going, News
from daemon.doors.lspshim import Shim
from daemon.doors.lspsync import Change
from daemon.settings import Index

if TYPE_CHECKING:
    from pygls.io_ import Writer

TRIGGERS = (".", "(", "[", "{", "=", ",", ":", " ")
"""After these an editor without ghost text asks for a list."""
_KINDS = {
    lspitems.SHOW: "shown",
    lspitems.ACCEPT: "accepted",
    lspitems.PARTIAL: "partly",
    "github.copilot.didAcceptCompletionItem": "accepted",
}
"""Command → what it says of an answer."""

_log = logging.getLogger("pygls")
_log.setLevel(logging.CRITICAL + 1)  # it logs whole messages, and with them source text


class Options(msgspec.Struct, frozen=True):
    """`initializationOptions`."""

    completion: Literal["auto", "always", "never"] = "auto"
    """Offer `textDocument/completion`; auto: to editors without inline completion."""
    index: bool = True
    """Index the folders that the editor has open."""


class Protocol(LanguageServerProtocol):
    """What is answered, and what is taken note of."""

    link: Link
    index: Index
    shim: Shim
    options = Options()
    code = 1
    """The exit status; 0 once the editor said `shutdown` and `exit`."""
    over: threading.Event
    """Ends the loop that reads messages."""

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Capabilities: those of the features below, and nothing else."""
        result: types.InitializeResult = yield from super().lsp_initialize(params)
        self.options, wrong = _options(params.initialization_options)
        name = params.client_info.name if params.client_info else "editor"
        self.shim = Shim(self.link, News(self.show), self._begin, f"lsp:{name[:64]}:{os.getpid()}")
        if wrong:
            self.shim.news.once(f"initializationOptions are not used: {wrong}")
        editor = params.capabilities.text_document
        lists = self.options.completion
        if lists == "auto" and editor is not None and editor.inline_completion is not None:
            lists = "never"
        able = result.capabilities
        able.inline_completion_provider = types.InlineCompletionOptions()
        able.completion_provider = (
            None if lists == "never" else types.CompletionOptions(trigger_characters=TRIGGERS)
        )
        able.text_document_sync = types.TextDocumentSyncOptions(
            open_close=True,
            change=types.TextDocumentSyncKind.Incremental,
            save=types.SaveOptions(include_text=True),
        )
        able.execute_command_provider = types.ExecuteCommandOptions(commands=lspitems.COMMANDS)
        self.link.start()
        return result

    @lsp_method(types.INITIALIZED)
    async def lsp_initialized(self, params: types.InitializedParams) -> None:
        """The editor is ready for what we have to say."""
        self.shim.used()
        folders = [folder.uri for folder in self.workspace.folders.values()]
        root = self.workspace.root_uri  # of editors that know one folder only
        await self._folders(folders or [root] if root else folders)

    @lsp_method(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def lsp_workspace__did_change_workspace_folders(
        self, params: types.DidChangeWorkspaceFoldersParams
    ) -> None:
        """Folders that are added are indexed; the index of others stays."""
        await self._folders([folder.uri for folder in params.event.added])

    async def _folders(self, uris: list[str]) -> None:
        if self.options.index:
            await self.shim.folders(uris, self.index, self.log)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """A document is open."""
        told = params.text_document
        self.shim.sync.open(told.uri, told.text, told.version, told.language_id)
        self.shim.used()

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """It changed, piece by piece or as a whole."""
        told = params.text_document
        changes = [_change(change) for change in params.content_changes]
        self.shim.sync.change(told.uri, changes, told.version, self.encoding())

    @lsp_method(types.TEXT_DOCUMENT_DID_SAVE)
    async def lsp_text_document__did_save(self, params: types.DidSaveTextDocumentParams) -> None:
        """It was saved, and is what the editor says it is."""
        await self.shim.sync.save(params.text_document.uri, params.text)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    async def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """It is open no longer."""
        await self.shim.sync.close(params.text_document.uri)

    @lsp_method("textDocument/didFocus")
    async def did_focus(self, params: Any) -> None:
        """The person looks at a document: `{textDocument: {uri}}`."""
        if isinstance(uri := _in(params, "textDocument", "uri") or _in(params, "uri"), str):
            await self.shim.sync.focus(uri)

    @lsp_method(types.TEXT_DOCUMENT_INLINE_COMPLETION)
    async def inline_completion(self, params: types.InlineCompletionParams) -> types.InlineCompletionList:
        """Ghost text; an empty list where there is none."""
        context = params.context
        found = await self.shim.answer(
            params.text_document.uri,
            params.position,
            self.encoding(),
            by_hand=context.trigger_kind == types.InlineCompletionTriggerKind.Invoked,
            selected=context.selected_completion_info,
        )
        items = [lspitems.inline(*found, context.selected_completion_info)] if found is not None else []
        return types.InlineCompletionList(items)

    @lsp_method(types.TEXT_DOCUMENT_COMPLETION)
    async def completion(self, params: types.CompletionParams) -> types.CompletionList:
        """The same as the one item of a list that is never complete: typing on asks again."""
        found = await self.shim.answer(params.text_document.uri, params.position, self.encoding())
        items = [lspitems.listed(*found)] if found is not None else []
        return types.CompletionList(is_incomplete=True, items=items)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]  # pygls takes coroutines as well
        self, params: types.ExecuteCommandParams
    ) -> None:
        """What became of an answer: its id, and with a partial one the UTF-16 units taken so far."""
        said = list(params.arguments or ())
        if (kind := _KINDS.get(params.command)) is not None and said and isinstance(said[0], str):
            length = said[1] if len(said) > 1 and isinstance(said[1], int) else None
            await self.shim.feedback(said[0], kind, length)

    @lsp_method("textDocument/didShowCompletion")
    async def did_show(self, params: Any) -> None:
        """`{item}` is on the screen."""
        await self._became("shown", params)

    @lsp_method("textDocument/didAcceptCompletion")
    async def did_accept(self, params: Any) -> None:
        """`{item}` was taken."""
        await self._became("accepted", params)

    @lsp_method("textDocument/didPartiallyAcceptCompletion")
    async def did_partially_accept(self, params: Any) -> None:
        """The first `acceptedLength` UTF-16 units of `{item}` were taken."""
        await self._became("partly", params)

    async def _became(self, kind: str, params: Any) -> None:
        arguments, length = _in(params, "item", "command", "arguments"), _in(params, "acceptedLength")
        if isinstance(arguments, list) and arguments and isinstance(arguments[0], str):
            await self.shim.feedback(arguments[0], kind, length if isinstance(length, int) else None)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]  # and plain functions
        """The end; 0 when it was announced."""
        self.code = 0 if self._shutdown else 1
        self.over.set()

    def encoding(self) -> Encoding:
        """The unit of characters that was agreed on."""
        found = str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding))
        return "utf-8" if found == "utf-8" else "utf-32" if found == "utf-32" else "utf-16"

    def show(self, text: str, failed: bool) -> None:
        """Tell the person."""
        kind = types.MessageType.Error if failed else types.MessageType.Warning
        self.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(kind, text))

    def log(self, text: str) -> None:
        """Tell whoever looks for it."""
        self.notify(types.WINDOW_LOG_MESSAGE, types.LogMessageParams(types.MessageType.Info, text))

    async def _begin(self, going: Going) -> Bar | None:
        window = self.client_capabilities.window
        if window is None or not window.work_done_progress:
            return None
        return await lspprogress.begin(self.progress, going)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A request that cannot be understood is refused: its editor would wait for ever."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" in data and isinstance(data.get("id"), int | str):
                self._send_response(data["id"], error=error.to_response_error())
            raise

    async def close(self) -> None:
        """The editor goes: nobody waits for anything."""
        for future in list(self._request_futures.values()):
            future.cancel()
        if hasattr(self, "shim"):
            await self.shim.close()
        await self.link.close()


class _Server(LanguageServer):
    protocol: Protocol

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Tell that something is wrong, and nothing that may quote a text."""
        if source is not FeatureRequestError:
            self.protocol.show(f"Foretype: {type(error).__name__} in the language server", True)


async def serve(reader: asyncio.StreamReader, writer: Writer, link: Link, index: Index) -> int:
    """Speak with one editor until it says `exit` or goes away; the exit status."""
    server = _Server("foretype", daemon.__version__, protocol_cls=Protocol, converter_factory=_converter)
    protocol = server.protocol
    protocol.link, protocol.index, protocol.over = link, index, threading.Event()
    protocol.set_writer(writer)
    try:
        await run_async(protocol.over, reader, protocol, _log, server._report_server_error)
    except asyncio.IncompleteReadError:
        pass  # it went in the middle of a message
    finally:
        await protocol.close()
    return protocol.code


def _converter() -> Any:
    """What pygls has no type for stays as JSON has it."""
    converter = default_converter()  # type: ignore[no-untyped-call]
    for kind in (JsonRPCNotification, JsonRPCRequestMessage):
        converter.register_structure_hook(kind, lambda body, kind: kind(**{"params": None, **body}))
    return converter


def _options(told: Any) -> tuple[Options, str]:
    """The options, and why others than those told are used."""
    try:
        return msgspec.convert(told or {}, Options), ""
    except msgspec.ValidationError as error:
        return Options(), str(error)


def _change(told: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(told, types.TextDocumentContentChangePartial):
        start, end = told.range.start, told.range.end
        return Change(told.text, (start.line, start.character, end.line, end.character))
    return Change(told.text)


def _in(tree: Any, *keys: str) -> Any:
    """What stands in a tree of objects; None when it is not there."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree
