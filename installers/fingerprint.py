"""Print one hash of files, folders and words: what the installers compare to see whether anything changed.

    python -I fingerprint.py ROOT [--word TEXT]... NAME...

NAMEs are files or folders below ROOT; a missing one counts as empty. Needs only the standard library.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path


def files(where: Path) -> Iterator[Path]:
    """Every file at or below `where` in a fixed order, compiled Python left out."""
    if where.is_file():
        yield where
    for path in sorted(where.rglob("*")) if where.is_dir() else ():
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def fingerprint(root: Path, names: list[str], words: list[str]) -> str:
    """Hexadecimal, 24 characters."""
    digest = hashlib.sha256()
    for word in words:
        digest.update(f"word {len(word.encode())} {word}\n".encode())
    for name in names:
        for path in files(root / name):
            data = path.read_bytes()
            digest.update(f"file {path.relative_to(root).as_posix()} {len(data)}\n".encode())
            digest.update(data)
    return digest.hexdigest()[:24]


def main() -> None:
    """Read the command line, print the hash."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--word", action="append", default=[])
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_intermixed_args()
    sys.stdout.write(fingerprint(arguments.root, arguments.names, arguments.word) + "\n")


if __name__ == "__main__":
    main()
