"""One request's plan, and what idle time can make of the next one.

    request → Document → Surroundings → WindowClass
                              └→ epoch → prompt        on the loop, a few milliseconds
                              └→ candidates → budget → following epoch   in idle time, in a thread

A request is answered with what is evaluated already: candidates are only looked for when nobody waits.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import msgspec

from daemon.context.anchor import Anchor
from daemon.context.budget import choose, rows
from daemon.context.cursor import around as surroundings
from daemon.context.cursor import named
from daemon.context.epoch import HELD, NEAR, SENT, Epochs, Wanted
from daemon.context.layout import NOTHING, Layout
from daemon.context.tiers import Tiers
from daemon.context.window import classify, sized
from daemon.context.written import Near
from daemon.documents.document import Document
from daemon.documents.mirror import Mirror
from daemon.nouns import CompletionRequest, Prompt
from daemon.readers import Finder
from daemon.redaction import redact
from daemon.settings import Context
from daemon.surroundings import Piece, Stable, Surroundings, WindowClass
from indexer.errors import IndexDamaged

_REACH = 8_000
"""Characters on each side of the cursor that lines near it are looked for in."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A request as it is answered, and everything that decided how."""

    request: CompletionRequest
    document: Document
    around: Surroundings
    window: WindowClass
    stable: Stable
    prompt: Prompt
    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Better:
    """What idle time may evaluate: a prompt, and what it stands for once it is evaluated."""

    prompt: Prompt
    anchor: Anchor
    around: Surroundings
    stable: Stable
    fresh: bool = False
    """`stable` is another than the present one."""


class Planner:
    """Plans for one model. `plan` and `adopt` belong to the loop; `following` to any thread."""

    def __init__(self, layout: Layout, mirror: Mirror, readers: Finder, settings: Context) -> None:
        self.layout = layout
        self._mirror = mirror
        self._readers = readers
        self._settings = settings
        self._tiers = Tiers(readers, mirror)
        self._epochs = Epochs(layout.count)
        self._left_out: frozenset[str] = frozenset()
        """Files that epochs were cut for: the index may know them for a while."""

    def plan(self, request: CompletionRequest, alone: Stable | None = None) -> Planned:
        """The prompt for a request, from what is known without looking far, or behind what was chosen for it
        `alone`. Raises NotSupported."""
        placed = self.placed(request, alone)
        prompt, anchor = self.layout.plan(placed.request, placed.stable)
        return replace(placed, prompt=prompt, anchor=anchor)

    def placed(self, request: CompletionRequest, alone: Stable | None = None) -> Planned:
        """Where a request stands and how much its answer may hold: a plan without a prompt."""
        document = self._mirror.see(request)
        around = surroundings(document)
        window = self._window(request, around)
        request = _limited(request, window)
        self._left_out = frozenset(path for path in self._left_out if self._mirror.left_out(path))
        hidden = self._hiding(around, lambda path: self._leaves_out(around, path))
        stable = NOTHING
        if alone is not None:
            kept = (piece for piece in alone.pieces if not hidden(piece))
            stable = msgspec.structs.replace(alone, pieces=tuple(kept))
        elif request.context != "now" and not self._off(request, around):
            stable = self._epochs.current(around, _near(document, HELD), hidden)
        prompt = Prompt(tokens=b"", segments=(), line=request.prefix[request.prefix.rfind("\n") + 1 :])
        return Planned(request, document, around, window, stable, prompt, Anchor("", ""))

    def ahead(self, planned: Planned, request: CompletionRequest) -> Planned:
        """The plan of a request that may come next, some words or lines behind `planned`: the document does
        not hold it yet, so what stands around it is taken to be the same. Raises NotSupported."""
        window = self._window(request, planned.around)
        request = _limited(request, window)
        prompt, anchor = self.layout.plan(request, planned.stable)
        return replace(planned, request=request, window=window, prompt=prompt, anchor=anchor)

    def following(self, planned: Planned) -> Stable | None:
        """The epoch that should follow; None when the present one is good enough. Takes some 10 ms."""
        if self._off(planned.request, planned.around):
            return None
        return self._epochs.after(planned.around, self._wanted(planned), _near(planned.document, NEAR))

    def alone(self, planned: Planned) -> Stable | None:
        """What would be chosen now, for this request only: the epoch of its file stays what it is."""
        if self._off(planned.request, planned.around):
            return None
        return self._epochs.alone(planned.around, self._wanted(planned), _near(planned.document, NEAR))

    def _wanted(self, planned: Planned) -> Wanted:
        around, document = named(planned.around, planned.document), planned.document
        before, after = self.layout.reach(planned.request)
        shown = _shown(planned, before, after)
        history = [r for r in self._mirror.recent() if r.root and r.root == around.root]
        extras = tuple(e for e in planned.request.extras if e.kind != "snippet")
        pieces = self._tiers.candidates(around, document.text, shown, history, extras)
        hidden = self._hiding(around, lambda path: _full(around, path) in self._left_out)
        found = [_redacted(piece) for piece in pieces if not hidden(piece)]
        if planned.request.warm:  # a document was opened: what the client would send along is not known
            found += [piece for piece in planned.stable.pieces if piece.kind in SENT]
        taken = sum(s.tokens for s in planned.prompt.segments if s.tier == "P0")
        room = self.layout.stable_room(self._most(planned) - taken, planned.request, planned.prompt)
        chosen = choose(
            found,
            room=room + taken,
            taken=taken,
            shares=self._settings.shares,
            count=self.layout.count,
            best=self._settings.best,
            shown=planned.anchor.prefix + before + planned.anchor.suffix + after,
        )
        return Wanted(
            pieces=chosen.pieces,
            room=room,
            lost=chosen.lost,
            found=found,
            text=document.text if document.whole else None,
            states=lambda paths: self._states(around, paths),
            behind=taken,
            share=self.layout.idle_share,
        )

    def _hiding(self, around: Surroundings, left_out: Callable[[str], bool]) -> Callable[[Piece], str]:
        """What tells why a piece may not be shown, an empty text where it may. No path is asked twice."""
        excluded = functools.cache(left_out)
        gone = functools.cache(lambda path: self._gone(around, path))

        def why(piece: Piece) -> str:
            if piece.path and excluded(piece.path):
                return "left out"
            return "gone" if piece.kind not in SENT and gone(piece.path) else ""

        return why

    def _gone(self, around: Surroundings, path: str) -> bool:
        """Whether another file is there no more, and nobody has it open: an index may know it for a while."""
        if path in ("", around.path) or not around.root:
            return False
        full = _full(around, path)
        return not os.path.exists(full) and not self._mirror.holds(full)

    def _leaves_out(self, around: Surroundings, path: str) -> bool:
        """Whether a file is left out by now. On the loop."""
        full = _full(around, path)
        if self._mirror.left_out(full):
            self._left_out |= {full}
        return full in self._left_out

    def _off(self, request: CompletionRequest, around: Surroundings) -> bool:
        """Whether there is no stable context: a text without a name could be any, also the one before it."""
        return request.context == "none" or not self._settings.stable or not around.path

    def _window(self, request: CompletionRequest, around: Surroundings) -> WindowClass:
        """As the cursor deserves and this machine can afford; who waits for context gets what it deserves."""
        rate = 0.0 if request.context == "now" else self.layout.rate
        found = classify(
            around, request.prefix, request.suffix, request.limits.lines, rate=rate, settings=self._settings
        )
        if request.window == "auto" or request.window == found.name:  # noqa: PLR1714 - narrows the type
            return found
        return sized(request.window, found.lines, "as asked for", rate=rate, settings=self._settings)

    def _most(self, planned: Planned) -> int:
        """Tokens of the whole prompt that stable context is chosen for: it is evaluated ahead and outlives
        the class of one keystroke, unless it is chosen for this request alone."""
        if planned.request.context == "now":
            return planned.window.context
        window = planned.window
        return sized("complex", window.lines, "", rate=self.layout.rate, settings=self._settings).context

    def better(self, planned: Planned, following: Stable | None) -> Better | None:
        """What to evaluate while nobody waits; None when everything is as it should be."""
        found = self.layout.idle(planned.request, planned.anchor, planned.stable, following)
        stable = planned.stable if following is None else following
        return Better(*found, planned.around, stable, following is not None) if found is not None else None

    def same(self, planned: Planned) -> Better:
        """The plan itself, where it is not evaluated yet."""
        return Better(planned.prompt, planned.anchor, planned.around, planned.stable)

    def adopt(self, better: Better) -> None:
        """It is evaluated: the next request uses it."""
        self.layout.adopt(better.anchor, better.stable)
        if better.fresh:
            self.begin(better.around, better.stable)

    def begin(self, around: Surroundings, stable: Stable) -> None:
        """Use an epoch from now on, evaluated or not."""
        self._epochs.adopt(around, stable)

    def _states(self, around: Surroundings, paths: Collection[str]) -> dict[str, bytes]:
        """Path → what tells one state of that file from another, as FileRow has it."""
        unsaved = (d for d in self._mirror.unsaved() if d.root == around.root and d.relative in paths)
        found = {
            d.relative: hashlib.blake2b(d.source, digest_size=16).digest() for d in unsaved
        }  # as FileRow
        holder = self._readers.find(_full(around, around.path)) if around.root else None
        if holder is None:
            return found
        with contextlib.suppress(IndexDamaged), holder.reader.together():
            for path in set(paths) - found.keys():
                row = holder.reader.file(path)
                found[path] = row.digest if row is not None and not self._gone(around, path) else b""
        return found


def _full(around: Surroundings, path: str) -> str:
    return os.path.join(around.root, path)


def _redacted(piece: Piece) -> Piece:
    clean = redact(piece.text, piece.path)
    return piece if clean.text == piece.text else msgspec.structs.replace(piece, text=clean.text)


def _limited(request: CompletionRequest, window: WindowClass) -> CompletionRequest:
    """The class decides where the client left it to us. One line stays `auto`: the line that is generated may
    open a block that nobody could foresee."""
    limits = request.limits
    if limits.lines != "auto":
        return request
    lines = "block" if window.lines == "block" else limits.lines
    fewer = msgspec.structs.replace(limits, lines=lines, tokens=min(limits.tokens, window.output))
    return msgspec.structs.replace(request, limits=fewer)


def _shown(planned: Planned, before: str, after: str) -> tuple[int, int]:
    """Lines of the document that the prompt shows, or will at its widest; end exclusive."""
    document, anchor = planned.document, planned.anchor
    line = document.text.count("\n", 0, max(document.offset, 0))
    middle = anchor.middle(planned.request.prefix, planned.request.suffix) or ""
    above = max(anchor.prefix.count("\n") + middle.count("\n"), before.count("\n"))
    below = max(anchor.suffix.count("\n"), after.count("\n"))
    return max(0, line - above), line + below + 1


def _near(document: Document, lines: int) -> Near:
    """What tells something of so many lines above and below the cursor, and of its own."""
    at = max(document.offset, 0)
    above = document.text[max(0, at - _REACH) : at].rsplit("\n", lines + 1)[-lines - 1 :]
    below = document.text[at : at + _REACH].split("\n", lines + 1)[: lines + 1]
    return Near(rows("\n".join(above) + "\n".join(below)), rows("\n".join([*above[:-1], *below[1:]])))
