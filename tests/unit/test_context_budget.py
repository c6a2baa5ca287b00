"""Shares, flow, trimming, and that nothing exceeds its room."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from daemon.context.budget import Chosen, choose, rendered
from daemon.surroundings import Piece

SHARES = (40, 20, 15, 15, 10)


def count(text: str) -> int:
    return len(text.split())


def piece(tier: str, name: str, words: int, importance: float = 0.5, **other: object) -> Piece:
    text = "\n".join(f"{name}_{n} = {n}" for n in range(max(1, words // 3)))
    kind = {"P1": "enclosing", "P2": "definition", "P3": "caller", "P4": "recent"}[tier]
    fields = {"tier": tier, "kind": kind, "path": f"{name}.py", "text": text, "name": name}
    return Piece(**{**fields, "importance": importance, **other})  # type: ignore[arg-type]


def cost(chosen: Chosen) -> int:
    return sum(1 + count(rendered(p)) for p in chosen.pieces)


def pick(pieces: list[Piece], room: int, taken: int = 0, best: int = 15, shown: str = "") -> Chosen:
    return choose(pieces, room=room, taken=taken, shares=SHARES, best=best, count=count, shown=shown)


made = st.builds(
    piece,
    st.sampled_from(["P1", "P2", "P3", "P4"]),
    st.text("abcdefgh", min_size=1, max_size=3),
    st.integers(3, 200),
    st.floats(0, 1),
    recency=st.floats(0, 1),
    distance=st.integers(0, 4),
    kind=st.sampled_from(["outline", "enclosing", "definition", "caller", "sibling", "text", "recent"]),
)


@given(st.lists(made, max_size=40), st.integers(0, 2000), st.integers(0, 1500), st.integers(0, 99))
def test_the_room_holds_and_the_input_order_does_not_matter(
    pieces: list[Piece], room: int, taken: int, seed: int
) -> None:
    found = pick(pieces, room, taken)
    assert cost(found) == sum(found.tokens.values()) <= max(0, room - taken)
    mixed = list(pieces)
    random.Random(seed).shuffle(mixed)
    assert pick(mixed, room, taken) == found
    assert len(found.pieces) + len(found.lost) == len(pieces)
    assert all(lost.why and lost.tokens > 0 for lost in found.lost)


def test_each_tier_has_its_share_and_what_is_left_goes_to_the_best() -> None:
    pieces = [piece(t, f"{t.lower()}{n}", 18, 0.9 - n / 10) for t in ("P2", "P3") for n in range(6)]
    found = pick(pieces, 200, 80)
    assert found.tokens["P1"] == found.tokens["P4"] == 0
    assert found.tokens["P2"] > 30
    assert found.tokens["P3"] > 30
    assert 100 < cost(found) <= 120
    assert {lost.why for lost in found.lost} == {"over the P2 share", "over the P3 share"}


def test_what_is_worth_little_has_no_right_to_a_share() -> None:
    definitions = [piece("P2", f"n{n}", 30, 0.8) for n in range(4)]
    little, more = piece("P4", "little", 9, 0.1), piece("P4", "more", 9, 0.5)
    assert [p.name for p in pick([*definitions, little], 130).pieces] == ["n0", "n1", "n2", "n3"]
    assert "more" in [p.name for p in pick([*definitions, more], 130).pieces]
    assert "little" in [p.name for p in pick([*definitions, little], 300).pieces], "where there is room"


def test_reference_distance_decays_related_pieces_only() -> None:
    near, far = piece("P3", "near", 30, 0.6, distance=1), piece("P3", "far", 30, 0.7, distance=3)
    assert [p.name for p in pick([far, near], 40).pieces] == ["near"]
    near, far = (piece("P2", n, 30, i, distance=d) for n, i, d in (("near", 0.6, 1), ("far", 0.7, 3)))
    assert [p.name for p in pick([far, near], 40).pieces] == ["far"]


def test_only_the_best_compete() -> None:
    found = pick([piece("P2", f"n{n:02}", 3, 1 - n / 100) for n in range(20)], 10_000, best=15)
    assert len(found.pieces) == 15
    assert {lost.why for lost in found.lost} == {"beyond the best 15"}


def test_visible_and_repeated_text_is_left_out() -> None:
    first, again = piece("P2", "one", 30, 0.9), piece("P3", "one", 30, 0.9)
    seen = piece("P3", "seen", 30)
    found = pick([first, again, seen], 1000, shown=f"x\n{seen.text}\n")
    assert found.pieces == (first,)
    assert {lost.tier: lost.why for lost in found.lost} == {"P3": "already visible"} or sorted(
        lost.why for lost in found.lost
    ) == ["already visible", f"duplicate of {first.source}"]


def test_an_outline_is_cut_at_a_member_and_stays_closed() -> None:
    text = "interface A {\n" + "".join(f"  member{n}(a: int): void;\n" for n in range(30)) + "}"
    outline = piece("P2", "a", 3, kind="outline", text=text)
    (cut,) = pick([outline], 60).pieces
    assert cut.text.startswith("interface A {\n  member0(a: int): void;\n")
    assert cut.text.endswith(";\n}")
    assert not pick([piece("P3", "a", 3, kind="caller", text=text)], 60).pieces


def test_the_stable_stands_first() -> None:
    kinds = ["recent", "caller", "definition", "outline"]
    tiers = ["P4", "P3", "P2", "P2"]
    pieces = [piece(t, k, 9, kind=k) for t, k in zip(tiers, kinds, strict=True)]
    assert [p.kind for p in pick(pieces, 1000).pieces] == ["outline", "definition", "caller", "recent"]
