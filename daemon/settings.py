"""One defaulted tree of settings: config/default.toml documents each key and is proved equal by a test.

How files fill it is in loading.py. What a project's file may say afterwards is marked at each key.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from daemon.nouns import Lines

PROJECT = "project"
Lowered = Annotated[int, msgspec.Meta(extra={PROJECT: "lower"})]
"""A project may lower it."""
Ended = Annotated[bool, msgspec.Meta(extra={PROJECT: "only false"})]
"""A project may make it false."""
Extended = Annotated[tuple[str, ...], msgspec.Meta(extra={PROJECT: "add"})]
"""Leaves something out; a project may add to it."""
Shortened = Annotated[Lines, msgspec.Meta(extra={PROJECT: "shorten"})]
"""A project may ask for shorter answers."""
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every section: frozen, and unknown keys are refused."""


class Switch(Section, frozen=True):
    """How much answers may hold in some files."""

    pattern: str
    """As in .gitignore, without `!`."""
    lines: Lines


ByPath = Annotated[tuple[Switch, ...], msgspec.Meta(extra={PROJECT: "shorten each"})]
ByLanguage = Annotated[dict[str, Lines], msgspec.Meta(extra={PROJECT: "shorten each"})]
"""A project may ask for shorter answers in some files."""


class Server(Section, frozen=True):
    """Where requests come in."""

    port: int = 8012
    """Loopback TCP port; 0 lets the system choose."""
    tcp: bool = True
    """False leaves only the Unix socket."""
    extra_ports: tuple[int, ...] = ()
    """Further loopback ports, for clients that look elsewhere and cannot be told; a taken one is left out."""
    token: str = ""
    """When set, every request must carry `Authorization: Bearer <token>`."""
    max_body_mb: int = 8
    max_concurrent: int = 64
    """Requests in the house at once."""
    high_mark: int = 85
    """Percent of max_concurrent: when so many clients wait for completions, another one gets none, …"""
    low_mark: int = 25
    """… until so few wait, or fewer than that and the time is over that it was told to wait."""
    client_per_s: int = 100
    """Requests of one client in a second that it does not wait for; 0: no limit."""
    read_s: float = 10.0
    """A client that does not read what it is sent for so long is dropped."""


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
    split_mode: Literal["layer", "row", "none"] = "layer"
    """How several GPUs share a model: whole layers, rows of each matrix, or all of it on `main_gpu`."""
    tensor_split: tuple[float, ...] = ()
    """Each GPU's share of the model, in any unit; empty: by free memory."""
    main_gpu: int = 0
    """The GPU that has all of it (none), or what cannot be split (row)."""
    kv_type: Literal["f16", "q8_0"] = "f16"
    flash_attention: Literal["auto", "on", "off"] = "auto"
    """auto: on where a test decode with it succeeds. Without it every step pays for all that the cache holds,
    and a quantized KV cache is not possible."""
    kv_offload: Literal["auto", "on", "off"] = "auto"
    """Whether the KV cache of layers on a GPU lies there too; auto: what measured faster."""
    slice: int = 0
    """Prompt tokens per decode call; 0: from the profile, so that one slice stays near `tick_ms`."""
    tick_ms: int = 0
    """Budget of one decode, which a new keystroke may have to wait for; 0: 25 on a GPU, 150 on a CPU."""
    max_delay_ms: int = 5
    """While several clients ask, how long an idle engine waits for a second request to join the first."""
    max_batch: int = 256
    """Most rows of one decode call; compute buffers grow with it."""
    concurrency: int = 8
    """Requests that are answered at once; of each other lane a quarter as many besides."""
    draft: Literal["auto", "off", "free"] = "auto"
    """auto: whatever pays on this machine; free: never a draft model; off: one token per step."""
    draft_model: str = ""
    """A small model with the same vocabulary: a catalogue name or a path; empty: none."""
    draft_device: Annotated[str, msgspec.Meta(pattern="^(auto|cpu|gpu:[0-9]{1,2})$")] = "auto"
    """Where it runs; auto: beside the main model, or on another GPU or the CPU where that measured faster."""
    route_simple: bool = False
    """What is simple (comments, strings, arguments, …) is answered by the draft model alone."""
    draft_sure: Percent = 70
    """The draft model guesses on while it gives all of its guess this probability, in percent."""
    page_mb: int = 256
    """Host memory for evaluated text of files that the context has no room for; 0: none."""
    disk_mb: int = 2048
    """The same on disk, where it survives a restart; 0: none, and what was kept is removed."""
    load_timeout_s: int = 300


class Context(Section, frozen=True):
    """What of the document and of its repository the model sees."""

    anchor_lines: int = 3
    """Lines above the first edit of a burst where the middle begins."""
    heal: bool = True
    prefix_tokens: Lowered = 768
    suffix_tokens: Lowered = 128
    extra_tokens: Lowered = 2048
    """Most of the snippets that a client sends; from a project, of stable context as well."""
    idle: bool = True
    """Evaluate a better anchor, and stable context, while nobody types."""
    middle_tokens: Lowered = 384
    """A middle longer than this moves the anchor."""
    jump_ms: int = 1000
    """On a slow machine the window after a jump shrinks until its evaluation fits this time."""
    stable: bool = True
    """Show related code of the repository before the prefix."""
    shares: tuple[Percent, Percent, Percent, Percent, Percent] = (40, 20, 15, 15, 10)
    """Percents of the whole prompt for P0 to P4. P0 takes what the window needs; what is left over goes to
    the best pieces without room."""
    best: int = 15
    """Pieces that compete for the share of P2, and of P3."""
    stable_tokens: int = 2048
    """Most tokens of it."""
    stable_ms: int = 6000
    """Idle time that the stable context of a file may take to evaluate; it shrinks to fit."""
    window_simple: int = 2048
    window_medium: int = 8192
    window_complex: int = 32768
    """Most prompt tokens per window class; a slower machine gets a smaller share of each."""
    output_simple: int = 32
    output_medium: int = 64
    output_complex: int = 192
    """Most tokens of an answer per window class."""


class Complete(Section, frozen=True):
    """What an answer may hold."""

    on: Ended = True
    """False: every answer is empty."""
    ignore: Extended = ()
    """Files that are left out everywhere: patterns as in .gitignore, without `!` (indexer/globs.py)."""
    lines: Shortened = "auto"
    languages: ByLanguage = {}
    """Language, by our name or an editor's → `lines` there."""
    paths: ByPath = ()
    """`lines` of files: these win over languages, and of them the last that matches."""
    comments: Ended = False
    """True: answers inside comments, asked for or not."""
    strings: Ended = False
    max_tokens: Lowered = 64
    time_ms: Lowered = 2000
    temperature: float = 0.0
    top_p: float = 0.9
    coalesce_ms: int = 50
    """Requests of one document so close to each other may share one run; 0: none do."""
    debounce_ms: int = 150
    """Most that a request waits for the next key, where answers come too late for who types; 0: none does."""


class Recall(Section, frozen=True):
    """Answers without the model: what was answered once, as far as it still holds."""

    on: bool = True
    prefetch: bool = True
    """Ask in advance what a person asks who takes the answer."""
    mb: int = 16
    """Memory for answers."""


class Index(Section, frozen=True):
    """The repository index."""

    on: Ended = True
    """False: nothing is read and no process runs; from a project: nothing of it is kept."""
    ignore: Extended = ()
    """Files that only the index leaves out, beyond git's rules."""
    roots: tuple[str, ...] = ()
    """Folders to index, beside those registered with `foretype index add`."""
    workers: int = 0
    """Parsing processes; 0: from the number of cores."""
    max_file_kb: int = 1024
    max_line: int = 20_000
    """Files that are larger, or hold a longer line (bytes), are skipped."""
    max_files: Lowered = 200_000
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


class Power(Section, frozen=True):
    """What is saved on battery, and while nobody works."""

    battery: Literal["spare", "same"] = "spare"
    """spare: on battery a smaller window, nothing evaluated ahead; same: as on the mains."""
    window_percent: Percent = 50
    """Of the window, on battery."""
    unload_minutes: float = 60.0
    """The model leaves memory when nothing was asked for so long; 0: it stays."""


class Ledger(Section, frozen=True):
    """What is remembered of requests."""

    on: bool = True
    """False: nothing is kept, and what was kept is removed."""
    rows: int = 2000
    """The newest requests; older ones go."""
    keep_text_minutes: float = 30.0
    """How long prompts and answers are kept beside the counts; 0: never; -1: as long as their rows."""
    answers: int = 20_000
    """The newest answers of which it is remembered what became of them: counts and times."""
    shown_ms: int = 750
    """An answer that stood for less counts as shown only where the editor says so or it was taken."""


class Doors(Section, frozen=True):
    """How other dialects are understood."""

    retemplate: bool = True
    """Prompts that a client rendered for a model are taken apart, and get our own order and context. False:
    they are evaluated token for token as sent."""


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
    recall: Recall = Recall()
    index: Index = Index()
    power: Power = Power()
    ledger: Ledger = Ledger()
    doors: Doors = Doors()
    logs: Logs = Logs()
