"""GGUF headers: sound ones are described, hostile ones are refused quickly, small in memory, by a child."""

import json
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from model_files import TOKENS, write_gguf

from daemon.errors import ModelError
from daemon.models import gguf, header

U64 = struct.Struct("<Q")


def key(name: str) -> bytes:
    return U64.pack(len(name)) + name.encode()


def patched(data: bytes, name: str, kind: int, value: bytes, skip: int = 0) -> bytes:
    """Overwrite type and value of a metadata key, in place."""
    at = data.index(key(name)) + len(key(name))
    return data[:at] + struct.pack("<I", kind) + value + data[at + 4 + len(value) + skip :]


def tensor(data: bytes, offset: int, form: str, value: int) -> bytes:
    """Overwrite a field of token_embd.weight: `offset` bytes after its name."""
    at = data.index(key("token_embd.weight")) + len(key("token_embd.weight")) + offset
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


def file(pairs: bytes, count: int, tensors: int = 1) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, count) + pairs


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda d: b"", "does not start with GGUF"),
    "text": (lambda d: b"<html>not found</html>", "does not start with GGUF"),
    "big-endian": (lambda d: d[:4] + struct.pack(">I", 3) + d[8:], "big-endian"),
    "version": (lambda d: d[:4] + struct.pack("<I", 77) + d[8:], "version 77"),
    "no tensors": (lambda d: d[:8] + U64.pack(0) + d[16:], "0 tensors"),
    "tensor count": (lambda d: d[:8] + U64.pack(1 << 60) + d[16:], "tensors (limit"),
    "pair count": (lambda d: d[:16] + U64.pack(1 << 63) + d[24:], "metadata entries (limit"),
    "cut in header": (lambda d: d[:200], "the file ends inside"),
    "cut in data": (lambda d: d[:-5000], "beyond the file"),
    "cut one byte": (lambda d: d[:-1], "cut short"),
    "string length": (lambda d: patched(d, "general.name", 8, U64.pack(1 << 62)), "claims a length of"),
    "key length": (lambda d: file(U64.pack(1 << 62), 1), "a metadata key claims"),
    "array length": (
        lambda d: file(key("x") + struct.pack("<IIQ", 9, 4, 1 << 61), 1),
        "the file ends inside x",
    ),
    "string array": (lambda d: file(key("x") + struct.pack("<IIQ", 9, 8, 1 << 61), 1), "strings (limit"),
    "nested array": (lambda d: file(key("x") + struct.pack("<IIQ", 9, 9, 1), 1), "array of arrays"),
    "array type": (lambda d: file(key("x") + struct.pack("<IIQ", 9, 99, 1), 1), "unknown type 99"),
    "value type": (lambda d: file(key("x") + struct.pack("<I", 13), 1), "unknown type 13"),
    "tokens of numbers": (
        lambda d: file(key("tokenizer.ggml.tokens") + struct.pack("<IIQI", 9, 4, 1, 1), 1),
        "not an array of strings",
    ),
    "boolean": (lambda d: file(key("x") + struct.pack("<IB", 7, 9), 1), "neither true nor false"),
    "twice": (lambda d: file((key("x") + struct.pack("<IB", 0, 9)) * 2, 2), "appears twice"),
    "alignment": (
        lambda d: file(key("general.alignment") + struct.pack("<II", 4, 1 << 30), 1),
        "power of two",
    ),
    "alignment odd": (
        lambda d: file(key("general.alignment") + struct.pack("<II", 4, 48), 1),
        "power of two",
    ),
    "rank": (lambda d: tensor(d, 0, "<I", 9), "9 dimensions"),
    "dimension": (lambda d: tensor(d, 4, "<Q", 1 << 42), "ends at byte"),
    "overflow": (lambda d: tensor(tensor(d, 4, "<Q", 1 << 42), 12, "<Q", 1 << 42), "impossible shape"),
    "tensor type": (lambda d: tensor(d, 20, "<I", 1000), "type 1000"),
    "row and block": (lambda d: tensor(tensor(d, 20, "<I", 14), 4, "<Q", 1000), "do not divide"),
    "tensor offset": (lambda d: tensor(d, 24, "<Q", 1 << 50), "expected 0"),
    "architecture": (lambda d: patched(d, "general.architecture", 8, key("qwenX")), "is not known"),
    "block count": (
        lambda d: patched(d, "qwen2.block_count", 4, struct.pack("<I", 1 << 31)),
        "block_count is",
    ),
    "context type": (
        lambda d: patched(d, "qwen2.context_length", 6, struct.pack("<f", 2.5)),
        "context_length is 2.5",
    ),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf").read_bytes()


def test_a_sound_file_is_described(sound: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(sound)
    found = header.check(path)
    assert (found.architecture, found.name, found.licence) == ("qwen2", "tiny", "MIT")
    assert (found.context, found.blocks, found.kv_heads, found.key_length) == (512, 2, (2, 2), 256)
    assert (found.vocabulary, found.tokenizer, found.pretokenizer) == (len(TOKENS), "gpt2", "qwen2")
    assert (found.fim.pre, found.fim.mid, found.fim.suf, found.fim_source) == (0, 1, 2, "texts")
    assert found.file_bytes == len(sound) == found.data_offset + found.weights_bytes
    assert found.parameters == 64 * 1024 + 1024
    assert found.kv_bytes(2.0) == 2 * 2 * 2 * 256 * 2


def test_a_model_without_fim_tokens_says_so(tmp_path: Path) -> None:
    found = header.check(write_gguf(tmp_path / "plain.gguf", tokens=list("abcdefgh")))
    assert found.fim_source == "none"
    assert not found.fim.usable


@pytest.mark.parametrize(
    ("architecture", "reason"),
    [("mamba", "recurrent"), ("bert", "from left to right"), ("future9", "newer build")],
)
def test_foreign_architectures_are_named(tmp_path: Path, architecture: str, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        header.check(write_gguf(tmp_path / "other.gguf", architecture=architecture))


def check_in_process(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    header.describe(gguf.read(path))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_with_the_reason(sound: bytes, tmp_path: Path, name: str) -> None:
    change, reason = HOSTILE[name]
    with pytest.raises(gguf.GgufError) as caught:
        check_in_process(change(sound), tmp_path / "bad.gguf")
    assert reason in str(caught.value)


WEIGH = """
import json, os, subprocess, sys
command = [sys.executable, "-I", "-m", "daemon.models.header", sys.argv[1]]
with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([said.decode(), used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
"""Runs the reader below a small process: a child's peak begins with its parent's, and a test's is large."""


if os.name == "posix":

    def test_hostile_files_cost_little(sound: bytes, tmp_path: Path) -> None:
        """Worst cases in the real child: processor time up to 1 s and memory up to 200 MB."""
        empties = file(
            key("x") + struct.pack("<IIQ", 9, 8, gguf.MAX_STRINGS) + bytes(8 * gguf.MAX_STRINGS), 1
        )
        worst = {
            name: HOSTILE[name][0](sound)
            for name in ("string length", "string array", "dimension", "pair count")
        }
        for name, data in {**worst, "empty strings": empties}.items():
            path = tmp_path / "bad.gguf"
            path.write_bytes(data)
            command = [sys.executable, "-I", "-c", WEIGH, str(path)]
            said, seconds, peak = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            assert '"error"' in said, name
            unit = 1 if sys.platform == "darwin" else 1024
            assert seconds <= 1.0, name
            assert peak * unit <= 200e6, name


def test_the_parent_reports_what_the_child_found(sound: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(HOSTILE["alignment"][0](sound))
    with pytest.raises(ModelError, match=r"bad\.gguf: general\.alignment is 1073741824"):
        header.check(path)
    with pytest.raises(ModelError, match="cannot be read"):
        header.check(tmp_path / "none.gguf")
    with pytest.raises(ModelError, match=r"cannot be read|ordinary file"):
        header.check(tmp_path)


if os.name == "posix":

    def test_a_pipe_under_the_name_does_not_hold_us(tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.gguf")
        with pytest.raises(ModelError, match="ordinary file"):
            header.check(tmp_path / "pipe.gguf")


def test_mutations_never_escape(sound: bytes, tmp_path: Path) -> None:
    """Four hundred damaged headers: each is described or refused, nothing else is raised."""
    chance = random.Random(20)
    end = sound.index(b"output_norm.weight") + 60
    refused = 0
    for _ in range(400):
        data = bytearray(sound)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(4, end)
            change = chance.choice((1, 4, 8))
            data[at : at + change] = chance.choice(
                (
                    chance.randbytes(change),
                    b"\xff" * change,
                    bytes(change),
                    U64.pack(1 << chance.randrange(64))[:change],
                )
            )
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        try:
            check_in_process(bytes(data), tmp_path / "mutant.gguf")
        except gguf.GgufError:
            refused += 1
    assert refused > 200
