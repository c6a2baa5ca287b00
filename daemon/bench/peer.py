"""The peer to compare with: llama-server, from the xllamacpp package in a child process, or at a URL.

`python -I -m daemon.bench.peer JSON` is that child: it serves until its standard input closes.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import IO, Any

from daemon.bench import wire
from daemon.bench.children import ended
from daemon.errors import BadRequest, EngineFailed, ForetypeError

PACKAGE = "xllamacpp"
LOAD_S = 300
BATCH = 1024
"""Of llama-server's own presets for completion (`--fim-qwen-…`), which its editor plug-ins recommend."""
CACHE_REUSE = 256
"""Same presets."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What both sides share."""

    path: str
    threads: int
    context: int
    flash_attention: bool
    kv_type: str
    gpu: bool


@dataclass(frozen=True, slots=True)
class Peer:
    """A llama-server that answers. `built` says in words what it is and how it was built."""

    endpoint: wire.Endpoint
    built: str


@asynccontextmanager
async def running(where: str, shape: Shape) -> AsyncIterator[Peer]:
    """`where` is `xllamacpp` or an http URL of a running llama-server.

    Raises BadRequest when the package is missing, EngineFailed when the server does not answer.
    """
    if where != PACKAGE:
        yield await _at(wire.Endpoint.parse(where), shape)
        return
    if importlib.util.find_spec(PACKAGE) is None:
        raise BadRequest(
            f"the peer needs the package {PACKAGE}", f"{sys.executable} -m pip install {PACKAGE}"
        )
    command = [sys.executable, "-I", "-m", "daemon.bench.peer", json.dumps(asdict(shape))]
    with tempfile.TemporaryFile() as log:
        child = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log
        )
        try:
            yield await _greeting(child, log)
        finally:
            await ended(child)


async def _greeting(child: asyncio.subprocess.Process, log: IO[bytes]) -> Peer:
    assert child.stdout is not None
    try:
        async with asyncio.timeout(LOAD_S):
            while line := await child.stdout.readline():
                if line.startswith(b'{"port"'):
                    hello = json.loads(line)
                    return Peer(wire.Endpoint("127.0.0.1", hello["port"]), hello["built"])
    except TimeoutError:
        pass
    log.seek(0)
    tail = log.read().decode("utf-8", "replace").strip().splitlines()[-3:]
    raise EngineFailed(f"llama-server from {PACKAGE} did not start: {' / '.join(tail) or 'no message'}")


async def _at(endpoint: wire.Endpoint, shape: Shape) -> Peer:
    """Check that a running llama-server holds the same model file."""
    try:
        props = await wire.fetch(endpoint, "GET", "/props")
    except ForetypeError as error:
        raise EngineFailed(f"no llama-server answers at port {endpoint.port}: {error.message}") from error
    theirs = str(props.get("model_path", "")).replace("\\", "/").rsplit("/", 1)[-1]
    ours = shape.path.replace("\\", "/").rsplit("/", 1)[-1]
    same = "same file name" if theirs == ours else f"ANOTHER MODEL: {theirs or 'unknown'}"
    context = props.get("default_generation_settings", {}).get("n_ctx", "unknown")
    build = props.get("build_info", "unknown build")
    return Peer(endpoint, f"llama-server at a given URL, build {build}, {same}, context {context}")


def serve(shape: dict[str, Any]) -> Any:
    """Start the server in this process; returns it with its greeting."""
    import xllamacpp as x  # noqa: PLC0415  (an optional package, needed by the child alone)

    params = x.CommonParams()
    params.model.path = shape["path"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = 1
    params.n_ctx = shape["context"]
    params.n_batch = params.n_ubatch = BATCH
    params.n_cache_reuse = CACHE_REUSE
    params.n_gpu_layers = 999 if shape["gpu"] else 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = shape["threads"]
    kinds = x.llama_flash_attn_type
    on, off = kinds.LLAMA_FLASH_ATTN_TYPE_ENABLED, kinds.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.flash_attn_type = on if shape["flash_attention"] else off
    if shape["kv_type"] == "q8_0":
        params.cache_type_k = params.cache_type_v = x.ggml_type.GGML_TYPE_Q8_0
    server = x.Server(params)
    return server, {"port": int(server.listening_address.rsplit(":", 1)[1]), "built": _built(x)}


def _built(x: Any) -> str:
    version = importlib.metadata.version(PACKAGE)
    info = x.BUILD_INFO
    features = x.get_system_info().replace(" ", "").strip("|").replace("|", " ")
    return (
        f"llama-server of {PACKAGE} {version} in a child process, prebuilt for {info['build_target']} with"
        f" {info['compiler']} ({features}); batch {BATCH}, cache reuse {CACHE_REUSE}, 1 slot"
    )


def main() -> None:
    """The child: greet on standard output, then serve until standard input closes."""
    server, hello = serve(json.loads(sys.argv[1]))
    sys.stdout.write(json.dumps(hello) + "\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    del server


if __name__ == "__main__":
    main()
