"""Orders of a small shop, with names that are not all ASCII."""
from __future__ import annotations

import asyncio, os.path as osp
from collections.abc import (
    Iterable,
    Mapping as M,
)
from typing import Generic, TypeVar, overload

from . import money
from ..stock.articles import Article as Ware, größe_von
from .plugins import *

T = TypeVar("T")
MAX_LINES: int = 500
_cache: dict[str, "Order"] = {}
LONG = {
    "a": 1,
    "b": 2,
}
first = second = None


class Fehler(Exception):
    """Raised for everything. It has a code."""

    code = 7


class Order(Generic[T], metaclass=abc.ABCMeta):
    '''
    An order of   several
    lines, e.g. three. Read-only.
    '''

    __slots__ = ("lines", "größe")
    STATES = ("new", "sent")
    limit: int = 3

    def __init__(self, lines: Iterable[T], *, größe: float = 1.0) -> None:
        self.lines = list(lines)
        self.größe: float = größe
        self.lines = sorted(self.lines)
        other.x = 1

    @property
    def total(self) -> int:
        """Sum of all lines."""
        return sum(map(int, self.lines))

    @total.setter
    def total(self, value: int) -> None: raise Fehler(value)

    @overload
    def get(self, key: int) -> T: ...
    @overload
    def get(self, key: str) -> T | None: ...
    def get(
        self,
        key,  # position or name
        fallback="#none",
    ):
        # nothing is looked up twice
        return self.lines[key]

    @classmethod
    @functools.lru_cache(maxsize=None)
    async def öffne(cls, path: "os.PathLike[str]") -> Order[T]:
        async def lies() -> bytes:
            return await asyncio.to_thread(read, path)

        return cls(await lies())

    class Zeile:
        class Tief(Base.Inner):
            def _privat(self): pass

    def __len__(self): return len(self.lines)
    # a comment that belongs to nobody


if MAX_LINES > 100:
    def bedingt(): ...
else:
    async def bedingt(): ...


@decorate(Order, key=lambda x: x)
def main(argv: list[str] | None = None, /, *args: int, **kwargs: M[str, Ware]) -> "int":
    """Run; say "hello" twice"""
    handler = lambda event: print(event)
    def geschachtelt():
        class Lokal: ...
        return Lokal
    return Order(argv).total
