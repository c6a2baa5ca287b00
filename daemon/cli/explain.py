"""`foretype explain ID`: the exact prompt of one request, why it is so, and what it cost."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from daemon.cli import rows

_Body = dict[str, Any]


def register(subparsers: Any) -> None:
    """Add the command."""
    words = "show the exact prompt of a request, what else was considered, why, and what it cost"
    parser = subparsers.add_parser("explain", help=words, description=words)
    rows.add_options(parser, one=True)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    body = rows.ask(arguments, "GET", rows.row(arguments))
    if not arguments.json:
        _draw(body)
    return 0


def _draw(body: _Body) -> None:
    from rich.text import Text  # noqa: PLC0415 - `--json` needs no colours

    from daemon.cli import palette  # noqa: PLC0415

    console = palette.console()
    for name, words in _facts(body):
        if words:
            console.print(f"{name:<9} {palette.visible(words)}")
    for segment in body["segments"]:
        tokens = Text(f"  {segment['tokens']:>6} {palette.label(segment):<12} ", palette.style(segment))
        console.print(tokens, palette.visible(segment["source"]), sep="")
    for lost in body["lost"]:
        what = f"{lost['tier']} {lost['source']}: {lost['tokens']} tokens, score {lost['score']:.2f}"
        console.print(f"  lost   {palette.visible(what)}, {palette.visible(lost['why'])}")
    if body["prompt"] is None:
        gone = "prompt and answer are no longer kept (for ledger.keep_text_minutes, while the daemon runs)"
        console.print(f"\n{gone}" if body["segments"] else "\nno prompt was made")
        return
    whole = Text()
    for segment in body["prompt"]:
        whole.append(palette.visible(segment["text"]), palette.style(segment))
    answer = body["answer"]
    console.print("\nprompt")
    console.print(whole)
    taken_back = f", after {answer['must']!r} that the model had to begin with" if answer["must"] else ""
    console.print(f"\nanswer{taken_back}")
    console.print(palette.visible(answer["text"]) or "(nothing)")
    if answer["raw"] != answer["text"]:
        console.print("\nbefore polish")
        console.print(palette.visible(answer["raw"]))


def _facts(body: _Body) -> Iterator[tuple[str, str]]:
    work, times = body["counters"], body["timings"]
    yield "request", body["id"]
    yield "when", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(body["when"]))
    yield "from", f"{body['door']}, {body['client']}"
    yield "file", " ".join(part for part in (body["path"], body["language"]) if part)
    alone = f"{work['small']}, alone, beside " if work.get("small") else ""
    yield "model", f"{alone}{body['model']} {body['sha256'][:12]}, build {body['build']}"
    if window := body["window"]:
        sizes = f"{window['context']} tokens, {window['output']} out, {window['lines']}"
        yield "window", f"{window['name']} ({sizes}): {window['reason']}"
    yield ("known" if body.get("recall") else "anchor"), body["anchor"]
    yield "stable", f"epoch {body['epoch']}: {body['stable']}" if body["stable"] else ""
    evaluated = f"{work['reused']} reused + {work['evaluated']} evaluated"
    steps = f"{work['generated']} generated in {work['steps']} steps"
    yield "shared", f"the run of {body['coalesced']}, which counts the work" if body.get("coalesced") else ""
    yield "tokens", f"prompt {work['prompt']} = {evaluated}; {steps}"
    parts = ", ".join(f"{name} {ms:.1f}" for name, ms in times.items())
    yield "ms", parts
    yield "stop", f"{body['stop']}{': ' + body['note'] if body['note'] else ''}"
    yield "trims", ", ".join(body["trims"])
    sampling = body["sampling"]
    drawn = ", ".join(f"{name} {value}" for name, value in sampling.items())
    yield "sampling", drawn if sampling["temperature"] > 0 else "greedy"
