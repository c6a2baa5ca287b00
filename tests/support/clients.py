"""One question as clients of five dialects ask it, and the text in what each of them is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.house import Reply, head_and_body, read_reply

FIELDS = ["content", "timings/prompt_n", "timings/predicted_n", "truncated", "tokens_cached"]


@dataclass(frozen=True)
class Peer:
    """A client: what it sends for the text before and after its cursor, and where the text stands."""

    path: str
    agent: str
    body: Callable[[str, str], dict[str, Any]]
    text: Callable[[Reply], str]


def _vim(prefix: str, suffix: str) -> dict[str, Any]:
    """As llama.vim cuts it: whole lines, and the cursor's line up to the cursor apart."""
    cut = prefix.rfind("\n") + 1
    return {
        "id_slot": 0, "input_prefix": prefix[:cut], "prompt": prefix[cut:], "input_suffix": suffix,
        "input_extra": [], "stop": [], "samplers": ["top_k", "top_p", "infill"], "cache_prompt": True,
        "stream": False, "response_fields": FIELDS,
    }  # fmt: skip


def _rendered(prefix: str, suffix: str) -> str:
    return f"<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>"


def _choice(reply: Reply) -> str:
    return str(reply.json["choices"][0]["text"])


PEERS = {
    "infill": Peer("/infill", "curl/7.88.1", _vim, lambda reply: str(reply.json["content"])),
    "openai": Peer("/v1/completions", "minuet", lambda p, s: {"prompt": p, "suffix": s}, _choice),
    "rendered": Peer("/v1/completions", "zed", lambda p, s: {"prompt": _rendered(p, s)}, _choice),
    "ollama": Peer(
        "/api/generate",
        "continue",
        lambda p, s: {"prompt": p, "suffix": s},
        lambda reply: "".join(line["response"] for line in reply.lines),
    ),
    "tabby": Peer("/v1/completions", "node", lambda p, s: {"segments": {"prefix": p, "suffix": s}}, _choice),
}


async def ask(port: int, peer: Peer, prefix: str, suffix: str, **more: Any) -> str:
    """The text that `peer` is answered by a daemon on `port`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        body = {**peer.body(prefix, suffix), **more}
        writer.write(head_and_body("POST", peer.path, body, {"User-Agent": peer.agent}))
        reply = await read_reply(reader, 60)
    finally:
        writer.close()
    assert reply.status == 200, reply.body
    return peer.text(reply)
