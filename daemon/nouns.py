"""The nouns that travel between rooms; each is frozen and made in exactly one module.

    bytes → CompletionRequest → Prompt → Generation → Completion → bytes

Text inside is LF only and free of a byte order mark; the doors translate at both edges.
Token sequences are little-endian int32 bytes (`array("i")`), so that they cross process borders unchanged.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Lines = Literal["off", "line", "auto", "block", "free"]
"""How much one answer may hold: nothing with `off`, `line` ends at the first line end, `block` at a dedent,
`auto` is `line` unless the line opens a block, `free` is ended only by stops and limits."""

StopReason = Literal[
    "eos",  # the model ended the text (any control token)
    "word",  # a stop string was found; the text is cut before it
    "line",  # one line was asked for and is complete
    "dedent",  # the block ended
    "overlap",  # the text ran into what already follows the cursor
    "closed",  # what the text would close next is closed behind the cursor already
    "repeat",  # the text repeats itself or the lines above
    "limit",  # token limit
    "time",  # time limit
    "window",  # no room left in the model's context
    "warm",  # nothing was to be generated
    "off",  # completions are switched off for this file; `note` says by what
    "cancelled",  # client gone
    "superseded",  # a newer request of the same client took over
    "engine",  # the engine failed; `note` says how
]
UNANSWERED: tuple[StopReason, ...] = ("cancelled", "superseded", "engine")
"""Stops of requests that got nothing of what they asked for."""


class Noun(msgspec.Struct, frozen=True, kw_only=True):
    """Base of everything that travels."""


class Extra(Noun, frozen=True):
    """A piece of other text the client offers as context."""

    text: str
    filename: str = ""
    kind: Literal["snippet", "diagnostic", "clipboard"] = "snippet"


class Limits(Noun, frozen=True):
    """What ends an answer. `milliseconds` counts from the end of prompt evaluation."""

    lines: Lines = "auto"
    tokens: int = 64
    milliseconds: int | None = None
    milliseconds_after_line: int | None = None
    """llama-server's `t_max_predict_ms`: ends the text once a line is complete and this time has passed."""
    deadline: int | None = None
    """Milliseconds from submission, prompt evaluation included; after them nobody waits for the answer."""
    stop: tuple[str, ...] = ()
    indent: int | None = None
    """llama-server's `n_indent`: a later line indented less than this many columns ends the text."""


class Allowance(Noun, frozen=True):
    """Most tokens of each part that this file's project lets the model see. None: as set."""

    prefix: int | None = None
    suffix: int | None = None
    middle: int | None = None
    extras: int | None = None


class Sampling(Noun, frozen=True):
    """Temperature 0 is greedy; `seed` makes sampling repeatable."""

    temperature: float = 0.0
    top_p: float = 0.9
    top_k: int = 40
    seed: int = 0


class CompletionRequest(Noun, frozen=True):
    """One question: what belongs between `prefix` and `suffix`? Made by the doors."""

    id: str
    client: str
    """Who asks. The newest request of a client supersedes its older ones."""
    door: str
    prefix: str
    suffix: str = ""
    path: str | None = None
    found: str = ""
    """Why `path` is what it is, or why there is none, where the client sent no path."""
    language: str | None = None
    whole: bool = False
    """`prefix` and `suffix` together are the whole file, not a window of it."""
    newline: str = "\n"
    """The file's own line end, restored on the way out."""
    extras: tuple[Extra, ...] = ()
    limits: Limits = Limits()
    allowance: Allowance = Allowance()
    sampling: Sampling = Sampling()
    replaces: bool = True
    """The client can replace text after the cursor; without it an answer is only ever inserted."""
    warm: bool = False
    """Evaluate the prompt, generate nothing."""
    alternative: bool = False
    """A further answer to the client's newest question: it ends no other request, and is less urgent."""
    manual: bool = False
    """A person asked for it by hand: it waits for no pause in typing, and counts as asked for anywhere."""
    comments: bool = False
    strings: bool = False
    """Whether it is to be answered inside of these too."""
    anchor_lines: int | None = None
    """Measurements only: fixed anchor distance in lines; -1 splits at the cursor. None: as planned."""
    heal: bool = True
    context: Literal["auto", "none", "now"] = "auto"
    """`none`: no stable context; `now`: chosen before the answer, whatever its evaluation takes."""
    rendered: str = ""
    """A prompt as a client rendered it: evaluated token for token in place of `prefix` and `suffix`, which
    say what document it shows. Needs `context` none."""
    window: Literal["auto", "simple", "medium", "complex"] = "auto"
    """Measurements only: a window class in place of the one that the cursor deserves."""
    cache: bool = True
    """Measurements only: False evaluates the whole prompt anew, with the batch shapes of the cached one."""
    margins: bool = False
    """Measurements only: report how close each choice was."""
    recall: bool = True
    """May be answered by what was answered before."""


class Segment(Noun, frozen=True):
    """A run of prompt tokens from one source. The counts of a prompt's segments add up to its length."""

    kind: Literal["scaffold", "repo", "context", "extra", "path", "prefix", "suffix", "middle"]
    source: str
    tokens: int
    tier: str = ""
    """P0 to P4 for what a budget counts; empty for scaffold and paths."""


class Prompt(Noun, frozen=True):
    """What the engine evaluates. Made by context/layout.py."""

    tokens: bytes
    segments: tuple[Segment, ...]
    must: bytes = b""
    """Bytes taken off the end for healing; the generation must reproduce them first."""
    head: str = ""
    """Digest of everything before the prefix: equal heads are evaluated once."""
    line: str = ""
    """The cursor's line up to the cursor, for stops that look at indentation and openers."""
    reason: str = ""
    """Why the anchor stands where it does."""
    redacted: tuple[str, ...] = ()
    """What kind of secret was taken out of the context, one entry each; never a value."""


class Counters(Noun, frozen=True):
    """Exact work counts of one request; `prompt == reused + evaluated`."""

    prompt: int = 0
    reused: int = 0
    evaluated: int = 0
    generated: int = 0
    steps: int = 0
    """Decode calls, prompt slices included."""
    drafted: int = 0
    accepted: int = 0
    by_source: dict[str, tuple[int, int]] = {}
    """Of drafts: source → (drafted, accepted)."""
    small: str = ""
    """The draft model that answered alone; empty: the main model answered."""


class Timings(Noun, frozen=True):
    """Milliseconds from submission as the engine saw it."""

    queued: float = 0.0
    prompt: float = 0.0
    """Prompt evaluation alone."""
    first: float = 0.0
    """Until the first token that adds text beyond the cursor."""
    total: float = 0.0
    compute: float = 0.0
    """Time inside llama.cpp for decodes that held rows of this request."""


class Generation(Noun, frozen=True):
    """What the engine produced, healed bytes already removed. Made by engine/loop.py."""

    text: str
    stop: StopReason
    stop_word: str = ""
    tokens: bytes = b""
    """All generated ids, healed ones included."""
    counters: Counters = Counters()
    timings: Timings = Timings()
    note: str = ""
    margins: tuple[float, ...] = ()
    """Per generated token, best logit minus second best; only when the job asked for it."""
    joined: str = ""
    """Id of the request whose run this is part of; empty for a run of its own."""


class Range(Noun, frozen=True):
    """Character offsets (code points) into the request's whole text, end exclusive."""

    start: int
    end: int


class Completion(Noun, frozen=True):
    """What an editor may show. Made by polish/emit.py. `text` carries the file's own line ends."""

    id: str
    text: str
    replace: Range
    stop: StopReason
    words: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()
    """Code points of `text` up to the end of each word, and of each line: where a part of it may end."""
    stop_word: str = ""
    note: str = ""
    raw: str = ""
    """The generation before polish, LF only."""
    trims: tuple[str, ...] = ()
    """Names of the polish rules that changed the text."""
    counters: Counters = Counters()
    timings: Timings = Timings()
    segments: tuple[Segment, ...] = ()
    reason: str = ""
    window: str = ""
    """The window class and why."""
    epoch: int = 0
    language: str = ""
    head: str = ""
    """See Prompt.head."""
    coalesced: str = ""
    """See Generation.joined."""
    recall: Literal["", "typed", "exact", "prefetched"] = ""
    """How it was known already; empty: the model ran for it."""
    margins: tuple[float, ...] = ()
    tokens: tuple[int, ...] = ()
    """All generated ids, healed ones included; only with `margins`."""
