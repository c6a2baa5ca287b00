"""Which rows a tick takes: nobody starves, nobody urgent is slowed down by more than its share."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.engine.batching import SHARE, Ask, Batching
from daemon.engine.costs import RowCosts
from daemon.engine.frames import LANES

COSTS = RowCosts([(1, 20.0), (8, 50.0), (16, 90.0), (64, 270.0)], 256)
KEY, ALTERNATIVE, ANCHOR, WARM, LONG, _ = range(len(LANES))


def speaking(lane: int, rows: int = 1) -> Ask:
    return Ask(lane, rows, rows, divisible=rows > 1)


def prompt(lane: int, rows: int) -> Ask:
    return Ask(lane, rows, 1, divisible=True)


def rows_of(made: Batching, asks: list[Ask], budget: int = 64) -> list[int]:
    granted = [0] * len(asks)
    for place, rows in made.compose(asks, budget):
        granted[place] += rows
    return granted


def test_costs_lie_between_the_measured_points() -> None:
    assert COSTS.ms(1) == 20.0
    assert COSTS.ms(12) == 70.0
    assert COSTS.ms(128) == 540.0
    assert [COSTS.within(ms) for ms in (0, 19.9, 20, 70, 540)] == [0, 0, 1, 12, 128]
    assert RowCosts([(1, 9.0), (2, 5.0)], 4).ms(2) == 9.0


def test_one_run_alone_gets_its_slice() -> None:
    made = Batching(COSTS, 256, 32)
    assert rows_of(made, [prompt(KEY, 200)]) == [64]
    assert rows_of(made, [prompt(KEY, 30)]) == [30]
    assert rows_of(made, [speaking(KEY, 5)]) == [5]


def test_answers_in_progress_go_before_prompts_of_their_lane() -> None:
    made = Batching(COSTS, 256, 32)
    assert rows_of(made, [prompt(KEY, 200), speaking(KEY), prompt(KEY, 99), speaking(KEY)]) == [62, 1, 0, 1]
    assert rows_of(made, [prompt(KEY, 20), speaking(KEY), prompt(KEY, 90)]) == [20, 1, 43]


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    made = Batching(COSTS, 256, 32)
    assert rows_of(made, [prompt(KEY, 900), prompt(KEY, 900), prompt(KEY, 3), prompt(KEY, 40)]) == [
        61,
        0,
        3,
        0,
    ]
    crowd = [prompt(KEY, 900), *(prompt(KEY, 4) for _ in range(20))]
    assert rows_of(made, crowd)[:9] == [32, *[4] * 8]


def test_drafts_are_shortened_before_anybody_waits() -> None:
    made = Batching(COSTS, 256, 16)
    assert rows_of(made, [speaking(KEY, 9) for _ in range(8)]) == [2] * 8


def test_a_long_answer_gets_rows_beside_a_keystroke_and_costs_it_a_share() -> None:
    made = Batching(COSTS, 256, 32)
    asks = [speaking(KEY), speaking(LONG)]
    granted = [rows_of(made, asks) for _ in range(100)]
    assert all(key == 1 for key, _ in granted)
    assert sum(long for _, long in granted) >= 50
    taken = sum(COSTS.ms(key + long) for key, long in granted)
    assert taken <= 100 * COSTS.ms(1) * (1 + SHARE) + COSTS.ms(1)


def test_what_is_less_urgent_never_saves_up_for_a_stutter() -> None:
    made = Batching(COSTS, 256, 32)
    for _ in range(50):
        rows_of(made, [speaking(KEY)])
    _, warm = rows_of(made, [speaking(KEY), prompt(WARM, 500)])
    assert COSTS.ms(1 + warm) <= COSTS.ms(1) * (1 + SHARE)


def test_a_run_that_must_be_alone_is_alone_and_starves_nobody() -> None:
    made = Batching(COSTS, 256, 32)
    asks = [Ask(KEY, 64, 0, alone=True), speaking(KEY), Ask(LONG, 48, 0, alone=True), prompt(WARM, 99)]
    granted = [rows_of(made, asks) for _ in range(200)]
    for one in granted:
        if one[0] or one[2]:
            assert sum(1 for rows in one if rows) == 1
    assert all(sum(one[place] for one in granted) > 0 for place in range(4))


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            lambda lane, rows, kind: [speaking(lane, rows % 9 + 1), prompt(lane, rows)][kind],
            st.integers(0, len(LANES) - 1),
            st.integers(1, 300),
            st.integers(0, 1),
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(16, 256),
)
def test_every_lane_is_served_and_no_decode_is_too_large(asks: list[Ask], budget: int) -> None:
    made = Batching(COSTS, 256, 32)
    served = dict.fromkeys((ask.lane for ask in asks), 0)
    top = min(served)
    for _ in range(400):
        grants = made.compose(asks, budget)
        assert grants
        assert len({grant.place for grant in grants}) == len(grants)
        assert sum(grant.rows for grant in grants) <= 256
        outputs = 0
        for place, rows in grants:
            ask = asks[place]
            assert 0 < rows <= ask.rows
            outputs += max(0, ask.outputs - (ask.rows - rows))
            served[ask.lane] += rows
        assert outputs <= 32
        assert any(asks[grant.place].lane == top for grant in grants)
    assert all(served.values())
