"""A real indexer process on a real folder, what its database holds, and random work on a checkout."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from indexer.errors import IndexDamaged
from indexer.frames import DATABASE, Begin, End, Frame, Plan, RootSpec, RootState, Source, State, pack
from indexer.read import Reader

DEADLINE_S = 60.0
WORDS = ("alpha", "beta", "gamma", "delta", "größe", "omega", "kappa", "sigma")


class Indexer:
    """`python -I -m indexer` for one root. Ended on leaving; `kill` ends it as a power cut would."""

    def __init__(
        self, root: Path, folder: Path, *, once: bool = False, generation: int = 0, **plan: Any
    ) -> None:
        self.folder = folder
        self.states: list[State] = []
        self._heard = threading.Condition()
        spec = RootSpec(path=str(root), folder=str(folder), generation=generation)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-m", "indexer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.send(Begin(roots=(spec,), plan=Plan(**plan), once=once))
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def send(self, message: Frame) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(pack(message))
        self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        source: Source[State] = Source(self.process.stdout, State)
        while (state := source.read()) is not None:
            with self._heard:
                self.states.append(state)
                self._heard.notify_all()

    @property
    def state(self) -> RootState | None:
        return self.states[-1].roots[0] if self.states and self.states[-1].roots else None

    def wait(self, wanted: Callable[[RootState], bool], seconds: float = DEADLINE_S) -> RootState:
        with self._heard:
            good = self._heard.wait_for(lambda: (s := self.state) is not None and wanted(s), seconds)
        assert good, self.state
        assert self.state is not None
        return self.state

    def ready(self) -> RootState:
        return self.wait(lambda state: state.phase == "ready")

    def finish(self) -> RootState:
        """With `once`: the last state."""
        assert self.process.wait(DEADLINE_S) == 0
        self._thread.join(10.0)
        assert self.state is not None
        self._shut()
        return self.state

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10.0)
        self._thread.join(10.0)
        self._shut()

    def _shut(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.send(End())
            assert self.process.stdin is not None
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            try:
                self.process.wait(15.0)
            finally:
                self.process.kill()
                self.process.wait()
        self._thread.join(10.0)
        self._shut()


def index_once(root: Path, folder: Path, **plan: Any) -> RootState:
    return Indexer(root, folder, once=True, **plan).finish()


def dump(folder: Path) -> dict[str, Any]:
    """Everything that the reading side shows of each file, times left out."""
    found: dict[str, Any] = {}
    with Reader(folder / DATABASE) as reader:
        page = reader.files()
        while page:
            for row in page:
                path = row.path
                found[path] = (
                    (row.size, row.digest, row.language, row.reason, row.lines, row.tokens),
                    reader.symbols(path),
                    reader.references(path),
                    reader.imports(path),
                    reader.outlines(path),
                    reader.chunks(path),
                    sorted((e.path, e.imports, e.uses) for e in reader.edges(path)),
                )
            page = reader.files(after=page[-1].path)
        for word in WORDS:
            places = [(p.path, p.number) for p in reader.definitions(word, 100)]
            uses = [(u.path, u.reference.line, u.reference.start_byte) for u in reader.callers(word, 100)]
            found[f"//{word}"] = sorted(places), sorted(uses)
    return found


def until_equal(folder: Path, fresh: dict[str, Any], seconds: float = DEADLINE_S) -> None:
    """The database in `folder` comes to hold what `fresh` does."""
    deadline, now = time.monotonic() + seconds, {}
    while time.monotonic() < deadline:
        with contextlib.suppress(IndexDamaged):
            now = dump(folder)
            if now == fresh:
                return
        threading.Event().wait(0.05)
    keys = {key for key in now.keys() | fresh.keys() if now.get(key) != fresh.get(key)}
    detail = {k: (now.get(k), fresh.get(k)) for k in sorted(keys)[:3]}
    raise AssertionError(f"{len(keys)} differ: {sorted(keys)[:20]}: {detail}")


def git(root: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", "-c", "gc.auto=0"]
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


class Work:
    """Random operations on a checkout, as people and tools do them."""

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
