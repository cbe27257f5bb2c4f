"""The rule by which a candidate is chosen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sohot.selection.choice import AllFailed, CandidateScore, FoldScore, choose, score_each, tabulate

SIZES = (4, 3, 3)
counts = st.lists(st.tuples(*(st.integers(0, size) for size in SIZES)), min_size=1, max_size=5)


def score(name, rights, failure=None):
    return CandidateScore(
        name, tuple(FoldScore(right, size, failure) for right, size in zip(rights, SIZES, strict=True))
    )


@given(counts)
def test_the_most_right_wins_and_of_equals_the_first(rights):
    choice = choose([score(str(place), one) for place, one in enumerate(rights)], {})
    totals = [sum(one) for one in rights]
    assert choice.chosen == str(totals.index(max(totals)))
    assert choice.best.accuracy == max(totals) / sum(SIZES)


@given(counts)
def test_what_is_told_fits_into_json_and_names_all(rights):
    found = choose([score(f"number {place}", one) for place, one in enumerate(rights)], {}).as_json()
    assert found["held_out_images"] == sum(SIZES)
    assert [one["right"] for one in found["candidates"]] == [list(one) for one in rights]
    assert all(one["name"] in found["reason"] for one in found["candidates"])


def test_a_candidate_that_failed_is_never_chosen():
    broken = CandidateScore("broken", (FoldScore(4, 4), FoldScore(0, 3, "training diverged")))
    choice = choose([broken, score("s+t", (0, 0, 0))], {})
    assert choice.chosen == "s+t"
    assert "broken failed" in choice.reason()
    assert choice.as_json()["candidates"][0]["failure"] == "training diverged"


def test_if_all_fail_the_first_is_told():
    with pytest.raises(AllFailed, match="all 2 candidates failed; the first failure: too far"):
        choose([score("a", (0, 0, 0), "too far"), score("b", (0, 0, 0), "too near")], {})


def test_how_clear_a_choice_is():
    choice = choose([score("s+t", (2, 2, 2)), score("so", (3, 3, 3)), score("m", (3, 3, 3))], {})
    assert choice.reason() == (
        "so: 90.0 % of 10 held-out target images over 3 folds, s+t 60.0 %, m 90.0 %; the first in the list of 2 with "
        "that score; 1 of the other 2 within one standard error (11.8)"
    )


@given(counts)
def test_a_table_is_what_scoring_one_by_one_gives(rights):
    every = {str(place): one for place, one in enumerate(rights)}

    def one_by_one(name, fold):
        return FoldScore(every[name][fold], SIZES[fold])

    scores = [one_by_one(name, fold) for name in every for fold in range(len(SIZES))]
    assert tabulate(every, len(SIZES), scores) == score_each(every, len(SIZES), one_by_one)


def test_a_candidate_that_failed_is_not_tried_on_other_folds():
    tried = []

    def one_by_one(name, fold):
        tried.append((name, fold))
        return FoldScore(0, 4, "too far" if (name, fold) == ("wild", 1) else None)

    scores = score_each(["wild", "s+t"], 3, one_by_one)
    assert tried == [("wild", 0), ("wild", 1), ("s+t", 0), ("s+t", 1), ("s+t", 2)]
    assert scores[0].failure == "too far"


def test_folds_count_alike_where_their_mean_decides():
    uneven = [
        CandidateScore("more rows", (FoldScore(8, 10), FoldScore(0, 1))),
        CandidateScore("a better mean", (FoldScore(6, 10), FoldScore(1, 1))),
    ]
    assert choose(uneven).chosen == "more rows"
    assert choose(uneven, by=lambda score: score.mean_of_folds).chosen == "a better mean"
