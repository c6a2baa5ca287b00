"""Checks a GGUF header before any map: the reading happens in a child with memory and time limits.

`check(path)` for callers; `python -I -m daemon.models.header PATH` is the child, printing one JSON object.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from daemon.errors import ModelError
from daemon.machine import FimIds
from daemon.models import gguf, known

MEMORY_LIMIT = 256 << 20
"""Bytes of address space of the child (where the system enforces it)."""
CPU_LIMIT_S = 4
WALL_LIMIT_S = 20
"""Generous, because the machine may be busy; a sane header takes a tenth of a second."""
_MEASURED = ("parameters", "tensors", "types", "weights_bytes", "data_offset", "file_bytes")
_REMEDY = "Pull or copy the model again, or choose another file"


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a checked GGUF says about itself. Sizes in bytes, lengths in tokens."""

    architecture: str
    name: str
    licence: str
    file_type: str
    """Name of the dominant quantization, as Q4_K_M."""
    context: int
    blocks: int
    heads: int
    kv_heads: tuple[int, ...]
    """One value per block; 0 for a block without attention."""
    key_length: int
    value_length: int
    embedding: int
    vocabulary: int
    tokenizer: str
    pretokenizer: str
    fim: FimIds
    fim_source: str
    """`metadata`, `texts` (found by the tokens' texts, as llama.cpp does) or `none`."""
    parameters: int
    tensors: int
    types: dict[str, int]
    """Bytes per tensor type."""
    weights_bytes: int
    data_offset: int
    file_bytes: int

    def kv_bytes(self, per_value: float) -> float:
        """Bytes of KV cache per token when one value takes `per_value` bytes (f16: 2)."""
        return sum(self.kv_heads) * (self.key_length + self.value_length) * per_value


def check(path: Path) -> Header:
    """Read and judge the header of `path`. Raises ModelError naming the problem; never maps the file."""
    command = [sys.executable, "-I", "-m", "daemon.models.header", str(path.absolute())]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WALL_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ModelError(f"{path}: reading its header took over {WALL_LIMIT_S} s", _REMEDY) from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: its header could not be checked ({error})") from error
    answer = _answer(done.stdout)
    if "header" in answer:
        return msgspec.convert(answer["header"], Header)
    if "error" in answer:
        raise ModelError(f"{path}: {answer['error']}", _REMEDY)
    if done.returncode < 0:
        raise ModelError(f"{path}: reading its header went beyond the limits of time or memory", _REMEDY)
    last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason given"]
    raise ModelError(f"{path}: its header could not be checked ({last[0][:200]})", _REMEDY)


def _answer(output: bytes) -> dict[str, Any]:
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(output, type=dict[str, Any])
    return {}


def describe(raw: dict[str, Any]) -> Header:
    """Turn what gguf.read found into a Header. Raises GgufError where a needed value is missing or absurd."""
    values = raw["values"]
    architecture = values.get("general.architecture")
    _known(architecture)
    if _count(values.get("split.count", 1)) > 1:
        raise gguf.GgufError(
            "it is one piece of a split model; join the pieces with llama-gguf-split --merge first"
        )
    blocks = _needed(values, f"{architecture}.block_count", 1, 1024)
    heads = _per_block(values, f"{architecture}.attention.head_count", blocks)
    kv_heads = _per_block(values, f"{architecture}.attention.head_count_kv", blocks, default=heads)
    embedding = _needed(values, f"{architecture}.embedding_length", 1, 1 << 20)
    width = embedding // max(*heads, 1)
    vocabulary = raw["vocabulary"] or raw["rows"]
    if not 0 < vocabulary <= gguf.MAX_STRINGS:
        raise gguf.GgufError(f"it has a vocabulary of {vocabulary} tokens")
    fim, source = _fim(values, raw["found"], vocabulary)
    return Header(
        architecture=architecture,
        name=_text(values, "general.name"),
        licence=_text(values, "general.license"),
        file_type=_file_type(values, raw["types"]),
        context=_needed(values, f"{architecture}.context_length", 1, 1 << 31),
        blocks=blocks,
        heads=max(heads),
        kv_heads=tuple(kv_heads),
        key_length=_optional(values, f"{architecture}.attention.key_length", width),
        value_length=_optional(values, f"{architecture}.attention.value_length", width),
        embedding=embedding,
        vocabulary=vocabulary,
        tokenizer=_text(values, "tokenizer.ggml.model"),
        pretokenizer=_text(values, "tokenizer.ggml.pre"),
        fim=fim,
        fim_source=source,
        **{field: raw[field] for field in _MEASURED},
    )


def _known(architecture: Any) -> None:
    if not isinstance(architecture, str):
        raise gguf.GgufError("general.architecture is missing or is not text")
    if architecture in known.RECURRENT:
        raise gguf.GgufError(
            f"architecture {architecture!r} keeps a recurrent state, which cannot be reused by prefix"
        )
    if architecture in known.OTHER:
        raise gguf.GgufError(f"architecture {architecture!r} does not complete text from left to right")
    if architecture not in known.ARCHITECTURES:
        raise gguf.GgufError(
            f"architecture {architecture[:40]!r} is not known to this engine; a newer build may know it"
        )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _needed(values: dict[str, Any], key: str, low: int, high: int) -> int:
    if key not in values:
        raise gguf.GgufError(f"{key} is missing")
    return _bounded(values[key], key, low, high)


def _optional(values: dict[str, Any], key: str, default: int) -> int:
    return _bounded(values[key], key, 1, 1 << 16) if key in values else default


def _bounded(value: Any, key: str, low: int, high: int) -> int:
    if not low <= _count(value) <= high:
        raise gguf.GgufError(f"{key} is {str(value)[:40]}; a whole number from {low} to {high} is expected")
    return int(value)


def _per_block(values: dict[str, Any], key: str, blocks: int, default: list[int] | None = None) -> list[int]:
    value = values.get(key)
    if value is None and default is not None and key not in values:
        return default
    if isinstance(value, list):
        if len(value) != blocks:
            raise gguf.GgufError(f"{key} has {len(value)} values for {blocks} blocks")
        return [_bounded(item, key, 0, 4096) for item in value]
    return [_bounded(value, key, 1, 4096)] * blocks


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    return "".join(c for c in value if c.isprintable())[:200] if isinstance(value, str) else ""


def _file_type(values: dict[str, Any], types: dict[str, int]) -> str:
    named = known.FILE_TYPES.get(_count(values.get("general.file_type")))
    return named or max(types, key=lambda kind: types[kind])


def _fim(values: dict[str, Any], found: dict[str, int], vocabulary: int) -> tuple[FimIds, str]:
    ids = dict(found)
    named = {}
    for field in ("pre", "suf", "mid", "sep", "rep", "pad"):
        key = f"tokenizer.ggml.fim_{field}_token_id"
        if key in values:
            named[field] = _bounded(values[key], key, 0, vocabulary - 1)
    fim = FimIds(**{**ids, **named})
    source = "metadata" if {"pre", "suf", "mid"} <= set(named) else "texts" if fim.usable else "none"
    return fim, source


def _limit() -> None:
    try:
        import resource  # noqa: PLC0415 - absent on Windows, where only the parent's clock limits the child
    except ImportError:
        return
    # Some systems (macOS) refuse RLIMIT_AS; the bounded window keeps memory small there too.
    for kind, value in ((resource.RLIMIT_AS, MEMORY_LIMIT), (resource.RLIMIT_CPU, CPU_LIMIT_S)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (value, value))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _child(path: Path) -> dict[str, Any]:
    _limit()
    try:
        return {"header": describe(gguf.read(path))}
    except gguf.GgufError as bad:
        return {"error": str(bad)}
    except OSError as error:
        return {"error": f"it cannot be read ({error.strerror or error})"}
    except MemoryError:
        return {"error": "reading its header needs more memory than a sane file would"}


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_child(Path(sys.argv[1]))))
