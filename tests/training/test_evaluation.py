import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from sohot.functional.shares import wilson_interval
from sohot.training import Evaluation, evaluate


def test_accuracies_agree_with_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(200, 5, generator=generator), torch.randint(5, (200,), generator=generator)
    result, guess = evaluate(logits, labels, list("abcde")), logits.argmax(1)
    assert result.micro == pytest.approx(metrics.accuracy_score(labels, guess))
    assert result.macro == pytest.approx(metrics.balanced_accuracy_score(labels, guess))
    assert result.confusion == metrics.confusion_matrix(labels, guess).tolist()
    assert list(result.per_class.values()) == pytest.approx(metrics.recall_score(labels, guess, average=None).tolist())
    assert list(result.precision.values()) == pytest.approx(metrics.precision_score(labels, guess, average=None))
    assert list(result.f1.values()) == pytest.approx(metrics.f1_score(labels, guess, average=None))


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_interval_is_that_of_scipy(counts):
    right, count = counts
    expected = stats.binomtest(right, count).proportion_ci(0.95, method="wilson")
    low, high = wilson_interval(right, count)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= low <= right / count + 1e-12
    assert right / count - 1e-12 <= high <= 1


def test_a_class_without_rows_counts_in_no_mean():
    result = evaluate(torch.eye(3)[[0, 0, 1]], torch.tensor([0, 1, 1]), ["a", "b", "c"])
    assert result.per_class == {"a": 1.0, "b": 0.5, "c": None}
    assert result.per_class_interval95["c"] is None
    assert (result.macro, result.rows, result.correct) == (0.75, 3, 2)
    assert result.precision == {"a": 0.5, "b": 1.0, "c": None}
    assert result.f1 == {"a": pytest.approx(2 / 3), "b": pytest.approx(2 / 3), "c": None}
    stored = json.loads(json.dumps(result.as_json()))
    assert stored["confusion"] == [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert stored["f1"]["c"] is None
    assert Evaluation.from_json(stored) == result


def test_mistakes_are_told_by_what_they_are_taken_for():
    guesses, labels = torch.tensor([0] * 5 + [1] * 4 + [2] * 4), torch.tensor([0, 1, 1, 2, 2, 1, 1, 3, 1, 2, 2, 3, 2])
    result = evaluate(torch.eye(4)[guesses], labels, ["ant", "bee", "cat", "dog"])
    assert result.mistakes() == [
        "takes 2 of 5 bee, 2 of 5 cat for ant",
        "takes 1 of 2 dog for bee",
        "takes 1 of 2 dog for cat",
    ]
    assert result.mistakes(most=1, classes=1) == ["takes 2 of 5 bee and 1 more for ant"]
    assert evaluate(torch.eye(2), torch.arange(2), 2).mistakes() == []


@pytest.mark.parametrize(
    ("logits", "labels", "classes", "message"),
    [
        (torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64), 2, r"shape \(rows, 2\)"),
        (torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64), 2, "empty"),
        (torch.zeros(2, 2), torch.tensor([0, 2]), 2, "labels must lie in"),
        (torch.zeros(2, 2), torch.tensor([0]), 2, "one label per row"),
        (torch.full((1, 2), float("nan")), torch.tensor([0]), 2, "NaN"),
        (torch.zeros(1, 2), torch.tensor([0]), ["a", "a"], "must not repeat"),
    ],
)
def test_bad_input_is_named(logits, labels, classes, message):
    with pytest.raises(ValueError, match=message):
        evaluate(logits, labels, classes)


def test_wilson_refuses_impossible_counts():
    with pytest.raises(ValueError, match="3 of 2"):
        wilson_interval(3, 2)
