"""`foretype bench quality --root`: spans of a repository masked on disk, answered with several contexts.

The copy is masked before the private daemon indexes it: neither index nor ring nor full text can hold what is
asked for. A row is exact when the first line that is not blank is the masked one, or for a block when all of
it is; white space at the ends does not count.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from daemon import instance, roots
from daemon.bench import contrast, gathering, masking, ours, rig, stats, survey
from daemon.bench.gathering import Shelf
from daemon.bench.journal import Journal, Row
from daemon.bench.masking import Mask, Source
from daemon.bench.outcome import Outcome, Progress
from daemon.errors import BadRequest, EngineFailed
from daemon.settings import Context, Engine
from indexer.frames import DATABASE
from indexer.read import Reader

TOKENS = {"rest": 64, "line": 64, "block": 160}
_UNHURRIED = {"slice": 256, "draft": "off"}
"""Nobody types: prompts are evaluated in full batches, and each step has one row."""
Gather = Callable[[Shelf, Mask, int], list[gathering.Extra]]
VARIANTS: dict[str, tuple[dict[str, Any], Gather]] = {
    "none": ({"context": "none"}, gathering.nothing),
    "ring": ({"context": "none"}, gathering.ring),
    "fulltext": ({"context": "none"}, gathering.fulltext),
    "outlines": ({"context": "none"}, gathering.outlined),
    "tiers": ({"context": "now"}, gathering.nothing),
    "fixed": ({"context": "now", "window": "complex"}, gathering.nothing),
}
"""Fields of the request besides the text, and who gathers its extras. All else is the same."""
USUAL = ("none", "ring", "fulltext", "tiers")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure. `room`: tokens of extras; `commit`: what to call the state of a folder without git."""

    root: Path
    limit: int
    seed: int
    model: str | None
    variants: tuple[str, ...]
    fresh: bool
    commit: str = ""
    room: int = Context().extra_tokens


@dataclass(frozen=True, slots=True)
class Field:
    """The masked copy, and the daemon that indexes it."""

    made: survey.Copy
    sources: dict[str, Source]
    masks: tuple[Mask, ...]
    shelf: Shelf
    here: rig.Rig


async def run(plan: Plan, progress: Progress) -> Outcome:
    """Answer every position with each variant, going on where an earlier run of the same build stopped."""
    done = resumed = 0
    async with prepared(plan, progress) as field:
        outcome = field.here.outcome("quality", plan.seed)
        journals = {v: Journal("quality", _key(plan, v, field), plan.fresh) for v in plan.variants}
        rows: dict[str, list[Row]] = {name: [] for name in plan.variants}
        for mask in field.masks:
            for name, journal in journals.items():
                known = journal.rows.get(mask.name)
                resumed += known is not None
                rows[name].append(known or journal.add(mask.name, await ask(field, mask, name, plan.seed)))
                done += 1
                progress(done, len(field.masks) * len(journals))
    outcome.figures.update(contrast.figures(field.masks, rows))
    outcome.figures["resumed"] = float(resumed)
    outcome.tables += contrast.tables(field.masks, rows, outcome.figures)
    outcome.notes += _notes(plan, field)
    if resumed:
        words = "results are of an earlier run of the same build; --fresh makes them anew"
        outcome.notes.append(f"{resumed} {words}")
    return outcome


@asynccontextmanager
async def prepared(plan: Plan, progress: Progress) -> AsyncIterator[Field]:
    """Copy, draw, mask, index. Raises BadRequest when nothing can be masked or the extras have no room."""
    with tempfile.TemporaryDirectory(prefix="foretype-", ignore_cleanup_errors=True) as name:
        folder = roots.normal(Path(name))
        made = survey.copy(plan.root, folder / "root")
        found = await survey.sources(made, folder / "whole", progress)
        masks = masking.draw(found, plan.limit, plan.seed)
        if not masks:
            raise BadRequest(
                f"nothing in {plan.root} can be masked",
                f"Give --root source files of {masking.SHORTEST} to {masking.LONGEST} lines",
            )
        texts = {path: text.decode() for path, text in survey.write(made, found, masks).items()}
        engine = {**_UNHURRIED, "context": max(Engine().context, 2 * plan.room)}  # extras get half of it
        async with rig.running(
            plan.model, root=made.root, engine=engine, extra_tokens=plan.room, stable_tokens=plan.room
        ) as here:
            if plan.room > (most := here.profile["context"] // 2):
                raise BadRequest(f"there is no room for {plan.room} tokens of extras", f"Give at most {most}")
            await here.indexed()
            database = next((here.home / "cache/index").glob(f"*/{DATABASE}"))
            sources = {source.path: source for source in found}
            with Reader(database) as reader:
                shelf = Shelf(sources, texts, reader.outlines, here.counter(), plan.room)
                yield Field(made, sources, masks, shelf, here)


async def ask(field: Field, mask: Mask, variant: str, seed: int) -> Row:
    """One position with one variant. Nothing is reused, and the window is that of a machine without haste."""
    fields, gather = VARIANTS[variant]
    source = field.sources[mask.path]
    prefix, suffix = masking.around(source, mask, field.masks)
    body = ours.document_body(
        prefix + suffix, len(prefix), field.made.root / mask.path,
        tokens=TOKENS[mask.kind], lines="block" if mask.kind == "block" else "line",
        stream=False, cache=False, anchor_lines=Context().anchor_lines,
        language=source.language, extras=gather(field.shelf, mask, seed), raw=True, **fields,
    )  # fmt: skip
    return judge(mask, await ours.ask_whole(field.here.endpoint, body))


def judge(mask: Mask, answer: ours.Answer) -> Row:
    """The result of one position."""
    if not answer.whole:
        raise EngineFailed(f"{mask.name} was not answered: {answer.stop}")
    wanted, got = _compared(mask, mask.text), _compared(mask, answer.text)
    return {
        "exact": got == wanted,
        "similarity": stats.similarity(got, wanted),
        "tokens": answer.evaluated,
        "ms": answer.last,
    }


def _compared(mask: Mask, text: str) -> str:
    if mask.kind != "block":
        return stats.first_line(text).strip()
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()).strip()


def _key(plan: Plan, variant: str, field: Field) -> dict[str, object]:
    profile = field.here.profile
    return {
        "model": profile["model"]["sha256"] or profile["model"]["path"],
        "repository": field.made.digest,
        "positions": [plan.limit, plan.seed],
        "variant": variant,
        "asked": [TOKENS, VARIANTS[variant][0], plan.room],
        "settings": repr(msgspec.to_builtins(Context())),
        "machine": [profile["backend"], profile["device"], profile["context"]],
        "build": instance.build_id(),
    }


def _notes(plan: Plan, field: Field) -> Sequence[str]:
    commit = plan.commit or survey.commit(plan.root) or "an unnamed state"
    name = roots.normal(plan.root).name
    files = len({mask.path for mask in field.masks})
    where = f"{name} at {commit} (content {field.made.digest[:12]})"
    return [
        f"{where}: {len(field.masks)} positions in {files} of {len(field.made.texts)} files",
        f"greedy; at most {plan.room} tokens of extras",
        "half of the positions are drawn among those that need a name of another file, while there are such",
    ]
