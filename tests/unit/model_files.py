"""Real files for the tests of model handling: small sound GGUFs, wheels, catalogues, a hub on a socket."""

import hashlib
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import gguf
import numpy as np

from daemon.models.entries import Entry, Hub, Local, Parts, Shape, Source

TOKENS = ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", *"abcdefgh"]


def write_gguf(path: Path, rows: int = 64, architecture: str = "qwen2", tokens: list[str] = TOKENS) -> Path:
    """A small sound GGUF whose weights take `rows` * 4 KiB."""
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_name("tiny")
    writer.add_license("MIT")
    writer.add_context_length(512)
    writer.add_embedding_length(1024)
    writer.add_block_count(2)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_file_type(0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    seed = np.random.default_rng(7)
    writer.add_tensor("token_embd.weight", seed.standard_normal((rows, 1024), dtype=np.float32))
    writer.add_tensor("output_norm.weight", np.ones(1024, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def entry_for(data: bytes, *source: Source, name: str = "tiny", pinned: bool = True) -> Entry:
    """A catalogue entry for these bytes."""
    return Entry(
        name=name,
        family="tiny",
        size="1M",
        quantization="F32",
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest() if pinned else "",
        licence="MIT",
        context=512,
        role="both",
        memory_mb=1,
        shape=Shape(layers=2, kv_heads=2, head_dim=256, embedding=1024, vocabulary=11),
        source=source or (HUB,),
    )


HUB = Hub(repo="team/tiny", revision="0123abcd", file="tiny.gguf")


def catalogue_text(entry: Entry) -> str:
    """The entry as the user's models.toml holds it."""
    lines = []
    for source in entry.source:
        if isinstance(source, Hub):
            place = f'kind = "hub", repo = "{source.repo}", '
            place += f'revision = "{source.revision}", file = "{source.file}"'
        elif isinstance(source, Parts):
            place = f'kind = "parts", prefix = "{source.prefix}", '
            place += f'count = {source.count}, version = "{source.version}"'
        else:
            assert isinstance(source, Local)
            place = f'kind = "local", path = "{source.path}"'
        lines.append(f"  {{ {place} }},\n")
    return f"""
[[model]]
name = "{entry.name}"
family = "tiny"
size = "1M"
quantization = "F32"
bytes = {entry.bytes}
sha256 = "{entry.sha256}"
licence = "MIT"
context = 512
role = "both"
memory_mb = 1
shape = {{ layers = 2, kv_heads = 2, head_dim = 256, embedding = 1024, vocabulary = 11 }}
source = [
{"".join(lines)}]
"""


def write_catalogue(home: Path, entry: Entry) -> None:
    """Make `entry` the user's own model in this home."""
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "models.toml").write_text(catalogue_text(entry), encoding="utf-8")


def write_wheel(
    folder: Path, name: str, files: dict[str, bytes], version: str = "1.0", code: str = ""
) -> Path:
    """A wheel as pip expects it: `files` below the package's folder, `code` as its __init__."""
    package = name.replace("-", "_")
    info = f"{package}-{version}.dist-info"
    path = folder / f"{package}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{package}/__init__.py", code)
        for inner, data in files.items():
            archive.writestr(inner if inner.startswith("../") else f"{package}/{inner}", data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


@dataclass
class Served:
    """What the hub serves and how it misbehaves; `asked` are the Range headers of all requests."""

    data: bytes
    ranges: bool = True
    etag: str = '"one"'
    cuts: list[int] = field(default_factory=list)
    """The next answers end after so many bytes of body although more was announced."""
    status: int = 200
    hold_after: int = -1
    release: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)
    length: bool = True
    redirect: str = ""


class _Handler(BaseHTTPRequestHandler):
    served: Served

    def do_GET(self) -> None:
        what = self.served
        span, condition = self.headers.get("Range", ""), self.headers.get("If-Range", what.etag)
        what.asked.append(span)
        if what.status != 200:
            self.send_error(what.status)
            return
        if what.redirect:
            self.send_response(302)
            self.send_header("Location", what.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = int(span[6:-1]) if what.ranges and span and condition == what.etag else 0
        body = what.data[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(what.data) - 1}/{len(what.data)}")
        if what.length:
            self.send_header("Content-Length", str(len(body)))
        if what.etag:
            self.send_header("ETag", what.etag)
        self.end_headers()
        if what.cuts:
            body = body[: what.cuts.pop(0)]
        if what.hold_after >= 0:
            self.wfile.write(body[: what.hold_after])
            self.wfile.flush()
            what.release.wait(30)
            body = body[what.hold_after :]
        self.wfile.write(body)

    def handle(self) -> None:
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """The tests look at `asked` instead."""


@contextmanager
def hub(served: Served) -> Iterator[str]:
    """Serve on a free port of the loopback; the base address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": served}))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        served.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + seconds
    tick = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        tick.wait(0.01)
