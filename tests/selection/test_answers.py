"""How far the confidence of answers can be trusted: the laws, then answers a user would judge."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sohot.selection.answers import BINS, ROWS_PER_BIN, Answers

rows = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50)


def answers(pairs):
    confidence, right = zip(*pairs, strict=True)
    return Answers(confidence, right)


@given(rows)
@settings(max_examples=40)
def test_bins_hold_every_answer_once(pairs):
    found, bins = answers(pairs), answers(pairs).reliability()
    assert sum(one.rows for one in bins) == len(pairs)
    assert sum(one.rows * one.right for one in bins) == pytest.approx(found.right.sum())
    assert sum(one.rows * one.confidence for one in bins) == pytest.approx(found.confidence.sum())
    assert [one.confidence for one in bins] == sorted(one.confidence for one in bins)
    assert len(bins) <= BINS


@given(rows)
@settings(max_examples=40)
def test_the_calibration_error_is_a_share_at_least_the_gap_of_the_means(pairs):
    found = answers(pairs)
    gap = abs(found.confidence.mean() - found.right.mean())
    assert gap - 1e-9 <= found.calibration_error() <= 1


@pytest.mark.parametrize("number", [1, 20, 1000])
def test_who_is_certain_and_right_has_no_calibration_error(number):
    sure = Answers(np.ones(number), np.ones(number, bool))
    assert sure.calibration_error() == 0
    assert sure.risk_coverage().area == 0
    assert Answers(np.ones(number), np.zeros(number, bool)).calibration_error() == 1


def test_few_answers_share_bins_and_many_have_bins_of_equal_width():
    random = np.random.default_rng(0)
    few = Answers(random.random(43), random.random(43) < 0.5)
    assert [one.rows for one in few.reliability()] == [11, 11, 11, 10]
    enough = BINS * ROWS_PER_BIN
    many = Answers(np.repeat([0.05, 0.95], enough), np.repeat([False, True], enough))
    assert [(one.rows, one.confidence, one.right) for one in many.reliability()] == [
        (enough, pytest.approx(0.05), 0),
        (enough, pytest.approx(0.95), 1),
    ]


def test_answers_that_are_as_often_right_as_they_say_have_a_small_error():
    random = np.random.default_rng(0)
    confidence = random.random(20_000)
    assert Answers(confidence, random.random(20_000) < confidence).calibration_error() < 0.02


@given(rows)
@settings(max_examples=40)
def test_risk_at_full_coverage_is_the_error_rate(pairs):
    found, curve = answers(pairs), answers(pairs).risk_coverage()
    assert curve.coverage[-1] == 1
    assert curve.risk[-1] == pytest.approx(1 - found.right.mean())
    assert (np.diff(curve.coverage) > 0).all()
    assert 0 <= curve.area <= 1


@given(rows, st.randoms())
@settings(max_examples=40)
def test_the_order_of_the_answers_changes_nothing(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    assert answers(shuffled).calibration_error() == pytest.approx(answers(pairs).calibration_error(), abs=1e-12)
    one, other = answers(pairs).risk_coverage(), answers(shuffled).risk_coverage()
    np.testing.assert_allclose(one.coverage, other.coverage)
    np.testing.assert_allclose(one.risk, other.risk)


def test_the_less_confident_the_wrong_ones_the_smaller_the_area():
    well, badly = Answers([0.9, 0.8, 0.2], [True, True, False]), Answers([0.9, 0.8, 0.2], [False, True, True])
    assert well.risk_coverage().area == pytest.approx(1 / 9)
    assert well.risk_coverage().area < badly.risk_coverage().area


@given(rows, st.floats(0.01, 1))
@settings(max_examples=60)
def test_the_limit_refuses_the_share_of_wrong_answers(pairs, share):
    found = answers(pairs)
    if found.right.all():
        with pytest.raises(ValueError, match="no answer is wrong"):
            found.refuse_wrong(share)
        return
    refused = found.refuse_wrong(share)
    assert refused.share >= share - 1e-9
    assert refused.expected_share >= share - 1e-9 or refused.wrong_refused == refused.wrong
    wrong, low = found.confidence[~found.right], found.confidence < refused.below
    assert (refused.wrong, refused.wrong_refused) == (len(wrong), (low & ~found.right).sum())
    assert (refused.right, refused.right_refused) == (found.right.sum(), (low & found.right).sum())
    # No lower limit does: the most confident wrong answer that is refused is needed, but for equally confident ones.
    highest = found.confidence[low].max()
    assert highest in wrong
    fewer = found.refuse(highest)
    assert fewer.expected_share < share or fewer.wrong_refused < refused.wrong_refused


@given(rows, st.floats(0, 1))
@settings(max_examples=40)
def test_a_higher_limit_refuses_no_less(pairs, below):
    found = answers(pairs)
    lower, higher = found.refuse(below), found.refuse((1 + below) / 2)
    assert lower.wrong_refused <= higher.wrong_refused
    assert lower.coverage >= higher.coverage
    assert found.refuse(0).coverage == 1
    assert found.refuse(0).accuracy == pytest.approx(found.right.mean())


def test_new_wrong_answers_are_refused_as_often_as_promised():
    random = np.random.default_rng(0)
    shares = []
    for _ in range(400):
        known = Answers(random.random(9), np.zeros(9, bool))
        shares.append((random.random(50) < known.refuse_wrong(0.8).below).mean())
    assert 0.8 <= np.mean(shares) <= 0.92


def test_a_limit_is_found_even_if_a_wrong_answer_is_certain():
    refused = Answers([1.0, 1.0, 0.5], [False, True, True]).refuse_wrong(0.5)
    assert (refused.share, refused.coverage, refused.accuracy) == (1, 0, None)


@pytest.mark.parametrize("share", [0, -0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ValueError, match="share must lie above 0"):
        Answers([0.5], [False]).refuse_wrong(share)


@pytest.mark.parametrize(
    ("confidence", "right"), [([0.5], [True, False]), ([1.5], [True]), ([float("nan")], [True]), ([[0.5]], [[True]])]
)
def test_answers_that_are_none_are_refused(confidence, right):
    with pytest.raises(ValueError, match="confidence"):
        Answers(confidence, right)


def test_no_answers_cannot_be_judged():
    none = Answers([], [])
    for judged in (none.calibration_error, none.risk_coverage):
        with pytest.raises(ValueError, match="no answers"):
            judged()
