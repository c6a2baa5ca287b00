"""Similarity: near-duplicate signatures meet in a band, unrelated ones do not, in any spelling."""

import random

import pytest

from indexer import similarity
from indexer.records import ParsedFile, Span, Symbol

WORDS = """
load save parse render fetch merge split encode validate schedule cancel notify resolve publish
order user invoice token session packet matrix buffer cluster ledger widget schema frame patch
cache index stream batch window policy record queue handle vector
Path Decimal Iterator Socket DateTime Element Mapping Future Channel Shape
"""
VERBS, THINGS, TAILS, TYPES = (line.split() for line in WORDS.strip().splitlines())
SPAN = Span(start_byte=0, end_byte=0, start_line=0, end_line=0)


def symbol(kind: str, signature: str) -> Symbol:
    return Symbol(
        kind=kind, name="x", qualified="x", span=SPAN, name_start=0, name_end=0, signature=signature
    )


def parts(rng: random.Random) -> list[str]:
    name = [rng.choice(VERBS), rng.choice(THINGS), rng.choice(TAILS)]
    parameters = [
        f"{a}_{b}: {c}"
        for a, b, c in zip(rng.sample(THINGS, 2), rng.sample(TAILS, 2), rng.sample(TYPES, 2), strict=True)
    ]
    return ["_".join(name), *parameters, rng.choice(TYPES)]


def python(p: list[str]) -> str:
    return f"def {p[0]}(self, {', '.join(p[1:-1])}) -> {p[-1]}"


def meet(first: str, second: str) -> bool:
    return similarity.shared(similarity.query_bands(first), similarity.query_bands(second)) > 0


def test_near_duplicates_meet() -> None:
    rng = random.Random(3)
    met = 0
    for _ in range(400):
        one = parts(rng)
        other = list(one)
        other[rng.choice((1, 2, 3))] = rng.choice(("limit: int", "strict: bool", "name: str"))
        met += meet(python(one), python(other))
    assert met >= 384


def test_unrelated_signatures_do_not_meet() -> None:
    rng = random.Random(4)
    met = 0
    for _ in range(2000):
        words = [*VERBS, *THINGS, *TAILS, *TYPES]
        rng.shuffle(words)
        halves = [words[:20], words[20:40]]
        one, other = (f"def {a}_{b}({c}: {d}, {e}) -> {f}" for a, b, c, d, e, f, *_ in halves)
        met += meet(one, other)
    assert met <= 2


def test_same_signature_in_another_spelling_meets() -> None:
    assert meet("def load_order_cache(user_id: int)", "loadOrderCache(userId: number): void")
    assert meet(
        "func (r *Repo) LoadOrder(ctx context.Context, id string)",
        "func (s *Store) LoadOrder(ctx context.Context, key string)",
    )
    assert meet("fn größe_lesen(&self) -> Länge", "pub fn größe_lesen(&self, tief: bool) -> Länge")


def test_receiver_and_keywords_are_not_the_name() -> None:
    assert similarity.shingles("func (r *T) Close() error") == similarity.shingles("Close(r *T) error")
    assert similarity.shingles("public static async") == []


def test_bands_are_those_of_the_query() -> None:
    signatures = [python(parts(random.Random(i))) for i in range(30)]
    symbols = [symbol("class", "class A"), *(symbol("method", s) for s in signatures), symbol("function", "")]
    stored = similarity.bands(ParsedFile(language="python", symbols=tuple(symbols)))
    assert [i for i, _ in stored] == list(range(1, 31))
    assert [key for _, key in stored] == [similarity.query_bands(s) for s in signatures]
    assert {len(key) for _, key in stored} == {similarity.BANDS * 4}


@pytest.mark.parametrize("signature", ["", "()", "def", "\ud800(", "123(456)"])
def test_nothing_to_compare(signature: str) -> None:
    assert len(similarity.query_bands(signature)) in (0, similarity.BANDS * 4)
    assert similarity.shared(b"", similarity.query_bands(signature)) == 0.0


def test_keys_do_not_change_between_versions() -> None:
    """Stored keys outlive the process: other keys for the same text need another VERSION."""
    assert similarity.VERSION == 1
    assert (
        similarity.query_bands("def load_order(user_id: int) -> Order").hex()
        == "3339a1c55768b57da83ba00270cd2ca933c255ec7933a1a8755cc8b472526d0c"
    )
