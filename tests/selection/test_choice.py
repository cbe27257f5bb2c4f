"""The rule by which a candidate is chosen, and the weights by which candidates are averaged."""

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sohot.selection import AllFailed, choose
from sohot.selection.choice import CLEAR, CandidateScore, FoldScore, Gain, blending_weights, score_each, tabulate
from sohot.selection.held_out import HeldOut

SIZES = (4, 3, 3)
margins = st.lists(st.floats(-6, 6), min_size=sum(SIZES), max_size=sum(SIZES))
several = st.lists(margins, min_size=1, max_size=5)


def score(name, margins):
    """A candidate that prefers the true class, of two, by these margins."""
    logits = [[margin, 0.0] for margin in margins]
    ends = np.cumsum(SIZES)
    parts = [logits[end - size : end] for end, size in zip(ends, SIZES, strict=True)]
    return CandidateScore(name, tuple(FoldScore.of(HeldOut(part, [0] * len(part))) for part in parts))


def scores_of(every):
    return [score(f"number {place}", one) for place, one in enumerate(every)]


def failed(name, failure="training diverged"):
    return CandidateScore(name, (FoldScore(4, 4), FoldScore(0, 3, failure)))


def around(mean, spread=1.0):
    return [mean + spread * (-1) ** row for row in range(sum(SIZES))]


@given(several, st.data())
def test_the_default_or_a_clear_leader_is_chosen(every, data):
    default = data.draw(st.integers(0, len(every) - 1))
    scores = scores_of(every)
    choice = choose(scores, default=default)
    likelihoods = [one.log_likelihood for one in scores]
    assert likelihoods[choice.leader] == max(likelihoods)
    assert choice.place in (default, choice.leader)
    gains = scores[choice.leader].log_likelihoods - scores[default].log_likelihoods
    error = gains.std(ddof=1) / len(gains) ** 0.5
    assume(abs(gains.mean() - CLEAR * error) > 1e-5)  # apart from the limit itself, where rounding decides
    assert choice.is_told == (gains.mean() > CLEAR * error)
    assert choice.is_told == (choice.place != default)


@given(several, st.permutations(range(sum(SIZES))))
def test_the_order_of_rows_does_not_matter(every, order):
    first, second = choose(scores_of(every)), choose(scores_of([[one[row] for row in order] for one in every]))
    assert first.best.log_likelihood == pytest.approx(second.best.log_likelihood)


def test_a_clear_lead_replaces_the_default():
    choice = choose([score("s+t", around(0.5)), score("so", around(2.5))])
    assert choice.chosen == "so"
    assert choice.is_told
    assert "it makes their true classes more likely than s+t does, clearly (log-likelihood +0." in choice.reason()


def test_where_labels_cannot_tell_the_default_stays_and_the_reason_says_so():
    choice = choose([score("s+t", around(1.0)), score("so", around(1.1, spread=-1.0))])
    assert choice.leader == 1
    assert choice.chosen == "s+t"
    assert "the labels cannot tell so from it (log-likelihood +0." in choice.reason()
    assert choice.reason().endswith("so the default stays")


@pytest.mark.parametrize("default", [0, 1, 2])
def test_equals_leave_the_default_where_it_is(default):
    choice = choose([score(name, around(1.0)) for name in "abc"], default=default)
    assert choice.place == choice.leader == default
    assert choice.reason().endswith("no other candidate makes their true classes more likely")


def test_a_difference_of_rounding_is_no_lead():
    choice = choose([score("s+t", around(1.0)), score("so", [x + 1e-9 for x in around(1.0)])])
    assert choice.chosen == "s+t"


def test_being_too_sure_costs_little():
    """A temperature puts it right, as it does afterwards."""
    modest, sure = score("modest", around(0.6, 2.0)), score("sure", [10 * x for x in around(0.6, 2.0)])
    assert sure.temperature > 2 * modest.temperature
    raw = sure.held_out.log_likelihoods().mean()
    assert sure.log_likelihood - raw > 0.5 * (modest.log_likelihood - raw)


def test_one_row_is_never_clear():
    one, other = (CandidateScore(name, (FoldScore.of(HeldOut([[x, 0.0]], [0])),)) for name, x in (("a", 0), ("b", 9)))
    assert not Gain.of(other.log_likelihoods, one.log_likelihoods).is_clear
    assert choose([one, other]).chosen == "a"


@given(several)
def test_what_is_told_fits_into_json_and_names_all(every):
    found = json.loads(json.dumps(choose(scores_of(every)).as_json(), allow_nan=False))
    assert found["held_out_images"] == sum(SIZES)
    assert sum(found["candidates"][0]["right"]) == sum(margin >= 0 for margin in every[0])
    assert all(one["name"] in found["reason"] for one in found["candidates"])
    assert found["default"] == "number 0"
    assert found["told_apart"] == (found["chosen"] != "number 0")


def test_the_only_candidate_is_chosen():
    assert choose([score("s+t", around(-3.0))]).reason().endswith("the only candidate")


def test_a_candidate_that_failed_is_never_chosen():
    choice = choose([failed("broken"), score("s+t", around(-3.0)), score("so", around(-2.9))])
    assert choice.chosen == "so"  # there is no default left: the most likely
    assert "broken failed, and of the others it makes the true classes most likely" in choice.reason()
    assert choice.as_json()["candidates"][0]["failure"] == "training diverged"
    assert choice.as_json()["candidates"][0]["log_likelihood"] is None
    assert choose([score("s+t", around(-3.0)), failed("broken")]).chosen == "s+t"


def test_logits_that_are_not_finite_are_a_failure():
    assert FoldScore.of(HeldOut([[np.nan, 0.0]], [0])).failure == "its logits are not finite"


@pytest.mark.parametrize("rule", [choose, blending_weights])
def test_if_all_fail_the_first_is_told(rule):
    with pytest.raises(AllFailed, match="all 2 candidates failed; the first failure: too far"):
        rule([failed("a", "too far"), failed("b", "too near")])


@given(several)
def test_weights_add_up_to_one_and_follow_the_likelihood(every):
    scores = scores_of(every)
    weights = blending_weights(scores)
    assert sum(weights) == pytest.approx(1)
    assert min(weights) >= 0
    by_likelihood = sorted(range(len(scores)), key=lambda place: scores[place].log_likelihood)
    ordered = [weights[place] for place in by_likelihood]
    assert ordered == pytest.approx(sorted(ordered))


def test_equals_count_alike_and_failures_do_not():
    scores = [score("a", around(1.0)), failed("b"), score("c", around(1.0))]
    assert blending_weights(scores) == [0.5, 0, 0.5]


def test_weights_are_in_proportion_to_the_probability_of_all_labels():
    scores = [score("a", around(1.0)), score("b", around(1.2))]
    one, other = blending_weights(scores)
    totals = [each.log_likelihoods.sum() for each in scores]
    assert other / one == pytest.approx(np.exp(totals[1] - totals[0]))


@given(several)
def test_a_table_is_what_scoring_one_by_one_gives(every):
    each = {one.name: one for one in scores_of(every)}

    def one_by_one(name, fold):
        return each[name].folds[fold]

    scores = [one_by_one(name, fold) for name in each for fold in range(len(SIZES))]
    assert tabulate(each, len(SIZES), scores) == score_each(each, len(SIZES), one_by_one)


def test_a_candidate_that_failed_is_not_tried_on_other_folds():
    tried = []

    def one_by_one(name, fold):
        tried.append((name, fold))
        return FoldScore(0, 4, "too far" if (name, fold) == ("wild", 1) else None)

    scores = score_each(["wild", "s+t"], 3, one_by_one)
    assert tried == [("wild", 0), ("wild", 1), ("s+t", 0), ("s+t", 1), ("s+t", 2)]
    assert scores[0].failure == "too far"
