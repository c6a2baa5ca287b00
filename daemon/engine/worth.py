"""How long a draft is worth being: measured acceptance per source against the measured cost of rows.

With acceptance α per token, k drafted tokens yield E(k) = (1 − α^(k+1)) ÷ (1 − α) tokens per step (Leviathan
et al. 2023, eq. 1). The step costs V(k+1) ÷ V(1) steps of one row and k·c for a draft model whose own step
costs c of them. The best k maximises E ÷ cost; where no k is worth more than one row, nothing is drafted.
"""

from __future__ import annotations

from typing import NamedTuple

from daemon.engine.costs import RowCosts

MARGIN = 1.03
"""A draft must promise this much more speed: what is measured is noisy, and a draft has costs of its own."""
_DECAY = 0.98
"""Of what was seen, per draft seen later."""
_TRUST = 4.0
"""Tokens that an assumed acceptance counts for."""
_SURE = 0.995
"""An acceptance above is taken for this."""


class Plan(NamedTuple):
    """Draft `length` tokens, 0 for none; `gain` is the speed against no draft."""

    length: int
    gain: float


NO_DRAFT = Plan(0, 1.0)


class Acceptance:
    """Share of drafted tokens that agree with what was generated, older drafts counting less."""

    def __init__(self, assumed: float) -> None:
        self._agreed, self._seen = assumed * _TRUST, _TRUST

    def see(self, agreed: int, seen: int) -> None:
        """`agreed` tokens of a draft agreed; `seen` counts the first one that did not as well."""
        self._agreed = self._agreed * _DECAY + agreed
        self._seen = self._seen * _DECAY + seen

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

    def best(self, rate: float, most: int, step: float = 0.0, others: int = 0) -> Plan:
        """The length up to `most` that is worth most. `step`: what drafting one token costs, in steps of one
        row; `others`: rows that other requests have in the same decode call anyway."""
        alpha = min(rate, _SURE)
        base, before = others + 1, self.of(others + 1)
        length, gain, expected, power = 0, 1.0, 1.0, 1.0
        for k in range(1, most + 1):
            power *= alpha
            expected += power
            cost = self.of(others + 1 + k) + k * step
            worth = (others + expected) / cost * before / base
            if worth > gain:
                length, gain = k, worth
        return Plan(length, gain) if gain >= MARGIN else NO_DRAFT
