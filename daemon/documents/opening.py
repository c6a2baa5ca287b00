"""The question that a person will most likely ask in a document just opened: where they were last."""

from __future__ import annotations

from daemon.documents.mirror import Mirror
from daemon.nouns import CompletionRequest


def opening(mirror: Mirror, client: str, path: str) -> CompletionRequest | None:
    """A warm request at the end of the line worked on last, else of the first; None when nothing is kept."""
    document = next((found for found in mirror.documents() if found.path == path), None)
    if document is None:
        return None
    places = (region.start_line for region in mirror.recent() if region.path == path)
    rows = document.text.split("\n")
    line = min(next(places, 0), len(rows) - 1)
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
