"""Figures and tables of variants that answered the same positions: shares, intervals, paired differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.table import Table

from daemon.bench import stats
from daemon.bench.journal import Row
from daemon.bench.masking import KINDS, Mask
from daemon.bench.outcome import Figures, table

Rows = Mapping[str, Sequence[Row]]
"""Variant → its results, in the order of the masks."""
GROUPS: dict[str, Callable[[Mask], bool]] = {
    "": lambda mask: True,
    "cross": lambda mask: bool(mask.cross),
    "local": lambda mask: not mask.cross,
    "copy": lambda mask: mask.copied,
    "unique": lambda mask: not mask.copied,
    **{kind: (lambda mask, kind=kind: mask.kind == kind) for kind in KINDS},  # type: ignore[misc]
}
"""`cross` needs a name of another file, `copy` also stands elsewhere in the repository."""
COMPARED = {
    "none": ("ring", "fulltext", "outlines", "tiers", "fixed"),
    "ring": ("fulltext", "outlines", "tiers"),
    "fulltext": ("outlines", "tiers"),
    "fixed": ("tiers",),
}
"""Base → the variants whose gain over it is told."""
_PAIRED = ("", "cross")


def figures(masks: Sequence[Mask], rows: Rows) -> Figures:
    """`KEY[_GROUP]_VARIANT` for each group, and `KEY[_GROUP]_VARIANT_over_BASE` of paired differences."""
    found: Figures = {}
    for group, belongs in GROUPS.items():
        chosen = [place for place, mask in enumerate(masks) if belongs(mask)]
        part = {name: [some[place] for place in chosen] for name, some in rows.items()}
        found[_joined("n", group)] = float(len(chosen))
        for name, some in part.items():
            found.update({_joined(key, group, name): value for key, value in _alone(some).items()})
        for name, base in _pairs(rows) if group in _PAIRED else ():
            pair = _paired(part[name], part[base])
            found.update({_joined(key, group, f"{name}_over_{base}"): value for key, value in pair.items()})
    return found


def tables(masks: Sequence[Mask], rows: Rows, found: Figures) -> list[Table]:
    """All positions, exact matches by group, paired differences."""
    names = list(rows)
    columns = ["context", "exact (95 %)", "similarity (95 %)", "evaluated", "ms"]
    whole = [
        [name, _interval(found, "em", name), _interval(found, "es", name), *_costs(found, name)]
        for name in names
    ]
    groups = [group for group in GROUPS if group and found[f"n_{group}"]]
    titles = [f"{group} ({found[f'n_{group}']:.0f})" for group in groups]
    parts = [[name, *(f"{found[f'em_{group}_{name}']:.3f}" for group in groups)] for name in names]
    made = [
        table(f"{len(masks)} masked positions", columns, whole),
        table("exact match by kind of position", ["context", *titles], parts),
    ]
    pairs = [
        [
            f"{name} over {base}{', ' + group if group else ''}",
            _interval(found, "em_gain", f"{name}_over_{base}", group),
            _interval(found, "es_gain", f"{name}_over_{base}", group),
            f"{found[_joined('p', group, f'{name}_over_{base}')]:.3g}",
        ]
        for group in _PAIRED
        for name, base in _pairs(rows)
    ]
    heads = ["paired", "exact (95 %)", "similarity (95 %)", "McNemar p"]
    return [*made, table("differences on the same positions", heads, pairs)] if pairs else made


def _pairs(rows: Rows) -> list[tuple[str, str]]:
    return [(name, base) for base, names in COMPARED.items() for name in names if {name, base} <= set(rows)]


def _alone(rows: Sequence[Row]) -> Figures:
    hits = sum(bool(row["exact"]) for row in rows)
    low, high = stats.wilson(hits, len(rows))
    similar = [row["similarity"] for row in rows]
    es_low, es_high = stats.bootstrap(similar)
    return {
        "em": stats.ratio(hits, len(rows)),
        "em_low": low,
        "em_high": high,
        "es": stats.mean(similar),
        "es_low": es_low,
        "es_high": es_high,
        "tokens": stats.mean([row["tokens"] for row in rows]),
        "ms": stats.mean([row["ms"] for row in rows]),
    }


def _paired(rows: Sequence[Row], base: Sequence[Row]) -> Figures:
    exact = [float(a["exact"]) - float(b["exact"]) for a, b in zip(rows, base, strict=True)]
    similar = [a["similarity"] - b["similarity"] for a, b in zip(rows, base, strict=True)]
    em, es = stats.bootstrap(exact), stats.bootstrap(similar)
    return {
        "em_gain": stats.mean(exact),
        "em_gain_low": em[0],
        "em_gain_high": em[1],
        "es_gain": stats.mean(similar),
        "es_gain_low": es[0],
        "es_gain_high": es[1],
        "p": stats.mcnemar(exact.count(1.0), exact.count(-1.0)),
    }


def _interval(found: Figures, key: str, name: str, group: str = "") -> str:
    value, low, high = (found[_joined(f"{key}{part}", group, name)] for part in ("", "_low", "_high"))
    sign = "+" if key.endswith("gain") else ""
    return f"{value:{sign}.3f} ({low:{sign}.2f}…{high:{sign}.2f})"


def _joined(*parts: str) -> str:
    return "_".join(part for part in parts if part)


def _costs(found: Figures, name: str) -> list[float]:
    return [found[f"tokens_{name}"], found[f"ms_{name}"]]
