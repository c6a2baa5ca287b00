"""The head of a prompt: everything before the prefix, in the order that keeps it evaluated longest.

    [repo name]  [separator, path, text] …  [client's snippets]  separator, path of the file

First the pieces of the epoch, then what the client sent, which changes more often. Scaffold ids come from the
model's own metadata. A model without a separator gets no head.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import PurePath

from daemon.machine import ModelFacts
from daemon.nouns import Extra, Segment
from daemon.surroundings import Piece, Stable
from indexer.tokens import count, to_bytes

_REPO = "project"
_LONGEST = 16
"""Characters of a token, more than any text of some length has on average: what is longer than so many for
each token of room is not even counted."""
Part = tuple[Segment, bytes]


class Head:
    """Makes heads for one model. `encode` gives the ids of ordinary text."""

    def __init__(self, encode: Callable[[str], bytes], model: ModelFacts) -> None:
        self._encode = encode
        self._model = model

    def parts(self, path: str, extras: tuple[Extra, ...], stable: Stable) -> list[Part]:
        """Nothing at all when there is nothing to say. `path` is that of the file being written."""
        fim = self._model.fim
        model = self._model
        parts = [mark(model.bos, "bos")] if model.add_bos and model.bos >= 0 else []
        if not (extras or stable.pieces) or not fim.usable or fim.sep < 0:
            return parts
        if fim.rep >= 0:
            parts += [mark(fim.rep), self._part(Segment(kind="repo", source="", tokens=0), _REPO + "\n")]
        parts += [*self._stable(stable), *self._extras(extras)]
        own = Segment(kind="path", source="", tokens=0)
        return [*parts, mark(fim.sep), self._part(own, f"{plain(path) or 'file'}\n")]

    def _stable(self, stable: Stable) -> Iterator[Part]:
        """Pieces of the same file that follow each other stand under one path."""
        for path, pieces in groupby(stable.pieces, key=lambda piece: piece.path):
            yield mark(self._model.fim.sep)
            yield self._part(Segment(kind="path", source=path, tokens=0), f"{plain(path)}\n")
            for piece in pieces:
                yield self._piece(piece)

    def _piece(self, piece: Piece) -> Part:
        segment = Segment(kind="context", source=piece.source, tokens=0, tier=piece.tier)
        return self._part(segment, piece.text if piece.text.endswith("\n") else piece.text + "\n")

    def _extras(self, extras: tuple[Extra, ...]) -> Iterator[Part]:
        for extra in extras:
            segment = Segment(kind="extra", source=extra.filename, tokens=0, tier="P4")
            yield mark(self._model.fim.sep)
            yield self._part(segment, _told(extra))

    def _part(self, segment: Segment, text: str) -> Part:
        return segment, self._encode(text)


def mark(token: int, source: str = "") -> Part:
    """One control token."""
    return Segment(kind="scaffold", source=source, tokens=1), to_bytes([token])


def digest(ids: bytes) -> str:
    """What tells one head from another; empty for none."""
    return hashlib.blake2b(ids, digest_size=8).hexdigest() if ids else ""


def fitting(extras: tuple[Extra, ...], room: int, encode: Callable[[str], bytes]) -> tuple[Extra, ...]:
    """The newest snippets that fit `room` tokens; the oldest go first, as clients order them oldest first."""
    kept: list[Extra] = []
    for extra in reversed(extras):
        text = _told(extra)
        if len(text) > room * _LONGEST:
            break
        room -= 1 + count(encode(text))
        if room < 0:
            break
        kept.append(extra)
    return tuple(reversed(kept))


def plain(path: str) -> str:
    """As the model may see it: an absolute path says where people keep their files, and no more of use."""
    return path.replace("\\", "/").rpartition("/")[2] if PurePath(path).is_absolute() else path


def _told(extra: Extra) -> str:
    text = f"{plain(extra.filename)}\n{extra.text}"
    return text if text.endswith("\n") else text + "\n"
