"""Folds: every shot is held back once, and what shows the same stays together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sohot.selection import TooFewShots, deal

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=30)


@given(LABELS, st.none() | st.integers(2, 6))
def test_every_shot_is_held_back_once_but_for_classes_of_one(labels: list[int], number: int | None) -> None:
    y = np.array(labels)
    counts = np.bincount(y)
    if counts.max() < 2:
        with pytest.raises(TooFewShots, match="no class has two"):
            deal(labels, range(len(y)), folds=number)
        return
    folds = deal(labels, range(len(y)), folds=number)
    assert sorted(row for fold in folds for row in fold.held) == np.flatnonzero(counts[y] > 1).tolist()
    assert len(folds) == (counts.max() if number is None else min(counts.max(), number))
    for fold in folds:
        assert sorted([*fold.train, *fold.held]) == list(range(len(y)))
        assert set(y[fold.train]) == set(labels)


@given(LABELS, st.data())
def test_what_shows_the_same_stays_together(labels: list[int], data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.integers(0, 3), min_size=len(labels), max_size=len(labels)))
    try:
        folds = deal(labels, keys)
    except TooFewShots:
        return
    for fold in folds:
        shown = [{(labels[row], keys[row]) for row in rows} for rows in fold]
        assert not shown[0] & shown[1]


def test_shots_are_dealt_in_the_order_that_is_asked_for() -> None:
    assert [fold.held for fold in deal([0, 0, 0, 1, 1], [7, 8, 7, 7, 9])] == [[0, 2, 3], [1, 4]]
    assert [fold.held for fold in deal([0, 0, 0, 1, 1], [7, 8, 7, 7, 9], order=lambda rows: -rows[0])] == [
        [1, 4],
        [0, 2, 3],
    ]


@pytest.mark.parametrize("folds", [1, True, 2.0])
def test_bad_folds_end_in_a_sentence(folds: object) -> None:
    with pytest.raises(ValueError, match="folds must be an integer of at least 2"):
        deal([0, 0], [0, 1], folds=folds)  # type: ignore[arg-type]
