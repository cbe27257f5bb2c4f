"""Rows of one table divided by their domain, and what is refused."""

import numpy as np
import pytest

from sohot.heads.domains import divide, pair, read_domains, unlabelled

X = np.arange(12.0).reshape(6, 2)
Y = np.array(["mug", "pen", "mug", "pen", "mug", "pen"])


def test_rows_go_to_the_domain_their_sign_says_and_keep_their_labels() -> None:
    rows = divide(X, Y, [1, 3, -2, 1, -2, -5])
    np.testing.assert_array_equal(rows.source, X[[0, 1, 3]])
    np.testing.assert_array_equal(rows.target, X[[2, 4, 5]])
    assert rows.classes[rows.source_labels].tolist() == ["mug", "pen", "pen"]
    assert rows.classes[rows.target_labels].tolist() == ["mug", "mug", "pen"]
    assert rows.source_ids == (1, 3)
    assert rows.has_target
    assert not rows.one_domain


def test_two_tables_are_the_same_as_one_with_domains() -> None:
    apart, together = pair(X[:4], Y[:4], X[4:], Y[4:]), divide(X, Y, [1, 1, 1, 1, -1, -1])
    for name in ("source", "source_labels", "target", "target_labels", "classes", "pool", "given"):
        np.testing.assert_array_equal(getattr(apart, name), getattr(together, name))


def test_without_domains_there_is_one_and_minus_one_is_a_class() -> None:
    rows = divide(X, np.array([-1, 1] * 3), None)
    assert len(rows.source) == 6
    assert rows.one_domain
    assert not rows.has_target
    assert rows.classes.tolist() == [-1, 1]


@pytest.mark.parametrize(
    "y", [[0, 1, 0, -1, 1, -1], ["a", "b", "a", None, "b", None], ["a", "b", "a", "-1", "b", "-1"]]
)
def test_unlabelled_target_rows_are_the_pool(y: list[object]) -> None:
    labels = np.array(y, dtype=object if None in y else None)
    rows = divide(X, labels, [1, 1, -1, -1, -1, -1])
    np.testing.assert_array_equal(rows.target, X[[2, 4]])
    np.testing.assert_array_equal(rows.pool, X[[3, 5]])
    assert rows.given.tolist() == [0, 1, 0, -1, 1, -1]
    assert len(rows.classes) == 2


def test_a_target_without_any_label_leaves_one_domain() -> None:
    rows = divide(X, np.array([0, 1, 0, 1, -1, -1]), [1, 1, 1, 1, -1, -1])
    assert rows.one_domain
    assert rows.has_target
    assert len(rows.pool) == 2


def test_one_integer_stands_for_all_rows() -> None:
    assert read_domains(2, 3).tolist() == [2, 2, 2]
    assert read_domains(None, 3) is None


@pytest.mark.parametrize(
    ("domains", "sentence"),
    [
        ([1, -1], "one integer for each of 3 rows"),
        ([1, 0, -1], "got 0"),
        ([1, 0.5, -1], "must hold integers"),
        (["a", "b", "c"], "must hold integers"),
        ([1, np.nan, -1], "must hold integers"),
        ([1, np.inf, -1], "must hold integers"),
        ([1, 1j, -1], "sample_domain holds complex numbers"),
    ],
)
def test_bad_domains_end_in_a_sentence(domains: list[object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_domains(domains, 3)


@pytest.mark.parametrize(
    ("y", "domains", "sentence"),
    [
        ([-1, 1, 1, 1, -1, 1], [1, 1, 1, -1, -1, -1], "-1 for source rows"),
        ([0, 0, 0, 0, -1, -1], [1, 1, 1, 1, -1, -1], "only one class"),
        ([-1] * 6, -1, "y has no labels: every row"),
    ],
)
def test_bad_labels_end_in_a_sentence(y: list[int], domains: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        divide(X, np.array(y), domains)


def test_texts_and_numbers_do_not_mix() -> None:
    with pytest.raises(ValueError, match="different types"):
        pair(X, Y, X, np.array([0, 1] * 3))


def test_truth_values_are_labels() -> None:
    assert not unlabelled(np.array([True, False])).any()
