"""A copy of a repository, what the indexer finds in it, and the copy with spans masked on disk."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from daemon.bench.indexchild import IndexChild
from daemon.bench.masking import Mask, Source, masked
from daemon.bench.outcome import Progress
from daemon.errors import BadRequest
from indexer import git, syntax, walk
from indexer.errors import RootUnavailable
from indexer.frames import DATABASE, Plan
from indexer.languages import registry
from indexer.read import Reader

_BUDGET_S = 10.0
_NAMED = re.compile(r"identifier$|^(constant|name|variable_name|word)$")
"""Kinds of leaves that are names in the grammars of the index."""
_PACKAGES = frozenset(("c_sharp", "go", "java", "kotlin", "scala", "swift"))
"""Languages whose files see the others of their folder without an import."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A folder with what the index would read of a repository. `digest` is of all paths and bytes."""

    root: Path
    texts: dict[str, bytes]
    """Path → UTF-8 text, for files whose bytes are exactly that, with LF line ends."""
    digest: str


def commit(root: Path) -> str:
    """What is checked out, with a word when files differ from it; empty without git."""
    head = git.call(str(root), "rev-parse", "HEAD")
    if head is None:
        return ""
    changed = git.call(str(root), "status", "--porcelain", "-uno", "--", ".")
    return head.decode().strip()[:12] + (" with changes" if changed else "")


def copy(root: Path, target: Path) -> Copy:
    """Copy the files that an index reads from `root` to `target`. Raises BadRequest."""
    texts: dict[str, bytes] = {}
    digest = hashlib.sha256()
    try:
        listed = sorted(walk.list_files(root), key=lambda stat: stat.path)
    except RootUnavailable as error:
        raise BadRequest(f"{root}: {error}", "Give --root the folder of a repository") from error
    for stat in listed:
        loaded = walk.load(root, stat.path)
        if loaded is None or loaded.text is None:
            continue
        place = target / stat.path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / stat.path, place)
        data = place.read_bytes()
        digest.update(f"{stat.path}\0{len(data)}\0".encode() + data)
        if data == loaded.text and b"\r" not in data:
            texts[stat.path] = data
    return Copy(target, texts, digest.hexdigest())


async def sources(made: Copy, folder: Path, progress: Progress) -> tuple[Source, ...]:
    """What the indexer finds in the copy, its database in `folder`."""
    with IndexChild(made.root, folder, Plan(), once=True) as child:
        await child.finished(progress)
    if child.state is None or not child.state.complete:
        raise RuntimeError(f"the copy was not indexed: {child.state}")
    with Reader(folder / DATABASE) as reader:
        return tuple(_source(reader, path, text, made) for path, text in made.texts.items())


def write(made: Copy, found: Sequence[Source], masks: Sequence[Mask]) -> dict[str, bytes]:
    """Take the masked spans out of the files of the copy; every file's text as it is now."""
    texts = masked(found, masks)
    for path in {mask.path for mask in masks}:
        (made.root / path).write_bytes(texts[path])
    return texts


def _source(reader: Reader, path: str, text: bytes, made: Copy) -> Source:
    row = reader.file(path)
    language = registry.language_for(path, text[: registry.HEAD])
    if row is None or row.reason or language is None:
        return Source(path, "", text)
    imported = _imported(reader, path, made.texts)
    near = {further for one in imported for further in _imported(reader, one, made.texts)} | {*imported}
    if language.name in _PACKAGES:
        near |= {other for other in made.texts if other.rpartition("/")[0] == path.rpartition("/")[0]}
    return Source(
        path=path,
        language=row.language,
        text=text,
        symbols=reader.symbols(path),
        names=tuple(_names(syntax.parse(text, language, _BUDGET_S))),
        import_lines=_import_lines(reader, path),
        imported=imported,
        near=frozenset(near) - {path},
    )


def _imported(reader: Reader, path: str, texts: Collection[str]) -> tuple[str, ...]:
    """Those that are among `texts`: one with CR LF is in the index, and no text is taken from it."""
    found = [edge for edge in reader.edges(path) if edge.imports and edge.path in texts]
    return tuple(edge.path for edge in sorted(found, key=lambda e: (-e.uses, -e.imports, e.path)))


def _import_lines(reader: Reader, path: str) -> frozenset[int]:
    lines = {one.line for one, _ in reader.imports(path)}
    return frozenset(lines | {one.line for one in reader.references(path) if one.role == "import"})


def _names(tree: syntax.Tree) -> Iterator[tuple[int, str]]:
    """Identifiers from first to last."""
    cursor, entering = tree.walk(), True
    while True:
        node = cursor.node
        if entering and node is not None and node.text and _NAMED.search(node.type) and not node.child_count:
            yield node.start_byte, node.text.decode()
        if entering and cursor.goto_first_child():
            continue
        entering = cursor.goto_next_sibling()
        if not entering and not cursor.goto_parent():
            return
