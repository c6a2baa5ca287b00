"""The arithmetic of measurements, against values worked out by hand."""

import math

import pytest

from daemon.bench import stats


def test_percentile_interpolates_between_neighbours() -> None:
    assert stats.percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert stats.percentile(range(101), 0.99) == 99
    assert stats.percentile([7], 0.9) == 7
    assert stats.percentile([1, 2], 0.0) == 1
    assert stats.percentile([1, 2], 1.0) == 2


def test_nothing_measured_is_not_a_number() -> None:
    assert math.isnan(stats.percentile([], 0.5))
    assert math.isnan(stats.mean([]))
    assert math.isnan(stats.ratio(1, 0))


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(50, 100, 0.4038, 0.5962), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (87, 150, 0.5000, 0.6560)],
)
def test_wilson_gives_the_published_interval(hits: int, total: int, low: float, high: float) -> None:
    assert stats.wilson(hits, total) == pytest.approx((low, high), abs=1e-3)


def test_wilson_of_nothing_is_everything() -> None:
    assert stats.wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2), ("same", "same", 0)],
)
def test_levenshtein(left: str, right: str, distance: int) -> None:
    assert stats.levenshtein(left, right) == distance
    assert stats.levenshtein(right, left) == distance


def test_similarity_is_a_share_of_the_longer_line() -> None:
    assert stats.similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert stats.similarity("", "") == 1.0
    assert stats.similarity("ab", "") == 0.0


def test_first_line_is_the_first_that_is_not_blank() -> None:
    assert stats.first_line("\n  \n    x = 1  \n    y = 2\n") == "    x = 1"
    assert stats.first_line("   \n\n") == ""


def test_common_prefix_counts_characters() -> None:
    assert stats.common_prefix("return x", "return y") == 7
    assert stats.common_prefix("", "y") == 0
    assert stats.common_prefix("ab", "abc") == 2


def test_product_limit_estimate_of_a_published_example() -> None:
    """Weeks of remission with 6-mercaptopurine (Freireich 1963): the median is 23."""
    ended = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    left = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    waits = [stats.Wait(99, week) for week in ended] + [stats.Wait(week, None) for week in left]
    assert stats.answered_within(waits, 0.5) == (23, True)
    assert stats.answered_within(waits, 1 - 0.81) == (7, True)
    assert stats.answered_within(waits, 1 - 0.63) == (16, True)
    assert stats.answered_within(waits, 0.99) == (25, False), "the fifth longest"


def test_a_share_that_was_never_answered_exceeds_what_few_waited() -> None:
    assert stats.answered_within([], 0.5) == (0.0, False)
    assert stats.answered_within([stats.Wait(5, None)] * 3, 0.5) == (0.0, False)
    assert stats.answered_within([stats.Wait(5, 4)], 0.99) == (4, True)
    assert stats.answered_within([stats.Wait(5, 5), stats.Wait(5, None)], 0.5) == (5, True)
