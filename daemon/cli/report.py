"""The daemon's status in lines for people. Reads tolerantly: the daemon may be of another build."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from daemon import loading
from daemon.cli import common
from daemon.lifecycle import Started
from daemon.settings import Settings

_Body = dict[str, Any]


def arrival(started: Started, body: _Body) -> Iterator[str]:
    """What `up` says."""
    did = "started" if started.fresh else "already running"
    old = f", in place of build {started.replaced}" if started.replaced else ""
    yield f"foretype {started.hello.version} {did} (process {started.hello.pid}{old})"
    yield f"listening on {', '.join(body.get('addresses', []))}"
    yield f"model {_model(body)}"


def differences(settings: Settings, arguments: argparse.Namespace, body: _Body) -> Iterator[str]:
    """What was asked for on the command line and the running daemon does not do."""
    model, told = body.get("model", {}).get("asked", settings.engine.model), []
    if arguments.model is not None and settings.engine.model != model:
        told.append(f"it runs with model {model}")
    ports = [port for port in (arguments.port, *(arguments.also or ())) if port]
    told += [
        f"it does not listen on port {port}"
        for port in ports
        if not any(address.endswith(f":{port}") for address in body.get("addresses", []))
    ]
    if told:
        flags = shlex.join(common.serve_arguments(arguments))
        yield f"note: {', '.join(told)}; `foretype restart {flags}` changes that"


def stale(arguments: argparse.Namespace, body: _Body) -> Iterator[str]:
    """Whether the settings file is newer than the running daemon, which reads it once."""
    file = Path(arguments.config) if arguments.config else loading.user_file()
    if file.exists() and file.stat().st_mtime > time.time() - body.get("uptime_s", 0.0):
        yield f"note: {file} was changed after the daemon started; `foretype restart` takes it up"


def status(body: _Body) -> Iterator[str]:
    """What `status` says."""
    yield (
        f"foretype {body.get('version')} (build {body.get('build')}), process {body.get('pid')}, "
        f"up {duration(body.get('uptime_s', 0.0))}"
    )
    yield f"listening  {', '.join(body.get('addresses', []))}"
    yield f"model      {_model(body)}"
    for name, lines in (
        ("device", _device(body)),
        ("profile", _profile(body.get("profile") or {})),
        ("memory", _memory(body.get("memory", {}))),
        ("reuse", _reuse(body.get("reuse", {}))),
        ("drafts", _drafts(body.get("drafts", []))),
        ("queue", _pairs(body.get("queue", {}))),
        ("flow", _pairs(body.get("flow", {}))),
        ("runs", _pairs(body.get("runs", {}))),
        ("recall", _recall(body.get("recall", {}))),
        ("lines", _lines(body.get("lines", {}))),
        ("pacing", _pacing(body.get("pacing", {}))),
        ("power", _power(body.get("power", {}))),
        ("pages", _pages(body.get("pages") or {})),
        ("index", _index(body.get("index", {}))),
        ("ledger", _ledger(body.get("ledger", {}))),
        ("children", _children(body.get("children", []))),
        ("refused", _pairs(body.get("refusals", {})) or "nothing"),
        ("dropped", _pairs(body.get("dropped", {}))),
        ("redacted", _pairs(body.get("redacted", {})) or "nothing"),
        ("rendered", _pairs(body.get("rendered", {}))),
    ):
        if lines:
            yield f"{name:<10} {lines}"
    for degradation in body.get("degradations", []):
        yield f"degraded   {degradation}"


def _model(body: _Body) -> str:
    model = body.get("model", {})
    phase = model.get("phase", "unknown")
    if phase == "loading":
        phase = f"loading {model.get('share', 0.0):.0%}"
    text = f"{model.get('name') or model.get('asked', '?')}: {phase}"
    if model.get("detail"):
        text += f" ({model['detail']})"
    return f"{text}; {model['remedy']}" if model.get("remedy") else text


def _device(body: _Body) -> str:
    device = body.get("device") or {}
    if not device:
        return ""
    names = dict.fromkeys((str(device.get("backend")), str(device.get("name", ""))))
    threads, ahead = device.get("threads"), device.get("threads_ahead")
    fewer = f" ({ahead} for what is asked in advance)" if ahead and ahead != threads else ""
    told = [f"{' '.join(names)}, {threads} threads{fewer}: {device.get('why')}"]
    for name, key in (("threads", "threads_why"), ("cache", "kv_offload_why"), ("draft", "draft_device")):
        told += [f"{name} {device[key]}"] if device.get(key) else []
    return "; ".join(told)


def _profile(profile: _Body) -> str:
    if not profile:
        return ""
    prefill = ", ".join(f"{rows} rows {ms:.1f} ms" for rows, ms in profile.get("prefill", []))
    verify = ", ".join(f"{rows}: {ms:.1f}" for rows, ms in profile.get("verify", []))
    costs = [f"prefill {prefill}"] if prefill else []
    costs += [f"decode of n rows in ms {verify}"] if verify else []
    sizes = f"context {profile.get('context')}, slice {profile.get('tick_tokens')}"
    return "; ".join([sizes, *costs, f"loaded in {profile.get('load_ms', 0.0) / 1000:.1f} s"])


def _memory(memory: _Body) -> str:
    return ", ".join(
        f"{name.removesuffix('_bytes')} {size(n)}" for name, n in memory.items() if n is not None
    )


def _reuse(reuse: _Body) -> str:
    if not reuse:
        return ""
    prompts = reuse.get("reused", 0) + reuse.get("evaluated", 0)
    return (
        f"{reuse.get('share', 0.0):.1%} of {prompts} prompt tokens "
        f"came from the cache; {reuse.get('evaluated', 0)} evaluated, {reuse.get('generated', 0)} generated"
    )


def _drafts(sources: list[_Body]) -> str:
    found = []
    for source in sources:
        drafted = source.get("drafted", 0)
        counts = f"{source.get('accepted', 0)} of {drafted} accepted, " if drafted else ""
        if drafted or source.get("why", "").startswith("off"):
            found.append(f"{source.get('name')} {counts}{source.get('why')}")
    return "; ".join(found)


def _pages(pages: _Body) -> str:
    """Per level, what it holds and may hold, or why it is off; then what came back, and what was lost."""
    if not pages:
        return ""
    found = []
    for level, words in (("host", "host memory"), ("disk", "disk")):
        held, ceiling = pages.get(f"{level}_bytes", 0), pages.get(f"{level}_ceiling", 0)
        back, why = pages.get(f"{level}_tokens", 0), pages.get(f"{level}_why")
        off = f" (off: {why})" if why else ""
        found.append(f"{words} {size(held)} of {size(ceiling)}{off}, {back} tokens brought back")
    damaged = pages.get("damaged", 0)
    return "; ".join([*found, *([f"{damaged} damaged"] if damaged else [])])


def _lines(rules: _Body) -> str:
    if not rules:
        return ""
    switched = [f"{name} {lines}" for name, lines in rules.get("languages", {}).items()]
    switched += [f"{one.get('pattern')} {one.get('lines')}" for one in rules.get("paths", [])]
    inside = [f"{'also' if rules.get(name) else 'not'} in {name}" for name in ("comments", "strings")]
    return ", ".join([f"{rules.get('lines')}", *switched, *inside])


def _pacing(pacing: _Body) -> str:
    """What waiting for the next key cost and spared, and how it is with the newest client."""
    if not pacing:
        return ""
    newest = list(pacing.get("clients", {}).items())[-1:]
    found = [
        f"{pacing.get('waits')} waits of {pacing.get('waited_ms')} ms, {pacing.get('spared')} runs spared"
    ]
    return "; ".join(
        [*found, *(f"{name}: {one.get('wait_ms')} ms, {one.get('why')}" for name, one in newest)]
    )


def _power(power: _Body) -> str:
    if not power:
        return ""
    left = power.get("unload_in_s")
    unloads = "the model stays loaded" if left is None else f"the model may go in {duration(left)}"
    return f"{power.get('why')}; {unloads}"


def _index(index: _Body) -> str:
    roots = [
        f"{root.get('path')}: {root.get('phase')}, {root.get('files')} files"
        for root in index.get("roots", [])
    ]
    slowed = f" ({index['throttled']})" if index.get("throttled") else ""
    return f"{'; '.join(roots)}{slowed}" if roots else ""


def _ledger(ledger: _Body) -> str:
    if not ledger:
        return ""
    dropped = f", {ledger['dropped']} not kept" if ledger.get("dropped") else ""
    kept = f"{ledger.get('rows')} requests{dropped}" if ledger.get("on") else f"off: {ledger.get('why')}"
    return f"{kept}; {ledger['note']}" if ledger.get("note") else kept


def _recall(recall: _Body) -> str:
    if not recall.get("on"):
        return "off" if recall else ""
    hits, ahead = recall["hits"], recall["prefetch"]
    known = f"{recall['hit_rate']:.0%} known ({_pairs(hits)}), {recall['saved_ms'] / 1000:.1f} s saved"
    size = f"{recall['bytes'] / 2**20:.1f} of {recall['ceiling'] / 2**20:.0f} MB"
    work = f"{ahead['used']} of {ahead['generated']} tokens used" if ahead["on"] else "off"
    return f"{known}, {size}; asked in advance: {work}"


def _pairs(values: _Body) -> str:
    return ", ".join(_pair(name, value) for name, value in values.items() if value is not None)


def _pair(name: str, value: Any) -> str:
    return f"{name} {value}" if not isinstance(value, bool) else name if value else f"not {name}"


def _children(children: list[_Body]) -> str:
    found = []
    for child in children:
        text = f"{child.get('name')} (process {child.get('pid')}, {child.get('restarts', 0)} restarts)"
        if child.get("last_failure"):
            text += f", last failure: {child['last_failure']}"
        found.append(text)
    return "; ".join(found)


def size(count: float) -> str:
    """Bytes for people: 491.4 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("the last unit takes all")


def duration(seconds: float) -> str:
    """Time for people: 45 s, 3 min, 5 h, 2 d."""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
