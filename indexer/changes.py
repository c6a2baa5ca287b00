"""The paths of one root that wait to be looked at: what a person just saved first, the first walk last.

One path is in the hands of one child at most; when it changes meanwhile it is looked at again afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable


class Changes:
    """Paths without doubles, in two lanes."""

    def __init__(self) -> None:
        self._urgent: dict[str, None] = {}
        self._later: dict[str, None] = {}
        self._flying: dict[str, bool] = {}
        self._again: dict[str, bool] = {}
        self._dropped: set[str] = set()

    def add(self, paths: Iterable[str], urgent: bool) -> None:
        """Queue paths; one that is queued already moves up but never down."""
        for path in paths:
            if path in self._flying:
                self._again[path] = urgent or self._again.get(path, False)
                self._dropped.discard(path)
            elif urgent:
                self._later.pop(path, None)
                self._urgent[path] = None
            elif path not in self._urgent:
                self._later[path] = None

    def drop(self, path: str) -> None:
        """`path` need not be looked at any more, whatever comes back of it."""
        self._urgent.pop(path, None)
        self._later.pop(path, None)
        self._again.pop(path, None)
        if path in self._flying:
            self._dropped.add(path)

    def take(self, most: int, urgent: bool) -> list[str]:
        """The next paths of a lane; they are flying until `land`."""
        lane = self._urgent if urgent else self._later
        paths = [path for path, _ in zip(lane, range(most), strict=False)]
        for path in paths:
            del lane[path]
            self._flying[path] = urgent
        return paths

    def land(self, path: str) -> bool | None:
        """`path` came back; whether it was urgent. None: what came is worth nothing any more, because it was
        dropped, or changed meanwhile and is queued again."""
        urgent = self._flying.pop(path, False)
        if path in self._dropped:
            self._dropped.discard(path)
            return None
        if path in self._again:
            self.add((path,), self._again.pop(path))
            return None
        return urgent

    def clear(self) -> None:
        """Forget everything that waits; what flies still lands."""
        self._urgent.clear()
        self._later.clear()
        self._again.clear()

    @property
    def urgent(self) -> int:
        """Waiting in the first lane."""
        return len(self._urgent)

    @property
    def flying(self) -> int:
        """In the hands of children."""
        return len(self._flying)

    def in_flight(self) -> set[str]:
        """The paths in the hands of children."""
        return set(self._flying)

    @property
    def urgent_flying(self) -> bool:
        """Whether an urgent path is in the hands of a child."""
        return any(self._flying.values())

    def __len__(self) -> int:
        return len(self._urgent) + len(self._later) + len(self._flying)
