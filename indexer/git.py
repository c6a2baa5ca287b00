"""git as a reader: asked about a checkout without running anything that the checkout's own settings name.

A repository's config holds command strings (fsmonitor, hooks, pagers, ssh, filters, remote helpers). The
calls made here never convert content, never fetch and never write; settings that could still start a process
are overridden on the command line, transports are forbidden, and the environment's GIT_* variables are
dropped, except those that name the user's own configuration files.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence

log = logging.getLogger(__name__)

OVERRIDES: tuple[str, ...] = (
    "core.fsmonitor=",
    f"core.hooksPath={os.devnull}",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.askPass=",
    "core.pager=cat",
    "core.editor=false",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "diff.external=",
    "interactive.diffFilter=",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "sequence.editor=false",
    "uploadpack.packObjectsHook=",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "maintenance.auto=false",
    "gc.auto=0",
)
KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
TIMEOUT_S = 60.0
_LIST = ("--literal-pathspecs", "ls-files", "-t", "-s", "-c", "-o", "-z", "--exclude-standard")
_ARGUMENTS = 60_000
"""Bytes of paths given to one call; systems allow more."""


def environment() -> dict[str, str]:
    """This process's environment as git gets it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k in KEPT}
    return kept | {
        "GIT_OPTIONAL_LOCKS": "0",  # never touches .git/index
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # no transport has this name
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "LC_ALL": "C",
    }


def program(inside: str) -> str | None:
    """The user's git; None when there is none, or when it would come from the folder `inside` itself."""
    found = shutil.which("git")
    if found is None or not os.path.isabs(found):
        return None
    real, top = os.path.realpath(found), os.path.realpath(inside)
    return None if real == top or real.startswith(top + os.sep) else found


def call(folder: str, *arguments: str, given: bytes = b"", allowed: Sequence[int] = (0,)) -> bytes | None:
    """What `git ARGUMENTS` prints, run in `folder`; None when git is absent, refuses or takes too long."""
    binary = program(folder)
    if binary is None:
        return None
    options = [part for item in OVERRIDES for part in ("-c", item)]
    try:
        done = subprocess.run(
            [binary, "--no-pager", *options, *arguments],
            cwd=folder, env=environment(), input=given, capture_output=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        log.warning("git could not be asked: %s", type(error).__name__)
        return None
    if done.returncode not in allowed:
        log.info("git %s answered %d", " ".join(arguments[:2]), done.returncode)
        return None
    return done.stdout


def list_files(folder: str, paths: Sequence[str] = ()) -> tuple[list[str], list[str]] | None:
    """(files, submodules) that `git ls-files -co --exclude-standard` lists in `folder`, or for `paths` only.

    None when git cannot say. Files may be absent on disk. Untracked repositories inside are not listed, as
    git does not look into them.
    """
    files: set[str] = set()
    modules: list[str] = []
    for part in batches(paths) if paths else [()]:
        out = call(folder, *_LIST, "--", *part)
        if out is None:
            return None
        for record in out.split(b"\0")[:-1]:
            if record.startswith(b"? "):
                if not record.endswith(b"/"):
                    files.add(os.fsdecode(record[2:]))
            elif record.startswith(b"160000 ", 2):
                modules.append(os.fsdecode(record.partition(b"\t")[2]))
            else:
                files.add(os.fsdecode(record.partition(b"\t")[2]))
    return sorted(files), modules


def ignored(folder: str, paths: Sequence[str]) -> set[str] | None:
    """Those of `paths` that git ignores. None when git cannot say."""
    # "./" keeps a name like ":(top)x" from being read as a pattern.
    given = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    out = call(folder, "check-ignore", "-z", "--stdin", given=given, allowed=(0, 1))
    return None if out is None else {os.fsdecode(record[2:]) for record in out.split(b"\0")[:-1]}


def folders(folder: str) -> tuple[str, str] | None:
    """(git directory, common git directory) of the checkout, absolute. None when git cannot say."""
    out = call(folder, "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir")
    lines = os.fsdecode(out).split("\n") if out is not None else []
    return (lines[0], lines[1]) if len(lines) == 3 else None


def outside(folder: str) -> tuple[str, ...]:
    """Files of the user whose change alters what is ignored in `folder`: their ignore file, and the settings
    that name it. Some may not exist."""
    home = os.path.expanduser("~")
    own = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git")
    out = call(folder, "config", "--type=path", "--get", "core.excludesFile", allowed=(0, 1))
    ignore = os.path.join(folder, os.fsdecode(out).rstrip("\n")) if out else os.path.join(own, "ignore")
    named = os.environ.get("GIT_CONFIG_GLOBAL")
    settings = (named,) if named else (os.path.join(home, ".gitconfig"), os.path.join(own, "config"))
    return (ignore, *settings, os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")


def batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """`paths` in pieces that fit one command line."""
    start = size = 0
    for end, path in enumerate(paths):
        size += len(path) * 4 + 8
        if size > _ARGUMENTS and end > start:
            yield paths[start:end]
            start, size = end, len(path) * 4 + 8
    if start < len(paths):
        yield paths[start:]
