"""Random work on a checkout, as people and tools do it: create, edit, rename, ignore, switch branches."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

WORDS = ("alpha", "beta", "gamma", "delta", "größe", "omega", "kappa", "sigma")
"""The names of everything that the files define and use."""


def git(root: Path, *arguments: str) -> None:
    """One git command in `root`, as nobody in particular. Raises CalledProcessError."""
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", "-c", "gc.auto=0"]
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


class Work:
    """A checkout made in `root`, which must not exist, and random operations on it."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.rng = random.Random(seed)
        self.done = 0
        root.mkdir(parents=True)
        git(root, "init", "-q", "-b", "main")
        for _ in range(12):
            self._create()
        git(root, "add", "-A")
        git(root, "commit", "-qm", "first")
        git(root, "branch", "other")

    def do(self, times: int) -> None:
        """So many operations."""
        kinds = [self._create, self._edit, self._edit, self._edit, self._rename, self._delete, self._chmod,
                 self._atomic, self._touch, self._move_folder, self._ignore, self._branch]  # fmt: skip
        weights = [6, 6, 4, 2, 4, 3, 2, 4, 2, 1, 1, 1]
        for _ in range(times):
            self.rng.choices(kinds, weights)[0]()
            self.done += 1

    def _files(self) -> list[Path]:
        return sorted(p for p in self.root.rglob("*") if p.is_file() and ".git" not in p.parts)

    def _text(self, suffix: str) -> str:
        one, two, three = (self.rng.choice(WORDS) for _ in range(3))
        number = self.rng.randrange(1000)
        if suffix == ".py":
            return (
                f'"""About {one}."""\n\nfrom pkg.{two} import {three}\n\n\nclass {one.title()}:\n'
                f"    def {two}(self, a: int) -> int:\n        return {three}(a) + {number}\n\n\n"
                f"def {three}(x):\n    return {one.title()}().{two}(x)\n"
            )
        if suffix == ".ts":
            return (
                f'import {{ {three} }} from "./{two}";\n\n'
                f"export class {one} {{\n  {two}(a: number): number {{\n"
                f"    return {three}(a) + {number};\n  }}\n}}\n"
            )
        return f"# {one}\n\nSome words on {two} and {three}: {number}.\n"

    def _create(self) -> None:
        folder = self.root / self.rng.choice(("", "pkg", "pkg/sub", "src", "build"))
        suffix = self.rng.choice((".py", ".py", ".ts", ".md"))
        place = folder / f"{self.rng.choice(WORDS)}{self.rng.choice(('', '1', '2'))}{suffix}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(self._text(suffix), encoding="utf-8")

    def _pick(self) -> Path | None:
        files = [p for p in self._files() if p.suffix in (".py", ".ts", ".md")]
        return self.rng.choice(files) if files else None

    def _edit(self) -> None:
        if (place := self._pick()) is not None:
            place.write_text(self._text(place.suffix), encoding="utf-8")

    def _atomic(self) -> None:
        if (place := self._pick()) is not None:
            part = place.with_name(f"{place.name}.tmp~")
            part.write_text(self._text(place.suffix), encoding="utf-8")
            part.replace(place)

    def _touch(self) -> None:
        if (place := self._pick()) is not None:
            os.utime(place)

    def _rename(self) -> None:
        if (place := self._pick()) is not None:
            place.rename(place.with_name(f"{self.rng.choice(WORDS)}{self.rng.randrange(9)}{place.suffix}"))

    def _delete(self) -> None:
        if (place := self._pick()) is not None:
            place.unlink()

    def _chmod(self) -> None:
        if (place := self._pick()) is not None:
            place.chmod(self.rng.choice((0o644, 0o755)))

    def _move_folder(self) -> None:
        folders = [p for p in sorted(self.root.iterdir()) if p.is_dir() and p.name != ".git"]
        if folders:
            place = self.rng.choice(folders)
            other = place.with_name(self.rng.choice(("moved", "lib", "pkg", "src")))
            if not other.exists():
                place.rename(other)

    def _ignore(self) -> None:
        rules = self.rng.choice(("build/\n", "*.md\n!größe.md\n", "", "pkg/sub/\n", "*1.py\n"))
        (self.root / ".gitignore").write_text(rules, encoding="utf-8")

    def _branch(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "more", "--allow-empty")
        git(self.root, "checkout", "-q", self.rng.choice(("main", "other")))
