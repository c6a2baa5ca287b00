"""Owner of llama_cpp (with device.py, words.py): model, context, numpy batches, views of logits, abort flag.

Facts behind each choice: `Llama` of llama-cpp-python is bypassed (its FIM ids are 0, its batches are Python
loops); batches wrap numpy arrays in the legacy `llama_batch`; the abort callback is libc's `strlen` on a
two-byte flag, so that llama.cpp polls it without the GIL.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from daemon.engine.device import NOWHERE, Log, Spread
from daemon.engine.words import tokenize
from daemon.errors import EngineFailed, ModelError
from daemon.libc import libc
from daemon.machine import FimIds, ModelFacts

Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]

_TEXT_ATTRIBUTES = lib.LLAMA_TOKEN_ATTR_NORMAL | lib.LLAMA_TOKEN_ATTR_BYTE
_MARKS = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_USER_DEFINED
_KINDS = {1: "spm", 2: "bpe", 3: "wpm", 4: "ugm", 5: "rwkv", 6: "plamo2"}
_BF16 = 30
"""ggml's id of the type, which llama_cpp does not name."""
_KV_TYPES = {
    "f16": (lib.GGML_TYPE_F16, lib.GGML_TYPE_F16),
    "f16+bf16": (lib.GGML_TYPE_F16, _BF16),
    "q8_0": (lib.GGML_TYPE_Q8_0, lib.GGML_TYPE_Q8_0),
}
"""Of keys and values."""
_SPLITS = {
    "none": lib.LLAMA_SPLIT_MODE_NONE,
    "layer": lib.LLAMA_SPLIT_MODE_LAYER,
    "row": lib.LLAMA_SPLIT_MODE_ROW,
}


class Model:
    """A loaded GGUF. Raises ModelError when llama.cpp refuses it."""

    def __init__(self, path: Path, gpu_layers: int, log: Log, spread: Spread = NOWHERE) -> None:
        lib.llama_backend_init()
        params = lib.llama_model_default_params()
        params.n_gpu_layers = gpu_layers if gpu_layers >= 0 else 9999
        devices = (ctypes.c_void_p * (len(spread.devices) + 1))(*spread.devices, None)
        params.devices = ctypes.cast(devices, ctypes.c_void_p)
        params.split_mode, params.main_gpu = _SPLITS[spread.split], spread.main
        shares = (ctypes.c_float * lib.llama_max_devices())(*spread.shares)
        if spread.shares:
            params.tensor_split = shares
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

    def text(self, token: int) -> bytes:
        """A token's own name, control tokens included; empty for padding."""
        if int(lib.llama_vocab_get_attr(self.vocab, token)) & lib.LLAMA_TOKEN_ATTR_UNUSED:
            return b""
        return lib.llama_vocab_get_text(self.vocab, token) or b""

    def control(self) -> dict[str, int]:
        """Name → id of control and user-defined tokens. In SentencePiece names a blank has a mark of its own,
        and a name that begins with one also goes without: CodeLlama's are spelled both ways."""
        found: dict[str, int] = {}
        for token in range(self.n_vocab):
            if not int(lib.llama_vocab_get_attr(self.vocab, token)) & _MARKS:
                continue
            name = self.text(token).decode("utf-8", "replace")
            name = name.replace("\u2581", " ") if self.kind == "spm" else name
            for spelling in (name, name.strip()):
                if spelling:
                    found.setdefault(spelling, token)
        return found

    def close(self) -> None:
        """Free it; its contexts must be gone."""
        lib.llama_model_free(self.handle)

    def tokenize(self, text: str) -> list[int]:
        """llama.cpp's own ids of ordinary text: the oracle for the exported vocabulary."""
        return tokenize(self.vocab, text)

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


class Part(NamedTuple):
    """Rows of one sequence in a decode: `tokens` at the positions `start`…, logits for the last `outputs`."""

    tokens: Ids
    start: int
    sequence: int
    outputs: int


class Context:
    """One llama.cpp context with a unified KV cache. Not thread-safe: one engine thread owns it, and only
    `abort` may be called from another."""

    def __init__(
        self,
        model: Model,
        *,
        cells: int,
        sequences: int,
        batch: int,
        threads: int,
        kv_type: str,
        flash: bool,
        offload: bool = True,
    ) -> None:
        """`flash`: attention without a matrix of scores; `offload`: the KV cache lies where the layers do."""
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = cells, batch, batch
        params.n_seq_max = sequences + 1
        self.max_outputs = max(2 * sequences, 32)
        params.n_outputs_max = self.max_outputs
        params.n_outputs_max_per_seq = self.max_outputs
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else 0
        params.type_k, params.type_v = _KV_TYPES[kv_type]
        params.kv_unified, params.no_perf, params.offload_kqv = True, True, offload
        self.handle = lib.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise EngineFailed(f"no room for a context of {cells} tokens", "Lower engine.context")
        self.model, self.cells, self.sequences, self.batch = model, cells, sequences, batch
        self.flash, self.offload = flash, offload
        self.compute_s = self.last_s = 0.0
        self.decodes = 0
        self._memory = lib.llama_get_memory(self.handle)
        self._flag = (ctypes.c_char * 2)()
        self._callback = ctypes.cast(libc().strlen, lib.ggml_abort_callback)
        lib.llama_set_abort_callback(self.handle, self._callback, ctypes.addressof(self._flag))
        self._arrange(batch, sequences)
        self._grave = sequences
        self._logits_at, self._logits = 0, np.zeros((0, 0), np.float32)
        """Where llama.cpp keeps them, and a view made once: of more rows than a decode may have filled."""

    def _arrange(self, batch: int, sequences: int) -> None:
        """The arrays behind every batch, and the one `llama_batch` that points at them."""
        self._tokens, self._positions = np.zeros(batch, np.int32), np.zeros(batch, np.int32)
        self._flags = np.zeros(batch, np.int8)
        self._steps = np.arange(batch, dtype=np.int32)
        self._ones = np.ones(batch, np.int32)
        self._names = np.arange(sequences, dtype=np.int32)
        self._named = (self._names.ctypes.data + 4 * np.arange(sequences)).astype(np.uintp)
        """Per sequence, the address of its id."""
        self._pointers = np.zeros(batch, np.uintp)
        arrays = (self._tokens, None, self._positions, self._ones, self._pointers, self._flags)
        kinds: list[Any] = [field[1] for field in lib.llama_batch._fields_[1:]]
        pointers = zip(arrays, kinds, strict=True)
        self._batch = lib.llama_batch(
            0, *(a if a is None else a.ctypes.data_as(kind) for a, kind in pointers)
        )

    def abort(self) -> None:
        """Make the running decode return soon. May be called from any thread."""
        self._flag[0] = b"\1"

    def arm(self) -> None:
        """Forget an earlier abort."""
        self._flag[0] = b"\0"

    def decode(self, *parts: Part) -> bool:
        """Evaluate the rows of all parts, each of another sequence, in one batch.

        False when aborted: none of these rows is kept, nor when llama.cpp fails: then EngineFailed is raised.
        """
        rows = sum(len(part.tokens) for part in parts)
        wanted = sum(part.outputs for part in parts)
        if not 0 < rows <= self.batch or wanted > min(rows, self.max_outputs):
            raise EngineFailed(f"a batch of {rows} rows with {wanted} outputs is out of bounds")
        self._flags[:rows] = 0
        end = 0
        for tokens, start, sequence, outputs in parts:
            begin, end = end, end + len(tokens)
            self._tokens[begin:end] = tokens
            np.add(self._steps[: end - begin], start, out=self._positions[begin:end])
            self._pointers[begin:end] = self._named[sequence]
            self._flags[end - outputs : end] = 1
        return self._run(rows)

    def _run(self, rows: int) -> bool:
        self._batch.n_tokens = rows
        began = time.perf_counter()
        code = lib.llama_decode(self.handle, self._batch)
        lib.llama_synchronize(self.handle)
        self.last_s = time.perf_counter() - began
        self.compute_s += self.last_s
        self.decodes += 1
        if code not in (0, 2):
            raise EngineFailed(f"llama_decode returned {code} for {rows} rows", "See foretype logs")
        return bool(code == 0)

    def logits(self, rows: int) -> Floats:
        """View of the last decode's outputs in the order of its parts, shape (rows, vocabulary); valid until
        the next decode."""
        pointer = lib.llama_get_logits(self.handle)
        if (at := ctypes.addressof(pointer.contents)) != self._logits_at:
            shape = self.max_outputs, self.model.n_vocab
            self._logits_at, self._logits = at, np.ctypeslib.as_array(pointer, shape=shape)
        return self._logits[:rows]

    def copy(self, source: int, target: int, end: int, start: int = 0) -> None:
        """Let `target` share the cells of `source` at positions start…end."""
        lib.llama_memory_seq_cp(self._memory, source, target, start, end)

    def cut(self, sequence: int, start: int, end: int = -1) -> None:
        """Drop the positions from `start` on, before `end` if that is said."""
        if not lib.llama_memory_seq_rm(self._memory, sequence, start, end):
            raise EngineFailed("this architecture cannot drop part of its cache", "Choose another model")

    def bury(self, sequence: int, start: int, end: int) -> None:
        """Let the cells of positions start…end stay taken until `exhume`, whatever the sequence becomes."""
        self.copy(sequence, self._grave, end, start)

    def exhume(self) -> None:
        """Drop what was buried."""
        self.cut(self._grave, 0)

    def last_position(self, sequence: int) -> int:
        """Highest evaluated position, -1 when empty."""
        return int(lib.llama_memory_seq_pos_max(self._memory, sequence))

    def set_threads(self, threads: int) -> None:
        """Change the number of compute threads."""
        lib.llama_set_n_threads(self.handle, threads, threads)

    def close(self) -> None:
        """Free the context."""
        lib.llama_free(self.handle)

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
