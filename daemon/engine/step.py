"""Drafts: tokens that are verified in one decode call, and where they come from."""

from __future__ import annotations

from typing import NamedTuple

from daemon.engine.binding import Ids


class Draft(NamedTuple):
    """`tokens` that may follow; `source` names who drafted them."""

    tokens: Ids
    source: str
