"""The body of `GET /v1/status`: what runs, where, why, at what cost; never anything of a text."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec
import psutil

from daemon.engine.frames import Report
from daemon.engine.protocol import EngineState
from daemon.errors import ForetypeError
from daemon.instance import Hello
from daemon.machine import EngineProfile
from daemon.settings import Settings

_Body = dict[str, Any]
_CHILD = ("pid", "phase", "restarts", "last_failure")


@dataclass(frozen=True)
class Facts:
    """What the composition root knows at this moment. `metrics` is Metrics.snapshot()."""

    hello: Hello
    addresses: tuple[str, ...]
    settings: Settings
    state: EngineState
    profile: EngineProfile | None
    report: Report | None
    missing: ForetypeError | None
    vocabulary_note: str
    planning_note: str
    metrics: _Body
    notes: tuple[str, ...]
    index: _Body
    projects: list[dict[str, str]]
    """Project files that are not used: Projects.refused()."""
    ledger: _Body
    recall: _Body
    """Recall.facts()."""
    pacing: _Body
    power: _Body
    resting: bool
    """No idle work waits or runs, and nothing is asked in advance."""
    idle_ms: float
    """In which the engine worked while nobody asked."""


def status_body(facts: Facts) -> _Body:
    """All of it as plain values for JSON. Times in seconds or `_ms`, sizes in bytes."""
    counters = facts.metrics.get("counters", {})
    return {
        "name": facts.hello.name,
        "version": facts.hello.version,
        "build": facts.hello.build,
        "pid": facts.hello.pid,
        "started": facts.hello.started,
        "uptime_s": round(time.time() - facts.hello.started, 1),
        "addresses": list(facts.addresses),
        "model": _model(facts),
        "device": _device(facts.profile),
        "profile": _profile(facts.profile),
        "memory": _memory(facts),
        "reuse": _reuse(facts.report),
        "queue": _queue(facts.report),
        "drafts": _drafts(facts.report),
        "pages": msgspec.to_builtins(facts.report.pages) if facts.report else None,
        "engine": msgspec.to_builtins(facts.report) if facts.report else None,
        "index": facts.index,
        "projects": facts.projects,
        "ledger": facts.ledger,
        "recall": facts.recall,
        "lines": _lines(facts),
        "pacing": facts.pacing,
        "power": facts.power,
        "resting": facts.resting,
        "idle_ms": round(facts.idle_ms, 1),
        "children": _children(facts),
        "refusals": counters.get("refused", {}),
        "dropped": counters.get("dropped", {}),
        "runs": {"begun": counters.get("runs", {}).get("all", 0), **counters.get("coalesced", {})},
        "redacted": counters.get("redacted", {}),
        "rendered": counters.get("rendered", {}),
        "errors": counters.get("errors", {}),
        "answers": counters.get("answers", {}),
        "degradations": _degradations(facts),
    }


def _model(facts: Facts) -> _Body:
    found = facts.profile.model if facts.profile else None
    return {
        "asked": facts.settings.engine.model,
        "name": found.name if found else "",
        "path": found.path if found else "",
        "sha256": found.sha256 if found else "",
        "architecture": found.architecture if found else "",
        "trained_context": found.trained_context if found else 0,
        "phase": facts.state.phase,
        "share": facts.state.share,
        "detail": facts.missing.message if facts.missing else facts.state.detail,
        "remedy": facts.missing.remedy if facts.missing else "",
    }


def _device(profile: EngineProfile | None) -> _Body | None:
    if profile is None:
        return None
    return {
        "backend": profile.backend,
        "name": profile.device,
        "why": profile.why,
        "threads": profile.threads,
        **msgspec.to_builtins(profile.chosen),
    }


def _profile(profile: EngineProfile | None) -> _Body | None:
    if profile is None:
        return None
    return {
        "context": profile.context,
        "tick_tokens": profile.tick_tokens,
        "prefill": [list(cost) for cost in profile.prefill],
        "verify": [list(cost) for cost in profile.verify],
        "load_ms": profile.load_ms,
        "kv_type": profile.kv_type,
        "flash_attention": profile.flash_attention,
    }


def _memory(facts: Facts) -> _Body:
    profile = facts.profile
    return {
        "daemon_rss_bytes": psutil.Process().memory_info().rss,
        "engine_rss_bytes": _rss(facts.state.pid),
        "weights_bytes": profile.model.weights_bytes if profile else None,
        "kv_bytes": profile.kv_bytes if profile else None,
        "compute_bytes": profile.compute_bytes if profile else None,
        "repacked_bytes": profile.repacked_bytes if profile else None,
    }


def _rss(pid: int | None) -> int | None:
    try:
        return int(psutil.Process(pid).memory_info().rss) if pid else None
    except psutil.Error:
        return None


def _reuse(report: Report | None) -> _Body:
    if report is None:
        return {}
    prompts = report.reused + report.evaluated
    return {
        "reused": report.reused,
        "evaluated": report.evaluated,
        "generated": report.generated,
        "share": report.reused / prompts if prompts else 0.0,
        "decodes": report.decodes,
        "aborted": report.aborted,
        "after_slice": report.after_slice,
    }


def _drafts(report: Report | None) -> list[_Body]:
    """Every source of drafts: what it drafted since the start, and whether it pays."""
    found = []
    for source in report.sources if report else ():
        drafted, accepted = report.drafts.get(source.name, (0, 0)) if report else (0, 0)
        found.append({**msgspec.to_builtins(source), "drafted": drafted, "accepted": accepted})
    return found


def _queue(report: Report | None) -> _Body:
    if report is None:
        return {}
    return {
        "idle": report.idle,
        "running": report.running,
        "waiting": report.waiting,
        "sequences": report.sequences,
        "cells_used": report.cells_used,
        "cells": report.cells,
    }


def _children(facts: Facts) -> list[_Body]:
    state, index = facts.state, facts.index
    found = []
    if state.pid is not None or state.restarts:
        found.append(
            {
                "name": "engine",
                "pid": state.pid,
                "phase": state.phase,
                "restarts": state.restarts,
                "last_failure": state.last_failure,
            }
        )
    if index.get("pid") is not None or index.get("restarts"):
        found.append({"name": "indexer"} | {key: index[key] for key in _CHILD})
    return found


def _lines(facts: Facts) -> _Body:
    """The user's rules of how much an answer may hold, as set."""
    rules: _Body = msgspec.to_builtins(facts.settings.complete)
    return {name: rules[name] for name in ("lines", "languages", "paths", "comments", "strings")}


def _degradations(facts: Facts) -> list[str]:
    found = list(facts.notes)
    profile, asked = facts.profile, facts.settings.engine
    index = facts.index
    if index.get("on") and index.get("pid") is None and index.get("last_failure"):
        found.append(f"the indexer ended ({index['last_failure']}); it is started again")
    for root in index.get("roots", ()):
        found += [f"index of {root['path']}: {reason}" for reason in root["degraded"]]
    found += [f"{project['file']} is not used: {project['reason']}" for project in facts.projects]
    found += _unkept(facts)
    if facts.missing is not None:
        found.append(f"no completions: {facts.missing}")
    if facts.vocabulary_note:
        found.append(f"llama.cpp splits text for the daemon, and not for the index: {facts.vocabulary_note}")
    if profile is None:
        return found
    if profile.model.fim.usable:
        found += [facts.planning_note] if facts.planning_note else []
    else:
        found.append("plain-prefix mode: the model has no fill-in-the-middle tokens, text below is not used")
    if profile.backend == "CPU" and (asked.backend == "gpu" or profile.why.startswith("GPU")):
        found.append(f"CPU instead of the GPU: {profile.why}")
    if profile.context < min(asked.context, profile.model.trained_context):
        found.append(f"context of {profile.context} tokens instead of {asked.context}: {profile.why}")
    found += profile.chosen.notes
    sources = facts.report.sources if facts.report and asked.draft_model else ()
    found += [f"no draft model: {source.why}" for source in sources if not source.ready]
    if facts.state.restarts:
        found.append(f"the engine was started again {facts.state.restarts} times: {facts.state.last_failure}")
    return found


def _unkept(facts: Facts) -> list[str]:
    """What should be remembered and is not."""
    found = []
    if facts.ledger["why"] and facts.settings.ledger.on:
        found.append(f"no request is remembered: {facts.ledger['why']}")
    pages = facts.report.pages if facts.report else None
    if pages and pages.disk_why and facts.settings.engine.disk_mb:
        found.append(f"evaluated text is not kept on disk: {pages.disk_why}")
    return found
