"""Checkouts with hard ignore rules, built on the spot, and git's own word on what counts in them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always")


def git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, check=True, capture_output=True).stdout


def start(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    return folder


def fill(folder: Path, *paths: str, text: str = "x\n") -> None:
    for path in paths:
        where = folder / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(text, encoding="utf-8")


def rules(folder: Path, *lines: str, name: str = ".gitignore") -> None:
    fill(folder, name, text="".join(f"{line}\n" for line in lines))


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


def nested(root: Path) -> Path:
    start(root)
    rules(root, "*.log", "/out", "tmp/", "!important.log")
    rules(root, "!*.log", "local.txt", name="a/.gitignore")
    rules(root, "*.log", "!../x.log", name="a/b/.gitignore")
    fill(
        root, "x.log", "important.log", "out/f", "a/out/f", "a/x.log", "a/local.txt", "local.txt", "a/b/x.log"
    )
    fill(root, "a/b/important.log", "tmp/x", "a/tmp/y", "a/b/c/tmp", "a/b/c/local.txt", "a/b/c/x.txt")
    return root


def negation(root: Path) -> Path:
    start(root)
    rules(root, "*", "!*/", "!*.py", "!.gitignore", "closed/", "!closed/in.py", "secret*", "!secretive.py")
    rules(root, "!data.bin", "x.py", name="deep/er/.gitignore")
    fill(
        root,
        "a.py",
        "b.txt",
        "d/c.py",
        "d/c.txt",
        "closed/in.py",
        "closed/er/in.py",
        "secret.py",
        "secretive.py",
    )
    fill(root, "deep/er/data.bin", "deep/er/x.py", "deep/er/y.py", "deep/data.bin")
    return root


def anchored(root: Path) -> Path:
    start(root)
    rules(
        root, "/a", "b/", "c/*", "**/d", "e/**/f", "g/**", "!g/keep", "h/*/i", "/j/*.o", "!c/inner/", "k/**/"
    )
    fill(
        root,
        "a",
        "x/a",
        "b/f",
        "x/b/f",
        "x/bfile",
        "c/f",
        "c/inner/f",
        "x/c/f",
        "d/f",
        "x/y/d",
        "e/f",
        "e/1/f",
    )
    fill(
        root,
        "e/1/2/f",
        "e/1/2/g",
        "g/f",
        "g/keep",
        "g/h/keep",
        "h/1/i",
        "h/1/2/i",
        "j/x.o",
        "j/k/x.o",
        "x/j/y.o",
    )
    fill(root, "k/f", "k/l/f", "k/l/m/f")
    return root


def escapes(root: Path) -> Path:
    start(root)
    rules(
        root,
        "# comment",
        "",
        r"\#hash",
        r"\!bang",
        "[ab].txt",
        "[!a-c]z",
        "q?.md",
        "trail   ",
        r"kept\ ",
        "*.O",
    )
    with (root / ".gitignore").open("a", encoding="utf-8") as file:
        file.write("crlf.txt\r\n\t\n[unclosed\nfoo[0-9]*bar\n**\\x\nstar\\*\n   lead\n")
    fill(
        root,
        "#hash",
        "!bang",
        "a.txt",
        "c.txt",
        "az",
        "dz",
        "q1.md",
        "q12.md",
        "trail",
        "trail   ",
        "kept ",
        "kept",
    )
    fill(
        root,
        "x.o",
        "x.O",
        "crlf.txt",
        "[unclosed",
        "foo12bar",
        "fooxbar",
        "star*",
        "starx",
        "lead",
        "   lead",
    )
    return root


def outside(root: Path) -> Path:
    start(root)
    rules(root, "from-info", "!both", "shared/", name=".git/info/exclude")
    rules(root, "!from-user-but-wanted")
    fill(
        root,
        "from-info",
        "from-user",
        "from-user-but-wanted",
        "both",
        "shared/x",
        "x/from-user",
        "x/from-info",
    )
    return root


def tracked(root: Path) -> Path:
    start(root)
    fill(root, "gen/kept.py", "gen/other.py", "was.py", "cached.py", "gone/a.py", "plain.py")
    commit(root)
    rules(root, "gen/", "cached.py", "*.tmp")
    fill(root, "gen/new.py", "x.tmp", "forced.tmp")
    git(root, "add", "-f", "forced.tmp")
    git(root, "rm", "-q", "--cached", "cached.py")
    (root / "was.py").unlink()
    (root / "gone/a.py").unlink()
    (root / "gone").rmdir()
    return root


def modules(root: Path) -> Path:
    leaf, inner = start(root.parent / "leaf"), start(root.parent / "inner")
    rules(leaf, "*.leaf")
    fill(leaf, "l.py")
    commit(leaf)
    rules(inner, "*.inner", "!x.log")
    fill(inner, "i.py", "with/more.py")
    git(inner, "submodule", "add", "-q", str(leaf), "deps/leaf")
    commit(inner)
    start(root)
    rules(root, "*.log", "*.leaf", "clones/")
    git(root, "submodule", "add", "-q", str(inner), "libs/inner")
    git(root, "submodule", "add", "-q", str(leaf), "libs/absent")
    commit(root)
    git(root, "submodule", "update", "-q", "--init", "--recursive")
    git(root, "submodule", "deinit", "-q", "-f", "libs/absent")
    fill(root, "libs/inner/x.log", "libs/inner/y.inner", "libs/inner/z.leaf", "libs/inner/deps/leaf/a.leaf")
    fill(root, "libs/inner/deps/leaf/b.log", "libs/outer.py", "x.log")
    start(root / "embedded")
    fill(root, "embedded/e.py", "clones/c.py")
    return root


def worktree(root: Path) -> Path:
    main = start(root.parent / "main-checkout")
    rules(main, "*.log")
    fill(main, "a.py", "b/c.py")
    commit(main)
    rules(main, "shared-exclude", name=".git/info/exclude")
    git(main, "worktree", "add", "-q", str(root), "-b", "side")
    fill(root, "new.py", "x.log", "shared-exclude")
    return root


def names(root: Path) -> Path:
    start(root)
    fill(root, ".gitignore", text="\ufeffbom.txt\ncaf\u00e9/\n*.tab\t\n\u4e2d*\n")
    fill(
        root,
        "bom.txt",
        "caf\u00e9/x",
        "cafe/x",
        "\u4e2d\u6587.py",
        "x/\u4e2d.py",
        "with space.py",
        "new\nline.py",
    )
    fill(
        root,
        "$(touch x);.py",
        'quo"te.py',
        "tab\there.py",
        "-c",
        "--help",
        ":(top)x",
        "*",
        "x/.gitignore/y",
        "a\\b",
    )
    (root / os.fsdecode(b"not-\xff-utf8.py")).write_bytes(b"x")
    return root


def below(root: Path) -> Path:
    """The root is a folder of the checkout: rules above it hold, and links lead everywhere."""
    top = start(root.parent / "top")
    rules(top, "*.log", "pkg/out", "/root.txt", "!pkg/in.log")
    here = top / "pkg"
    rules(here, "*.tmp", "!keep.tmp")
    fill(top, "outer.py", "pkg/root.txt", "pkg/a.py", "pkg/out/x")
    fill(top, "pkg/x.log", "pkg/in.log", "pkg/x.tmp", "pkg/keep.tmp")
    fill(here, "real/r.py", "swapped/s.py", "other/s.py")
    commit(top)
    links = ("loop", "."), ("up", ".."), ("all", "/"), ("r", "real"), ("f", "a.py"), ("bad", "none")
    for name, to in links:
        (here / name).symlink_to(to)
    (here / "real/back").symlink_to("..")
    (here / "swapped/s.py").unlink()
    (here / "swapped").rmdir()
    (here / "swapped").symlink_to("other")
    fill(top, "rules", text="hidden.py\n")
    (here / "real/.gitignore").symlink_to("../../rules")
    fill(here, "real/hidden.py")
    return here


HARD: dict[str, Callable[[Path], Path]] = {
    "nested": nested, "negation": negation, "anchored": anchored, "escapes": escapes, "outside": outside,
    "tracked": tracked, "modules": modules, "worktree": worktree, "names": names, "below": below,
}  # fmt: skip
"""Name → builder of a checkout in the folder given, which does not exist yet; gives the root to index."""


def said_by_git(root: Path, lead: str = "") -> set[str]:
    """`git ls-files -co --exclude-standard` there and in each submodule: what is on disk and no link."""
    found: set[str] = set()
    links = {
        e.rpartition(b"\t")[2] for e in git(root, "ls-files", "-s", "-z").split(b"\0") if e[:6] == b"160000"
    }
    for raw in git(root, "ls-files", "-co", "--exclude-standard", "-z").split(b"\0")[:-1]:
        path = os.fsdecode(raw)
        where = root / path
        if raw in links:
            found |= said_by_git(where, f"{lead}{path}/") if (where / ".git").exists() else set()
        elif where.is_file() and not where.is_symlink() and where.resolve() == root.resolve() / path:
            found.add(f"{lead}{path}")
    return found
