"""What rows are made by, as one word: rows that were made by other code or other grammars are made again."""

from __future__ import annotations

import functools
import hashlib
from importlib import metadata, resources
from importlib.resources.abc import Traversable

from indexer.languages import registry

MODULES = (
    "chunks", "content", "definitions", "deny", "docs", "imports", "make", "nesting", "outline", "parse",
    "records", "render", "similarity", "sketch", "syntax", "tokens", "walk",
)  # fmt: skip
"""Of this package, besides `languages/`: all that decides what is stored of a file's content."""


@functools.cache
def fingerprint() -> str:
    """Of this installation. Costs 10 ms once per process."""
    return fingerprint_of(resources.files("indexer"))


def fingerprint_of(package: Traversable) -> str:
    """Of a package's rules for languages and code of extraction, and of the grammars installed here."""
    found = hashlib.blake2b(digest_size=16)
    for module in MODULES:
        found.update(package.joinpath(f"{module}.py").read_bytes())
    _add(found, package.joinpath("languages"))
    for name, version in sorted(_grammars()):
        found.update(f"{name} {version}\n".encode())
    return found.hexdigest()


def _add(found: hashlib.blake2b, folder: Traversable) -> None:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir():
            if entry.name != "__pycache__":
                _add(found, entry)
        elif not entry.name.endswith((".pyc", ".pyo")):
            found.update(f"{entry.name}\n".encode() + entry.read_bytes())


def _grammars() -> set[tuple[str, str]]:
    modules = {registry.get(name).facts.grammar.partition(":")[0] for name in registry.all_names()}
    return {(name, metadata.version(name.replace("_", "-"))) for name in ("tree_sitter", *modules)}
