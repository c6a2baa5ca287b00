"""How tiers and kinds of prompt tokens look, and how foreign text gets onto a terminal."""

from __future__ import annotations

import unicodedata
from typing import Any

from rich.console import Console

STYLES = {
    "P0": "green",
    "P1": "yellow",
    "P2": "bright_blue",
    "P3": "cyan",
    "P4": "bright_black",
    "scaffold": "bold magenta",
    "repo": "magenta",
    "path": "magenta",
    "extra": "yellow",
    "context": "bright_blue",
    "prefix": "green",
    "suffix": "cyan",
    "middle": "bold bright_green",
}


def console() -> Console:
    """Prints what it is given: no guessing at numbers and paths, no markup, no wrapping."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def style(segment: dict[str, Any]) -> str:
    """Of a segment by its kind in P0 and without a tier, else by its tier."""
    tier, kind = str(segment.get("tier", "")), str(segment.get("kind", ""))
    name = kind if tier in ("", "P0") and kind in STYLES else tier
    return STYLES.get(name, "")


def label(segment: dict[str, Any]) -> str:
    """Tier and kind in words."""
    return f"{segment.get('tier') or '–'} {segment.get('kind')}"


def visible(text: str) -> str:
    """`text` with every character that could steer a terminal, or reorder a line, written out."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf") else _escaped(char)
        for char in text
    )


def _escaped(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"
