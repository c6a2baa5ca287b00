"""One defaulted tree of settings. An unknown key is an error that names it.

Order: defaults here (config/default.toml documents each and is proved equal by a test) → the user's
config.toml → command-line flags. Nothing is read from a project, so a checkout cannot change a setting.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from daemon import paths
from daemon.errors import SettingsError

T = TypeVar("T", bound="Section")
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every section: frozen, and unknown keys are refused."""


class Server(Section, frozen=True):
    """Where requests come in."""

    port: int = 8012
    """Loopback TCP port; 0 lets the system choose."""
    tcp: bool = True
    """False leaves only the Unix socket."""
    token: str = ""
    """When set, every request must carry `Authorization: Bearer <token>`."""
    max_body_mb: int = 8
    max_concurrent: int = 64


class Engine(Section, frozen=True):
    """How llama.cpp is run."""

    model: str = "qwen2.5-coder-0.5b-q4_k_m"
    """A catalogue name, or a path to a GGUF file."""
    backend: Literal["auto", "gpu", "cpu"] = "auto"
    context: int = 8192
    """Cells of the KV cache, in tokens."""
    threads: int = 0
    """0: measured at start."""
    gpu_layers: int = -1
    """-1: all that fit."""
    kv_type: Literal["f16", "q8_0"] = "f16"
    flash_attention: Literal["auto", "on", "off"] = "auto"
    """auto: on for a GPU and for a quantized KV cache, which needs it; off on a CPU, where llama.cpp's kernel
    accumulates in f16: prompt evaluation measured 20 % slower at 1,024 and 45 % at 3,000 tokens, and less
    exact."""
    slice: int = 0
    """Prompt tokens per decode call; 0: from the profile, so that one slice stays near `slice_ms`."""
    slice_ms: int = 150
    load_timeout_s: int = 300


class Context(Section, frozen=True):
    """What of the document the model sees."""

    anchor_lines: int = 3
    """Lines above the first edit of a burst where the middle begins."""
    heal: bool = True
    prefix_tokens: int = 768
    suffix_tokens: int = 128
    extra_tokens: int = 2048
    idle: bool = True
    """Evaluate a better anchor while nobody types."""
    middle_tokens: int = 384
    """A middle longer than this moves the anchor."""
    jump_ms: int = 1000
    """On a slow machine the window after a jump shrinks until its evaluation fits this time."""
    shares: tuple[Percent, Percent, Percent, Percent, Percent] = (40, 20, 15, 15, 10)
    """Percents of the prompt for P0 (the window), P1 (enclosing definitions), P2 (what is referenced), P3
    (other files) and P4 (history). What one does not need goes to the others."""
    best: int = 15
    """Pieces of P2 and of P3 that compete for their shares."""


class Complete(Section, frozen=True):
    """What an answer may hold."""

    lines: Literal["auto", "line", "block", "free"] = "auto"
    max_tokens: int = 64
    time_ms: int = 2000
    temperature: float = 0.0
    top_p: float = 0.9


class Index(Section, frozen=True):
    """The repository index."""

    on: bool = True
    """False: nothing is read and no process runs."""
    roots: tuple[str, ...] = ()
    """Folders to index, beside those registered with `foretype index add`."""
    workers: int = 0
    """Parsing processes; 0: from the number of cores."""
    max_file_kb: int = 1024
    max_line: int = 20_000
    """Files that are larger, or hold a longer line (bytes), are skipped."""
    max_files: int = 200_000
    """Of one root."""
    budget_ms: int = 2000
    """Wall clock of one file's parse."""
    ngram_mb: int = 64
    """Largest n-gram file of one root; 0: none."""
    battery: Literal["defer", "run"] = "defer"
    """What a first walk does on battery; changes are always taken in."""
    busy_share: float = 0.25
    """Most of one core that indexing uses while completions run."""
    poll_s: float = 30.0
    """Period of the scan where the system cannot watch a folder."""


class Logs(Section, frozen=True):
    """Logs never contain source text."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    max_mb: int = 5
    keep: int = 3


class Settings(Section, frozen=True):
    """The whole tree."""

    server: Server = Server()
    engine: Engine = Engine()
    context: Context = Context()
    complete: Complete = Complete()
    index: Index = Index()
    logs: Logs = Logs()


def user_file() -> Path:
    """The user's settings file."""
    return paths.config_dir() / "config.toml"


def load(file: Path | None = None, overrides: dict[str, dict[str, Any]] | None = None) -> Settings:
    """Defaults, then `file` (the user's by default; absent is fine), then `overrides` by section.

    Raises SettingsError naming the file and the key.
    """
    where = file or user_file()
    tree: dict[str, Any] = _read(where) if where.exists() else {}
    if file is not None and not file.exists():
        raise SettingsError(f"settings file {file} does not exist", "Check the path given with --config")
    for section, values in (overrides or {}).items():
        tree[section] = {**tree.get(section, {}), **values}
    return _convert(tree, Settings, str(where))


def _read(where: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(where.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{where} cannot be read: {error}", "Mend the file or move it away") from error


def _convert(tree: dict[str, Any], kind: type[T], where: str) -> T:
    try:
        value = msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{where}: {error}", "config/default.toml lists every key") from error
    if isinstance(value, Settings):
        _check(value, where)
    return value


def _check(settings: Settings, where: str) -> None:
    ranges = {
        "server.port": (settings.server.port, 0, 65535),
        "server.max_body_mb": (settings.server.max_body_mb, 1, 64),
        "server.max_concurrent": (settings.server.max_concurrent, 1, 4096),
        "engine.context": (settings.engine.context, 512, 1_048_576),
        "engine.threads": (settings.engine.threads, 0, 512),
        "engine.slice": (settings.engine.slice, 0, 2048),
        "context.anchor_lines": (settings.context.anchor_lines, 0, 100),
        "context.suffix_tokens": (settings.context.suffix_tokens, 0, 65536),
        "context.prefix_tokens": (settings.context.prefix_tokens, 16, 65536),
        "context.shares": (sum(settings.context.shares), 1, 100),
        "context.best": (settings.context.best, 1, 100),
        "complete.max_tokens": (settings.complete.max_tokens, 1, 4096),
        "complete.time_ms": (settings.complete.time_ms, 1, 600_000),
        "index.workers": (settings.index.workers, 0, 64),
        "index.max_file_kb": (settings.index.max_file_kb, 1, 65_536),
        "index.max_line": (settings.index.max_line, 100, 1 << 30),
        "index.max_files": (settings.index.max_files, 1, 10_000_000),
        "index.budget_ms": (settings.index.budget_ms, 10, 600_000),
        "index.ngram_mb": (settings.index.ngram_mb, 0, 4096),
        "index.busy_share": (settings.index.busy_share, 0.01, 64.0),
        "index.poll_s": (settings.index.poll_s, 0.1, 86_400.0),
    }
    for key, (value, low, high) in ranges.items():
        if not low <= value <= high:
            raise SettingsError(f"{where}: {key} is {value}", f"Give a value from {low} to {high}")
