"""The question that a person will most likely ask in a document just opened: where they are, or were last."""

from __future__ import annotations

from daemon.documents.document import Document, Region
from daemon.documents.mirror import Mirror
from daemon.documents.regions import AROUND
from daemon.nouns import CompletionRequest


def opening(mirror: Mirror, client: str, path: str) -> CompletionRequest | None:
    """A warm request at the end of the line the client is at, of the one worked on last, else of the first;
    None when nothing is kept."""
    document = known(mirror, path)
    if document is None:
        return None
    line = mirror.line(client, path)
    if line is None:
        line = next((_line(region) for region in mirror.recent() if region.path == path), 0)
    rows = document.text.split("\n")
    line = min(line, len(rows) - 1)
    offset = sum(len(row) + 1 for row in rows[:line]) + len(rows[line])
    return CompletionRequest(
        id="opened",
        client=client,
        door="documents",
        prefix=document.text[:offset],
        suffix=document.text[offset:],
        path=path,
        language=document.language or None,
        whole=True,
        warm=True,
    )


def known(mirror: Mirror, path: str) -> Document | None:
    """What is kept of a document."""
    return next((found for found in mirror.documents() if found.path == path), None)


def _line(region: Region) -> int:
    """Where the person was: a visit shows lines around it."""
    return max(0, region.end_line - AROUND - 1) if region.kind == "visited" else region.start_line
