"""Which token comes next: what is owed to a half-typed word, temperature, and margins."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daemon.engine.sampling import Sampler
from daemon.engine.vocabulary import Pieces
from daemon.nouns import Sampling

PIECES = Pieces([b"ret", b"return", b" ret", b"r", b"e", b"t", b"urn", b"x", b"", b"returned", b"\xff", b" "])


def test_agreeing_tokens() -> None:
    found = {PIECES.pieces[i] for i in PIECES.agreeing(b"ret")}
    assert found == {b"ret", b"return", b"r", b"returned"}
    assert {PIECES.pieces[i] for i in PIECES.agreeing(b"\xff")} == {b"\xff"}
    assert len(PIECES.agreeing(b"zz")) == 0


@given(st.binary(min_size=1, max_size=4))
def test_agreeing_equals_the_definition(must: bytes) -> None:
    wanted = {i for i, p in enumerate(PIECES.pieces) if p and (p.startswith(must) or must.startswith(p))}
    assert set(PIECES.agreeing(must).tolist()) == wanted


def test_healing_pays_what_is_owed() -> None:
    row = np.zeros(12, np.float32)
    row[7] = 9.0  # "x" would win without the debt
    row[3] = 2.0
    sampler = Sampler(Sampling(), PIECES, b"ret")
    first = sampler.choose(row)
    assert PIECES.pieces[first] == b"r"
    assert sampler.pay(first) == b""
    assert sampler.owed == b"et"
    row[4] = 1.0
    assert sampler.pay(sampler.choose(row)) == b""
    row[5] = 1.0
    assert sampler.pay(sampler.choose(row)) == b""
    assert sampler.choose(row) == 7


def test_a_token_may_pay_more_than_owed() -> None:
    sampler = Sampler(Sampling(), PIECES, b"ret")
    assert sampler.pay(9) == b"urned"


def test_impossible_debt_is_given_up() -> None:
    sampler = Sampler(Sampling(), PIECES, b"zz")
    row = np.zeros(12, np.float32)
    row[7] = 1.0
    assert sampler.choose(row) == 7
    assert sampler.owed == b""


def test_sampling_at_temperature_stays_inside_top_k() -> None:
    row = np.arange(12, dtype=np.float32)
    sampler = Sampler(Sampling(temperature=1.5, top_k=3, top_p=1.0, seed=1), PIECES, b"")
    assert {sampler.choose(row) for _ in range(200)} == {9, 10, 11}
    narrow = Sampler(Sampling(temperature=0.5, top_k=0, top_p=0.01, seed=1), PIECES, b"")
    assert {narrow.choose(row) for _ in range(50)} == {11}


def test_margin_is_among_what_was_allowed() -> None:
    row = np.zeros(12, np.float32)
    row[7], row[6], row[3], row[0] = 9.0, 8.0, 3.0, 1.0
    free, owing = Sampler(Sampling(), PIECES, b""), Sampler(Sampling(), PIECES, b"ret")
    free.choose(row)
    owing.choose(row)
    assert (free.margin(), owing.margin()) == (1.0, 2.0)
