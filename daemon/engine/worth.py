"""How long a draft is worth being: measured acceptance per source against the measured cost of rows.

With acceptances α₁, α₂, … k drafted tokens yield E(k) = 1 + α₁ + α₁·α₂ + … tokens per step (for one α
that is eq. 1 of Leviathan et al. 2023). The step costs V(k+1) ÷ V(1) steps of one row, and k·c more for a
draft model whose own step costs c of them. The best k maximises E ÷ cost; where none is worth more than one
row, nothing is drafted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from daemon.engine.costs import RowCosts

MARGIN = 1.03
"""A draft must promise this much more speed: what is measured is noisy, and a draft has costs of its own."""
_DECAY = 0.99
"""Of what was seen, per token seen later."""
_TRUST = 4.0
"""Tokens that an assumed acceptance counts for."""


class Plan(NamedTuple):
    """Draft `length` tokens, 0 for none; `gain` is the speed against no draft."""

    length: int
    gain: float


NO_DRAFT = Plan(0, 1.0)


class Acceptance:
    """Share of drafted tokens that agree with what was generated, older drafts counting less."""

    def __init__(self, assumed: float) -> None:
        self._agreed, self._seen = assumed * _TRUST, _TRUST

    def see(self, agreed: bool) -> None:
        """One more token."""
        self._agreed = self._agreed * _DECAY + agreed
        self._seen = self._seen * _DECAY + 1.0

    @property
    def rate(self) -> float:
        """α, 0–1."""
        return self._agreed / self._seen


class Costs:
    """V(rows) ÷ V(1) on this machine. `rows`: the milliseconds of decodes with logits behind every row."""

    def __init__(self, rows: RowCosts) -> None:
        self._rows = rows
        self.one_ms = rows.ms(1)

    def of(self, rows: int) -> float:
        """Relative cost of a step of `rows` rows."""
        return self._rows.ms(rows) / self.one_ms

    def best(self, rates: Sequence[float], step: float = 0.0, others: int = 0) -> Plan:
        """The length that is worth most, of at most as many tokens as there are `rates`: each one's
        acceptance, given that those before it agree. `step`: what drafting one token costs, in steps of one
        row; `others`: rows that other requests have in the same decode call anyway."""
        base, before = others + 1, self.of(others + 1)
        length, gain, expected, power = 0, 1.0, 1.0, 1.0
        for k, rate in enumerate(rates, 1):
            power *= rate
            expected += power
            cost = self.of(others + 1 + k) + k * step
            worth = (others + expected) / cost * before / base
            if worth > gain:
                length, gain = k, worth
        return Plan(length, gain) if gain >= MARGIN else NO_DRAFT
