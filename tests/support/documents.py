"""Requests about documents as a client sends them."""

from __future__ import annotations

from daemon.nouns import CompletionRequest

CODE = "import os\n\n\ndef first():\n    return 1\n\n\ndef second(value):\n    return value\n"


def asked(path: str | None, text: str, at: int, whole: bool = True, client: str = "c") -> CompletionRequest:
    return CompletionRequest(
        id="1", client=client, door="native", prefix=text[:at], suffix=text[at:], path=path, whole=whole
    )
