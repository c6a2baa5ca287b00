"""A tiny GGUF with random weights, a real byte-pair vocabulary and FIM ids, written in milliseconds.

Its text means nothing; its tokens, cache and timing behave like a real model's.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np

CONTROL = (
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)
WORDS = (
    "return",
    "self",
    "def",
    "import",
    "order",
    "price",
    "total",
    "for",
    "in",
    "if",
    "None",
    "items",
    "class",
)


def byte_table() -> dict[int, str]:
    """GPT-2's printable stand-in for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {b: chr(b) for b in plain}
    for b in range(256):
        table.setdefault(b, chr(256 + len(table) - len(plain)))
    return table


def vocabulary() -> tuple[list[str], list[str]]:
    """(tokens, merges) of a small byte-pair vocabulary: bytes, runs of blanks, some words."""
    table = byte_table()
    tokens = [table[b] for b in range(256)]
    merges: list[str] = []

    def learn(text: str) -> None:
        parts = [table[b] for b in text.encode()]
        while len(parts) > 1:
            pairs = [f"{a} {b}" for a, b in pairwise(parts)]
            known = [p for p in pairs if p in merges]
            best = min(known, key=merges.index) if known else pairs[0]
            if not known:
                tokens.append(best.replace(" ", ""))
                merges.append(best)
            at = pairs.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]

    for text in ("    ", "\n\n", *WORDS, *(f" {w}" for w in WORDS)):
        learn(text)
    return tokens, merges


def pieces() -> tuple[list[str], list[int]]:
    """(tokens, types) of a small SentencePiece vocabulary: unknown, bytes, beginnings of words, words."""
    words = []
    for word in WORDS:
        for text in (word, f"\u2581{word}"):
            words += [text[:n] for n in range(2, len(text) + 1)]
    letters = sorted({letter for word in words for letter in word})
    plain = list(dict.fromkeys([*letters, *words]))
    return ["<unk>", *(f"<0x{b:02X}>" for b in range(256)), *plain], [2, *[6] * 256, *[1] * len(plain)]


def write(
    path: Path,
    *,
    seed: int = 7,
    fim: bool = True,
    layers: int = 2,
    width: int = 64,
    context: int = 4096,
    pre: str = "qwen2",
    add_bos: bool = False,
    sentencepiece: bool = False,
    control: tuple[str, ...] = CONTROL,
    padding: int = 0,
) -> Path:
    """Write the model; the same arguments give the same bytes. `padding` unused tokens stand at the end."""
    tokens, merges = vocabulary()
    types = [1] * len(tokens)
    if sentencepiece:
        tokens, types = pieces()
    first = len(tokens)
    tokens = [*tokens, *control, *(f"[PAD{n}]" for n in range(padding))]
    types += [3] * len(control) + [5] * padding
    heads, ff = 4, width * 2
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_name("tiny")
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(ff)
    writer.add_head_count(heads)
    writer.add_head_count_kv(2)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_file_type(0)
    writer.add_tokenizer_model("llama" if sentencepiece else "gpt2")
    writer.add_tokenizer_pre("default" if sentencepiece else pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if sentencepiece:
        writer.add_token_scores([-float(n) for n in range(len(tokens))])
        writer.add_unk_token_id(0)
    else:
        writer.add_token_merges(merges)
    writer.add_eos_token_id(first)
    writer.add_bos_token_id(first)
    writer.add_add_bos_token(add_bos)
    if fim:
        for offset, key in enumerate(("pre", "mid", "suf", "pad", "rep", "sep"), start=1):
            writer.add_uint32(f"tokenizer.ggml.fim_{key}_token_id", first + offset)
    random = np.random.default_rng(seed)

    def add(name: str, *shape: int) -> None:
        scale = 1.0 / np.sqrt(shape[-1])
        writer.add_tensor(name, (random.standard_normal(shape) * scale * 1.7).astype(np.float32))

    add("token_embd.weight", len(tokens), width)
    add("output.weight", len(tokens), width)
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    kv = width // heads * 2
    for i in range(layers):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{name}.weight", np.ones(width, np.float32))
        for name, rows in (("attn_q", width), ("attn_k", kv), ("attn_v", kv)):
            add(f"blk.{i}.{name}.weight", rows, width)
            writer.add_tensor(f"blk.{i}.{name}.bias", np.zeros(rows, np.float32))
        add(f"blk.{i}.attn_output.weight", width, width)
        add(f"blk.{i}.ffn_gate.weight", ff, width)
        add(f"blk.{i}.ffn_up.weight", ff, width)
        add(f"blk.{i}.ffn_down.weight", width, ff)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
