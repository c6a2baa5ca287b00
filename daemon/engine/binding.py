"""Sole owner of llama_cpp: model, context, batches as numpy arrays, logits as views, the abort flag.

Facts behind each choice: `Llama` of llama-cpp-python is bypassed (its FIM ids are 0, its batches are Python
loops); batches wrap numpy arrays in the legacy `llama_batch`; the abort callback is libc's `strlen` on a
two-byte flag, so that llama.cpp polls it without the GIL.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from daemon.errors import EngineFailed, ModelError
from daemon.nouns import FimIds, ModelFacts

Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]

_TEXT_ATTRIBUTES = lib.LLAMA_TOKEN_ATTR_NORMAL | lib.LLAMA_TOKEN_ATTR_BYTE
_KINDS = {1: "spm", 2: "bpe", 3: "wpm", 4: "ugm", 5: "rwkv", 6: "plamo2"}
_KV_TYPES = {"f16": lib.GGML_TYPE_F16, "q8_0": lib.GGML_TYPE_Q8_0}
_BUFFER = re.compile(r"(\S+)\s+compute buffer size\s*=\s*([0-9.]+) MiB")
_KV_SIZE = re.compile(r"KV buffer size\s*=\s*([0-9.]+) MiB")
_MIB = 1024 * 1024


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL("ucrtbase.dll") if os.name == "nt" else ctypes.CDLL(None)


def trim_memory() -> None:
    """Give freed memory back to the system where libc can (glibc keeps it otherwise)."""
    trim = getattr(_libc(), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


class Log:
    """What llama.cpp says while loading; silent afterwards (no Python runs on its threads)."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._callback = lib.llama_log_callback(self._take)
        lib.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _take(self, _level: int, text: bytes, _data: Any) -> None:
        self.lines.append(text.decode("utf-8", "replace").rstrip())

    def close(self) -> None:
        """Replace the callback by libc's `abs`, which ignores everything without the GIL."""
        lib.llama_log_set(ctypes.cast(_libc().abs, lib.llama_log_callback), ctypes.c_void_p(0))

    def sizes(self) -> tuple[int, int]:
        """(compute buffer bytes, KV bytes) as llama.cpp reported them."""
        text = "\n".join(self.lines)
        compute = sum(float(size) for _, size in _BUFFER.findall(text))
        return int(compute * _MIB), int(sum(float(s) for s in _KV_SIZE.findall(text)) * _MIB)

    def problem(self) -> str:
        """The last line that names an error, for messages."""
        bad = [line for line in self.lines if "error" in line.lower() or "fail" in line.lower()]
        return bad[-1].strip() if bad else "llama.cpp gave no reason"


def gpu_devices() -> list[str]:
    """Names of the devices this build of llama.cpp can offload to; empty on a CPU build."""
    if not lib.llama_supports_gpu_offload():
        return []
    folder = Path(lib.__file__).parent / "lib"
    names = []
    try:
        base = ctypes.CDLL(str(next(folder.glob("*ggml-base.*"))))
        ggml = ctypes.CDLL(str(next(p for p in folder.glob("*ggml.*") if "base" not in p.name)))
    except (OSError, StopIteration):
        return []
    ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
    ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
    base.ggml_backend_dev_description.restype = ctypes.c_char_p
    for i in range(ggml.ggml_backend_dev_count()):
        device = ctypes.c_void_p(ggml.ggml_backend_dev_get(ctypes.c_size_t(i)))
        if base.ggml_backend_dev_type(device) in (1, 2):  # GPU, integrated GPU
            names.append((base.ggml_backend_dev_description(device) or b"GPU").decode("utf-8", "replace"))
    return names


def _tokenize(vocab: Any, text: str) -> list[int]:
    raw = text.encode("utf-8", "replace")
    out = (lib.llama_token * (len(raw) + 8))()
    n = lib.llama_tokenize(vocab, raw, len(raw), out, len(out), False, False)
    return list(out[: max(n, 0)])


class Words:
    """A model's tokenizer without its weights: loads in 0.3 s, for vocabularies that only llama.cpp knows.

    Raises ModelError when llama.cpp refuses the file. May be called from any thread.
    """

    def __init__(self, path: Path) -> None:
        log = Log()
        params = lib.llama_model_default_params()
        params.vocab_only, params.n_gpu_layers = True, 0
        self._model = lib.llama_model_load_from_file(os.fsencode(path), params)
        log.close()
        if not self._model:
            raise ModelError(f"{path.name}: no vocabulary: {log.problem()}", "Try `foretype models verify`")
        self._vocab = lib.llama_model_get_vocab(self._model)
        self._before = _tokenize(self._vocab, "\n")

    def encode(self, text: str) -> bytes:
        """Ids of `text`, never a control id, as little-endian int32 bytes. A blank that the tokenizer puts
        before every text (SentencePiece) is left out: parts of a prompt are encoded one by one."""
        ids = _tokenize(self._vocab, "\n" + text)
        if ids[: len(self._before)] == self._before:
            ids = ids[len(self._before) :]
        else:
            ids = _tokenize(self._vocab, text)
        return np.array(ids, "<i4").tobytes()

    def close(self) -> None:
        """Free the vocabulary."""
        lib.llama_model_free(self._model)


class Model:
    """A loaded GGUF. Raises ModelError when llama.cpp refuses it."""

    def __init__(self, path: Path, gpu_layers: int, log: Log) -> None:
        lib.llama_backend_init()
        params = lib.llama_model_default_params()
        params.n_gpu_layers = gpu_layers if gpu_layers >= 0 else 9999
        handle = lib.llama_model_load_from_file(os.fsencode(path), params)
        if not handle:
            raise ModelError(f"{path.name} cannot be loaded: {log.problem()}", "Try `foretype models verify`")
        self.handle = handle
        self.path = path
        self.vocab = lib.llama_model_get_vocab(handle)
        self.n_vocab = int(lib.llama_vocab_n_tokens(self.vocab))

    def meta(self, key: str) -> str:
        """A metadata value as text; empty when absent."""
        buffer = ctypes.create_string_buffer(1024)
        n = lib.llama_model_meta_val_str(self.handle, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if n >= 0 else ""

    @property
    def kind(self) -> str:
        """llama.cpp's vocabulary type."""
        return _KINDS.get(int(lib.llama_vocab_type(self.vocab)), "none")

    def pieces(self) -> list[bytes]:
        """Bytes of every token; empty for tokens that text must never become or show."""
        buffer = ctypes.create_string_buffer(1024)
        out = []
        for token in range(self.n_vocab):
            if not int(lib.llama_vocab_get_attr(self.vocab, token)) & _TEXT_ATTRIBUTES:
                out.append(b"")
                continue
            n = lib.llama_token_to_piece(self.vocab, token, buffer, len(buffer), 0, False)
            out.append(buffer.raw[:n] if n > 0 else b"")
        return out

    def tokenize(self, text: str) -> list[int]:
        """llama.cpp's own ids of ordinary text: the oracle for the exported vocabulary."""
        return _tokenize(self.vocab, text)

    def facts(self, name: str, sha256: str) -> ModelFacts:
        """What the planner and status need to know."""
        ids = {n: int(getattr(lib, f"llama_vocab_fim_{n}")(self.vocab)) for n in FimIds.__struct_fields__}
        return ModelFacts(
            name=name,
            path=str(self.path),
            sha256=sha256,
            architecture=self.meta("general.architecture"),
            vocabulary=self.n_vocab,
            trained_context=int(lib.llama_model_n_ctx_train(self.handle)),
            bos=int(lib.llama_vocab_bos(self.vocab)),
            add_bos=bool(lib.llama_vocab_get_add_bos(self.vocab)),
            fim=FimIds(**ids),
            weights_bytes=int(lib.llama_model_size(self.handle)),
        )


class Context:
    """One llama.cpp context with a unified KV cache. Not thread-safe: one engine thread owns it, and only
    `abort` may be called from another."""

    def __init__(
        self, model: Model, *, cells: int, sequences: int, batch: int, threads: int, kv_type: str, flash: bool
    ) -> None:
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = cells, batch, batch
        params.n_seq_max = sequences
        self.max_outputs = max(sequences, 16)
        params.n_outputs_max = self.max_outputs
        params.n_outputs_max_per_seq = self.max_outputs
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else 0
        params.type_k = params.type_v = _KV_TYPES[kv_type]
        params.kv_unified, params.no_perf = True, True
        self.handle = lib.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise EngineFailed(f"no room for a context of {cells} tokens", "Lower engine.context")
        self.model, self.cells, self.sequences, self.batch, self.flash = model, cells, sequences, batch, flash
        self.compute_s = 0.0
        self.decodes = 0
        self._memory = lib.llama_get_memory(self.handle)
        self._flag = (ctypes.c_char * 2)()
        self._callback = ctypes.cast(_libc().strlen, lib.ggml_abort_callback)
        lib.llama_set_abort_callback(self.handle, self._callback, ctypes.addressof(self._flag))
        self._ids = (ctypes.POINTER(ctypes.c_int32) * batch)()
        self._sequence = np.zeros(sequences, np.int32)
        self._sequence[:] = np.arange(sequences)
        self._ones = np.ones(batch, np.int32)

    def abort(self) -> None:
        """Make the running decode return soon. May be called from any thread."""
        self._flag[0] = b"\1"

    def arm(self) -> None:
        """Forget an earlier abort."""
        self._flag[0] = b"\0"

    def decode(self, tokens: Ids, start: int, sequence: int, outputs: int) -> bool:
        """Evaluate `tokens` of one sequence at positions start…; logits for the last `outputs` rows.

        False when aborted: none of these rows is kept. Raises EngineFailed on an error of llama.cpp.
        """
        n = len(tokens)
        if not 0 < n <= self.batch or outputs > self.max_outputs:
            raise EngineFailed(f"a batch of {n} rows with {outputs} outputs is out of bounds")
        position = np.arange(start, start + n, dtype=np.int32)
        flags = np.zeros(n, np.int8)
        flags[n - outputs :] = 1
        base = self._sequence.ctypes.data + 4 * sequence
        pointer = ctypes.cast(ctypes.c_void_p(base), ctypes.POINTER(ctypes.c_int32))
        for i in range(n):
            self._ids[i] = pointer
        return self._run(np.ascontiguousarray(tokens, np.int32), position, flags)

    def _run(self, tokens: Ids, position: Ids, flags: npt.NDArray[np.int8]) -> bool:
        def at(array: npt.NDArray[Any], kind: Any) -> Any:
            return array.ctypes.data_as(ctypes.POINTER(kind))

        batch = lib.llama_batch(
            len(tokens),
            at(tokens, ctypes.c_int32),
            None,
            at(position, ctypes.c_int32),
            at(self._ones, ctypes.c_int32),
            self._ids,
            at(flags, ctypes.c_int8),
        )
        began = time.perf_counter()
        code = lib.llama_decode(self.handle, batch)
        lib.llama_synchronize(self.handle)
        self.compute_s += time.perf_counter() - began
        self.decodes += 1
        if code == 2:
            return False
        if code != 0:
            raise EngineFailed(f"llama_decode returned {code} for {len(tokens)} rows", "See foretype logs")
        return True

    def logits(self, rows: int) -> Floats:
        """View of the last decode's outputs, shape (rows, vocabulary); valid until the next decode."""
        pointer = lib.llama_get_logits(self.handle)
        return np.ctypeslib.as_array(pointer, shape=(rows, self.model.n_vocab))

    def copy(self, source: int, target: int, end: int) -> None:
        """Let `target` share the cells of `source` at positions 0…end."""
        lib.llama_memory_seq_cp(self._memory, source, target, 0, end)

    def cut(self, sequence: int, start: int) -> None:
        """Drop the positions from `start` on."""
        if not lib.llama_memory_seq_rm(self._memory, sequence, start, -1):
            raise EngineFailed("this architecture cannot drop part of its cache", "Choose another model")

    def last_position(self, sequence: int) -> int:
        """Highest evaluated position, -1 when empty."""
        return int(lib.llama_memory_seq_pos_max(self._memory, sequence))

    def set_threads(self, threads: int) -> None:
        """Change the number of compute threads."""
        lib.llama_set_n_threads(self.handle, threads, threads)

    def close(self) -> None:
        """Free the context."""
        lib.llama_free(self.handle)

    def share(self, source: int, target: int, start: int, end: int) -> None:
        """Let `target` hold the cells of `source` at positions start…end as well."""
        lib.llama_memory_seq_cp(self._memory, source, target, start, end)

    def state_size(self, sequence: int) -> int:
        """Bytes of `state_get`."""
        return int(lib.llama_state_seq_get_size(self.handle, sequence))

    def state_get(self, sequence: int, into: mmap.mmap) -> bool:
        """Write keys, values and positions of `sequence` to `into`, of exactly `state_size` bytes."""
        data = (ctypes.c_uint8 * len(into)).from_buffer(into)
        return bool(lib.llama_state_seq_get_data(self.handle, data, len(into), sequence) == len(into))

    def state_set(self, sequence: int, data: mmap.mmap) -> bool:
        """Make `sequence` what `state_get` read, positions included; what it held before is gone.

        False where llama.cpp refuses the data, or has no cells for it.
        """
        pointer = (ctypes.c_uint8 * len(data)).from_buffer(data)
        return bool(lib.llama_state_seq_set_data(self.handle, pointer, len(data), sequence) == len(data))
