"""The rule by which a candidate is chosen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sohot.selection.choice import CandidateScore, FoldScore, choose
from sohot.training import TrainingError

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
    with pytest.raises(TrainingError, match="each of the 2 candidates failed, the first so: too far"):
        choose([score("a", (0, 0, 0), "too far"), score("b", (0, 0, 0), "too near")], {})


def test_how_clear_a_choice_is():
    choice = choose([score("s+t", (2, 2, 2)), score("so", (3, 3, 3)), score("m", (3, 3, 3))], {})
    assert choice.reason() == (
        "so: 90.0 % of 10 held-out target images over 3 folds, s+t 60.0 %, m 90.0 %; the first in the list of 2 with "
        "that score; 1 of the other 2 within one standard error (11.8)"
    )
