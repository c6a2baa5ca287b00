"""`foretype doctor --editor NAME`: have requests of this editor come in, and were they answered?"""

from __future__ import annotations

import time
from typing import Any, Literal

import msgspec

from daemon import resources
from daemon.cli import report
from daemon.observe.callers import Caller

FOLDER = "editors"
_LATE_S = 10.0
"""A request that is older than this and was not answered since is not under way any more."""
Verdict = tuple[Literal["ok", "warn", "fail"], str, str]
"""Level, what is so, and what to do about it."""


class Editor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of config/editors/editors.toml, which says what the fields are."""

    name: str
    title: str
    file: str
    into: str
    doors: tuple[str, ...]
    agents: tuple[str, ...] = ()


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    editor: tuple[Editor, ...]


def known() -> dict[str, Editor]:
    """By name."""
    table = msgspec.toml.decode(resources.read_text(f"{FOLDER}/editors.toml"), type=_Table)
    return {editor.name: editor for editor in table.editor}


def judge(editor: Editor, body: dict[str, Any], now: float | None = None) -> Verdict:
    """From the daemon's status; an empty one means that none runs."""
    if not body:
        return "fail", "no daemon runs, so nothing can come in", "`foretype up` starts one"
    callers = [
        msgspec.convert(one, Caller)
        for one in body.get("metrics", {}).get("callers", ())
        if isinstance(one, dict)
    ]
    at_door = [caller for caller in callers if caller.door in editor.doors]
    mine = [caller for caller in at_door if _is(editor, caller)]
    if not mine:
        return _nothing(editor, at_door, body)
    return _came(editor, mine, time.time() if now is None else now)


def _is(editor: Editor, caller: Caller) -> bool:
    agent = caller.agent.lower()
    return not editor.agents or any(agent.startswith(prefix.lower()) for prefix in editor.agents)


def _nothing(editor: Editor, others: list[Caller], body: dict[str, Any]) -> Verdict:
    running = report.duration(body.get("uptime_s", 0.0))
    text = f"{editor.title}: no request has come in since the daemon started {running} ago"
    if others:
        told = ", ".join(f"{caller.agent or 'something unnamed'} ({caller.requests})" for caller in others)
        text += f"; at the same door asked {told}"
    where = ", ".join(body.get("addresses", [])) or "no address"
    snippet = resources.folder() / FOLDER / editor.file
    todo = f"Put {snippet} into {editor.into}, type there and look again; the daemon listens on {where}"
    return "fail", text, todo


def _came(editor: Editor, mine: list[Caller], now: float) -> Verdict:
    asked, answered = sum(one.requests for one in mine), sum(one.answered for one in mine)
    shown, failed = sum(one.shown for one in mine), sum(one.failed for one in mine)
    request, answer = max(one.last_request for one in mine), max(one.last_answer for one in mine)
    why = next((caller.last_failure for caller in mine if caller.last_failure), "")
    text = f"{editor.title}: {asked} requests, {answered} answered, {shown} with text"
    text += f"; the last came {report.duration(now - request)} ago"
    waits = now - request < _LATE_S
    if failed:
        text += f"; {failed} failed, the last with `{why}`"
    if not answered and not waits:
        todo = "`foretype status` says what the model waits for, `foretype logs` what went wrong"
        return "fail", text, todo
    if answer < request and failed and not waits:
        return "warn", text, "`foretype status` says what is refused and why"
    if answered and not shown:
        todo = "`foretype audit` shows what was asked; `complete.on` and project files switch it off"
        return "warn", text, todo
    return "ok", text, ""
