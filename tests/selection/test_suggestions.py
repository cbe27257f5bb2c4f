"""Which rows to label next: doubtful ones that differ, the same for the same seed, whatever the rows."""

import numpy as np
import pytest

from sohot.selection import suggestions
from sohot.selection.suggestions import doubt, suggest, unlike


def rows_of(*arguments, **options) -> list[int]:
    return [one.row for one in suggest(*arguments, **options)]


def made(rows: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows in any directions, with any probabilities of three classes."""
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, 5)).astype(np.float32), random.dirichlet(np.full(3, 0.7), size=rows)


@pytest.mark.parametrize("count", [1, 7, 59])
def test_as_many_different_rows_as_asked_for(count):
    found = rows_of(*made(), count)
    assert len(set(found)) == count
    assert found == rows_of(*made(), count)  # the choice depends on nothing but rows, probabilities and seed
    assert set(found) <= set(range(60))


@pytest.mark.parametrize("count", [60, 1000])
def test_all_rows_are_ranked_by_doubt_if_there_are_no_more(count):
    features, probabilities = made()
    found = rows_of(features, probabilities, count)
    doubts = doubt(probabilities)[found]
    assert sorted(found) == list(range(60))
    assert (np.diff(doubts) <= 0).all()


def test_doubt_is_one_minus_the_margin_and_ignores_the_order_of_classes():
    _, probabilities = made()
    found = doubt(probabilities)
    assert ((found >= 0) & (found <= 1)).all()
    assert (found == doubt(probabilities[:, ::-1])).all()
    assert doubt(np.array([[1.0, 0.0]])) == 0


def test_doubtful_rows_come_first_but_not_two_that_look_alike():
    random = np.random.default_rng(1)
    corners = np.repeat(np.eye(3, 4, dtype=np.float32), 10, axis=0)
    features = corners + 0.01 * random.normal(size=corners.shape).astype(np.float32)
    probabilities = np.repeat([[0.5, 0.5], [0.6, 0.4], [1.0, 0.0]], 10, axis=0)
    found = suggest(features, probabilities, 2)
    assert [one.row // 10 for one in found] == [0, 1]  # one of each doubted corner, none of the sure one
    assert [one.similar for one in found] == [9, 9]
    probabilities[:10], probabilities[10:20] = [1.0, 0.0], [0.99, 0.01]
    assert rows_of(features, probabilities, 1)[0] // 10 == 1  # the only doubt there is


def test_the_size_and_the_place_of_features_do_not_matter():
    features, probabilities = made()
    assert rows_of(4 * features, probabilities, 9) == rows_of(features, probabilities, 9)
    assert rows_of(features - 0.25, probabilities, 9) == rows_of(features, probabilities, 9)


def test_equal_rows_and_sure_answers_still_give_as_many_as_asked_for():
    features, probabilities = np.ones((6, 2), dtype=np.float32), np.tile([1.0, 0.0], (6, 1))
    assert len(set(rows_of(features, probabilities, 4))) == 4
    assert rows_of(features[:1], probabilities[:1], 3) == [0]


def test_of_very_many_rows_the_doubtful_ones_are_divided(monkeypatch):
    monkeypatch.setattr(suggestions, "MOST_CLUSTERED", 20)
    features, probabilities = made()
    found = rows_of(features, probabilities, 5)
    assert set(found) <= set(np.argsort(-doubt(probabilities))[:20].tolist())
    assert len(set(rows_of(features, probabilities, 45))) == 45


def test_rows_unlike_all_labelled_ones_are_told():
    labelled = np.array([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0], [0.2, 1.0]], dtype=np.float32)
    assert unlike(3 * labelled, labelled).tolist() == [False] * 4
    assert unlike(-labelled, labelled).all()
    assert not unlike(-labelled, labelled[:1]).any()  # one row alone says nothing about distances


def test_wrong_input_is_one_sentence():
    features, probabilities = made()
    with pytest.raises(ValueError, match="60 and 59"):
        suggest(features, probabilities[1:], 3)
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        suggest(features, probabilities, 0)
