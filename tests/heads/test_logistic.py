"""fit_logistic: the minimum of the objective, whatever else is in the stack; scikit-learn finds the same."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.testing import assert_close
from two_domains import two_domains

from sohot import SoHoTClassifier
from sohot.heads.logistic import fit_logistic

DATA = two_domains()
SOURCE, TARGET = DATA.sample_domain > 0, DATA.sample_domain < 0
Rows = tuple[Tensor, Tensor, Tensor]  # (n, k), (n,), (n,)

SIZES = {
    "two classes": ((9, 7), 3),
    "three classes": ((5, 8, 6), 4),
    "many classes": ((3,) * 12, 6),
    "more features than rows": ((3, 4, 2), 30),
    "classes of one row": ((1, 6, 1), 4),
}


def draw(sizes: tuple[int, ...], size: int, seed: int = 0) -> Rows:
    """Rows of overlapping classes, with unequal weights that add up to 1."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    centres = torch.randn(len(sizes), size, generator=generator)
    rows = centres[classes] + torch.randn(len(classes), size, generator=generator)
    weights = torch.rand(len(classes), generator=generator) + 0.1
    return rows.double(), classes, weights.double() / weights.sum()


def logits_of(data: Rows, decay: float, at: Tensor | None = None, num_classes: int | None = None) -> Tensor:
    rows, classes, weights = (x.unsqueeze(0) for x in data)
    count = int(data[1].max()) + 1 if num_classes is None else num_classes
    heads = fit_logistic(rows, classes, weights, torch.tensor([decay]), count)
    return (data[0] if at is None else at) @ heads.weight[0] + heads.bias[0]


def of_scikit_learn(rows: Any, classes: Any, weights: Any, decay: float, at: Any) -> Tensor:
    """Σ wᵢ CEᵢ + λ‖W‖² is scikit-learn's objective with C = 1/(2λ), divided by C."""
    model = LogisticRegression(C=1 / (2 * decay), tol=1e-10, max_iter=10_000)
    two = len(np.unique(np.asarray(classes))) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        if two:  # its binary form has one column of weights, w₁ − w₀, whose penalty counts twice there
            model.set_params(C=1 / decay)
        return torch.from_numpy(model.fit(rows, classes, sample_weight=weights).predict_proba(at))


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("decay", [3e-4, 0.03, 1.0])
def test_scikit_learn_finds_the_same(name: str, decay: float) -> None:
    data = draw(*SIZES[name])
    new = draw(*SIZES[name], seed=1)[0]
    assert_close(logits_of(data, decay, new).softmax(1), of_scikit_learn(*data, decay, new), atol=1e-4, rtol=0)


def test_a_class_without_rows_is_never_predicted_and_changes_nothing() -> None:
    data = draw((5, 8, 6), 4)
    classes = torch.tensor([0, 2, 3])[data[1]]  # none of class 1, none of class 4
    new = 3 * draw((50,), 4)[0]
    found, expected = logits_of((data[0], classes, data[2]), 0.03, new, num_classes=5), logits_of(data, 0.03, new)
    assert (found.argmax(1) != 1).all()
    assert (found.argmax(1) != 4).all()
    assert_close(found[:, [0, 2, 3]].softmax(1), expected.softmax(1), atol=1e-9, rtol=0)


def test_a_weight_of_zero_leaves_a_row_out() -> None:
    rows, classes, weights = draw((5, 8, 6), 4)
    kept = torch.arange(len(classes)) % 3 > 0
    odd = torch.where(kept[:, None], rows, 1e3)
    found = logits_of((odd, classes, weights * kept), 0.03, rows)
    assert_close(found, logits_of((rows[kept], classes[kept], weights[kept]), 0.03, rows), atol=1e-7, rtol=0)


@settings(max_examples=10)
@given(st.lists(st.integers(1, 3), min_size=19, max_size=19))
def test_a_whole_weight_is_a_row_given_that_often(times: list[int]) -> None:
    rows, classes, _ = draw((5, 8, 6), 4)
    counts = torch.tensor(times)
    found = logits_of((rows, classes, counts / counts.sum()), 0.03)
    repeated = (x.repeat_interleave(counts, 0) for x in (rows, classes, torch.full((19,), 1 / int(counts.sum()))))
    assert_close(found, logits_of(tuple(repeated), 0.03, rows), atol=1e-6, rtol=0)


def test_the_order_of_rows_and_of_columns_does_not_matter() -> None:
    rows, classes, weights = draw((5, 8, 6), 4)
    order, columns = torch.randperm(19, generator=torch.Generator().manual_seed(0)), torch.tensor([2, 0, 3, 1])
    found = logits_of((rows[order][:, columns], classes[order], weights[order]), 0.03, rows[:, columns])
    assert_close(found, logits_of((rows, classes, weights), 0.03), atol=1e-7, rtol=0)


def test_turned_and_moved_rows_give_the_same_answers() -> None:
    rows, classes, weights = draw((5, 8, 6), 4)
    turn = torch.linalg.qr(draw((4,), 4)[0])[0]
    found = logits_of((rows @ turn + 5, classes, weights), 0.03)
    assert_close(found.softmax(1), logits_of((rows, classes, weights), 0.03).softmax(1), atol=1e-5, rtol=0)


def test_a_result_does_not_depend_on_what_else_is_in_the_stack() -> None:
    decays = [1e-6, 1e-3, 0.03, 10.0]
    data = [draw((5, 8, 6), 4, seed) for seed in range(len(decays))]
    data[0] = (1e4 * data[0][0], *data[0][1:])  # takes the most rounds
    stacked = (torch.stack(part) for part in zip(*data, strict=True))
    heads = fit_logistic(*stacked, torch.tensor(decays), 3)
    for (rows, *rest), decay, weight, bias in zip(data, decays, *heads, strict=True):
        assert_close(rows @ weight + bias, logits_of((rows, *rest), decay), atol=1e-9, rtol=1e-9)


def test_a_fit_that_is_not_finite_leaves_the_others_alone() -> None:
    data = [draw((5, 8, 6), 4, seed) for seed in range(2)]
    data[0] = (torch.full_like(data[0][0], torch.inf), *data[0][1:])
    heads = fit_logistic(*(torch.stack(part) for part in zip(*data, strict=True)), torch.tensor([0.03, 0.03]), 3)
    assert_close(data[1][0] @ heads.weight[1] + heads.bias[1], logits_of(data[1], 0.03), atol=1e-9, rtol=0)


def test_separable_rows_without_a_penalty_end_in_finite_numbers() -> None:
    rows, classes, weights = draw((5, 8, 6), 30)
    found = logits_of((rows, classes, weights), 0.0)
    assert found.isfinite().all()
    assert (found.argmax(1) == classes).all()


def test_float32_rows_get_what_float64_rows_get() -> None:
    rows, classes, weights = draw((5, 8, 6), 4)
    narrow = fit_logistic(rows[None].float(), classes[None], weights[None].float(), torch.tensor([0.03]), 3)
    assert narrow.weight.dtype == narrow.bias.dtype == torch.float32
    found = rows @ narrow.weight[0].double() + narrow.bias[0]
    assert_close(found, logits_of((rows, classes, weights), 0.03), atol=1e-5, rtol=0)


def unit(rows: np.ndarray) -> float:
    """The documented unit of λ: the root mean square of a centred feature over the training rows."""
    return float(np.sqrt(np.square(rows - rows.mean(0)).mean()))


@pytest.mark.parametrize("target_weight", [0.5, 0.85, None])
@pytest.mark.parametrize("stretch", [1.0, 1e3])
def test_the_default_classifier_is_a_logistic_regression_of_both_domains(
    target_weight: float | None, stretch: float
) -> None:
    X, new = stretch * DATA.X, stretch * DATA.test
    weights = np.full(len(X), 1 / len(X))
    if target_weight is not None:
        weights = np.where(TARGET, target_weight / TARGET.sum(), (1 - target_weight) / SOURCE.sum())
    model = SoHoTClassifier(calibrate=False, target_weight=target_weight)
    found = model.fit(X, DATA.y, sample_domain=DATA.sample_domain).predict_proba(new)
    expected = of_scikit_learn(X / unit(X), DATA.y, weights, model.head_decay, new / unit(X))
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)


@pytest.mark.parametrize(("method", "own"), [("s", SOURCE), ("t", TARGET)])
def test_methods_of_one_domain_are_logistic_regressions_of_it(method: str, own: np.ndarray) -> None:
    model = SoHoTClassifier(method, calibrate=False).fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    X = DATA.X[own]
    weights = np.full(len(X), 1 / len(X))
    expected = of_scikit_learn(X / unit(X), DATA.y[own], weights, model.head_decay, DATA.test / unit(X))
    np.testing.assert_allclose(model.predict_proba(DATA.test), expected.numpy(), atol=1e-4)


def test_with_more_features_than_rows_it_is_the_same_regression() -> None:
    wide = np.random.default_rng(0).normal(size=(6, 200))
    X, new = DATA.X @ wide, DATA.test @ wide
    noise = np.random.default_rng(1).normal(size=(len(X) + len(new), 200))
    X, new = X + noise[: len(X)], new + noise[len(X) :]
    weights = np.where(TARGET, 0.5 / TARGET.sum(), 0.5 / SOURCE.sum())
    model = SoHoTClassifier(calibrate=False).fit(X, DATA.y, sample_domain=DATA.sample_domain)
    expected = of_scikit_learn(X / unit(X), DATA.y, weights, model.head_decay, new / unit(X))
    np.testing.assert_allclose(model.predict_proba(new), expected.numpy(), atol=1e-4)


def test_a_plain_method_ends_at_the_minimum_without_a_step() -> None:
    found = SoHoTClassifier(steps=1).fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    assert {len(values) for values in found.history_.values()} == {1}
    other = SoHoTClassifier(steps=300, lr=1.0).fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    np.testing.assert_array_equal(found.predict_proba(DATA.test), other.predict_proba(DATA.test))
