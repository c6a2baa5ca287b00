"""`foretype bench draft`: what guessing ahead is worth."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from daemon import loading
from daemon.bench import drafting
from daemon.cli.measuring import add, natural, positive, show


def register(kinds: Any) -> None:
    """Add the measurement to those of `foretype bench`."""
    words = "what each source of drafts is worth, and whether drafts change answers"
    parser = add(kinds, "draft", words, drafting.QUESTIONS)
    parser.add_argument("--tasks", type=Path, metavar="FILE", help="single-line tasks (.jsonl.gz)")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="an editing trace (.json.gz)")
    words = "the draft model (default: engine.draft_model; '': sources without a model alone)"
    parser.add_argument("--draft-model", metavar="NAME|PATH", help=words)
    words = f"so many prompts are compared with and without drafts (default: {drafting.PAIRS})"
    parser.add_argument("--pairs", type=natural, default=drafting.PAIRS, metavar="N", help=words)
    words = f"rows of every step in that comparison (default: {drafting.WIDTH})"
    parser.add_argument("--width", type=positive, default=drafting.WIDTH, metavar="N", help=words)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    a, engine = arguments, loading.load().engine
    plan = drafting.Plan(
        tasks=a.tasks, trace=a.trace, model=a.model or engine.model,
        draft_model=engine.draft_model if a.draft_model is None else a.draft_model,
        limit=a.limit, pairs=a.pairs, width=a.width, seed=a.seed,
    )  # fmt: skip
    return show(a, lambda report: drafting.run(plan, report))
