import itertools
import math
import statistics

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from sohot.reporting.statistics import overall_difference, paired_difference, split_averages, summarise

ACCURACIES = st.lists(st.integers(0, 702), min_size=2, max_size=9)  # rows right out of 702: ties are common


def by_unit(counts):
    return {unit: 100 * count / 702 for unit, count in enumerate(counts)}


@given(ACCURACIES, st.data())
def test_a_difference_turns_round_with_its_sides_and_ignores_what_both_gain(counts, data) -> None:
    others = data.draw(st.lists(st.integers(0, 702), min_size=len(counts), max_size=len(counts)))
    ours, theirs = by_unit(counts), by_unit(others)
    there, back = paired_difference(ours, theirs), paired_difference(theirs, ours)
    assert there.mean == pytest.approx(-back.mean)
    assert (there.wins, there.ties, there.losses) == (back.losses, back.ties, back.wins)
    assert (there.p_t, there.p_wilcoxon) == pytest.approx((back.p_t, back.p_wilcoxon))
    moved = paired_difference({k: v + 5 for k, v in ours.items()}, {k: v + 5 for k, v in theirs.items()})
    assert moved.as_json() == pytest.approx(there.as_json(), abs=1e-6)
    assert there.wins + there.ties + there.losses == there.pairs == len(counts)


@given(ACCURACIES, st.data())
def test_interval_and_p_of_the_t_test_are_those_of_scipy(counts, data) -> None:
    others = data.draw(st.lists(st.integers(0, 702), min_size=len(counts), max_size=len(counts)))
    differences = np.array(counts) - np.array(others)
    found = paired_difference(by_unit(counts), by_unit(others))
    if np.ptp(differences) == 0:
        assert (found.low, found.high, found.p_t) == (None, None, None if differences.any() else 1.0)
        return
    expected = scipy.stats.ttest_rel(counts, others)
    interval = expected.confidence_interval(0.95)
    assert found.p_t == pytest.approx(expected.pvalue, rel=1e-5, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((interval.low * 100 / 702, interval.high * 100 / 702), abs=1e-6)
    assert (found.p_t < 0.05) == (found.low > 0 or found.high < 0)


@given(ACCURACIES, st.data())
def test_wilcoxon_counts_all_choices_of_signs_with_ties(counts, data) -> None:
    others = data.draw(st.lists(st.integers(0, 702), min_size=len(counts), max_size=len(counts)))
    differences = [a - b for a, b in zip(counts, others, strict=True) if a != b]
    ranks = scipy.stats.rankdata(np.abs(differences)) if differences else []
    middle = sum(ranks) / 2
    seen = abs(sum(rank for rank, one in zip(ranks, differences, strict=True) if one > 0) - middle)
    signs = list(itertools.product((0, 1), repeat=len(differences)))
    as_far = sum(abs(np.dot(choice, ranks) - middle) >= seen - 1e-9 for choice in signs) if differences else 1
    assert paired_difference(by_unit(counts), by_unit(others)).p_wilcoxon == pytest.approx(as_far / len(signs))


@pytest.mark.parametrize("count", [2, 5, 10, 40])
def test_wilcoxon_without_ties_is_scipy_s_exact_one(count: int) -> None:
    values = np.random.default_rng(count).normal(0.3, 1, count)
    found = paired_difference(dict(enumerate(values)), dict.fromkeys(range(count), 0.0))
    assert found.p_wilcoxon == pytest.approx(scipy.stats.wilcoxon(values, method="exact").pvalue)


def test_worked_by_hand() -> None:
    found = paired_difference({1: 3.0, 2: 1.0, 3: 2.0}, {1: 0.0, 2: 0.0, 3: 0.0})
    half = 4.302652729911275 / math.sqrt(3)  # t of 2 degrees; the differences 3, 1, 2 have the standard deviation 1
    assert (found.mean, found.std) == (2.0, 1.0)
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half))
    assert found.p_wilcoxon == 2 / 8


def test_one_pair_has_no_interval_and_no_p() -> None:
    found = paired_difference({1: 80.0}, {1: 79.0})
    assert (found.mean, found.wins) == (1.0, 1)
    assert found.std is found.low is found.high is found.p_t is found.p_wilcoxon is None


def test_differences_without_spread() -> None:
    same = paired_difference(dict.fromkeys(range(6), 80.1), dict.fromkeys(range(6), 80.1))
    assert (same.p_t, same.p_wilcoxon, same.low, same.ties) == (1.0, 1.0, None, 6)
    noisy = {
        unit: value + 0.1 for unit, value in enumerate([80.0, 70.1, 60.3, 50.7, 90.9, 12.3])
    }  # floats: not all 0.1
    shifted = paired_difference(noisy, dict(enumerate([80.0, 70.1, 60.3, 50.7, 90.9, 12.3])))
    assert (shifted.p_t, shifted.low, shifted.std) == (None, None, 0)
    assert shifted.p_wilcoxon == 2 / 2**6


def test_only_complete_pairs_count() -> None:
    found = paired_difference({1: 5.0, 2: 7.0, 3: 99.0}, {1: 4.0, 2: 4.0, 9: 0.0})
    assert (found.pairs, found.unpaired, found.mean) == (2, 2, 2.0)
    assert paired_difference({1: 5.0}, {2: 5.0}) is None
    assert paired_difference({}, {}) is None


def test_the_overall_difference_has_splits_as_units() -> None:
    ours = {("a", 1): 10.0, ("b", 1): 20.0, ("a", 2): 30.0, ("b", 2): 50.0, ("a", 3): 99.0}
    theirs = {("a", 1): 8.0, ("b", 1): 18.0, ("a", 2): 30.0, ("b", 2): 46.0, ("a", 3): 0.0, ("b", 3): 0.0}
    found = overall_difference(ours, theirs, ["a", "b"])
    assert (found.pairs, found.unpaired, found.mean, found.std) == (2, 1, 2.0, 0)
    assert split_averages(ours, ["a", "b"]) == {1: 15.0, 2: 40.0}
    assert split_averages(ours, []) == {}
    assert overall_difference({}, theirs, ["a"]) is None


@given(st.lists(st.floats(0, 100), min_size=2, max_size=12))
def test_a_summary_is_that_of_the_standard_library(values) -> None:
    found = summarise(values)
    assert (found.count, found.mean) == (len(values), statistics.fmean(values))
    assert (found.std, found.sample_std) == (statistics.pstdev(values), statistics.stdev(values))


def test_a_summary_of_little() -> None:
    assert summarise([]) is None
    assert summarise([3.0]).as_json() == {"count": 1, "mean": 3.0, "std": 0.0, "sample_std": None}
