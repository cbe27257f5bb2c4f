"""Classes too large for a matrix of all pairs: the same numbers and derivatives as the Gram form, in less memory."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from largest_tensor import LargestTensor
from oracle import batch, batches
from torch import Tensor

from sohot import ScatterAlignment, scatter_distance
from sohot.functional import class_distances, gram, many_rows, scatter_alignment

Batch = tuple[Tensor, Tensor, Tensor, Tensor]
ESTIMATORS = ["plugin", "unbiased"]
ORDER_SETS = [(2,), (3,), (4, 2)]
SIZES = ([9, 1, 0, 12, 2], [5, 4, 3, 1, 2])  # missing, one-row and two-row classes among them


@pytest.fixture
def in_blocks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make every problem a large one, cut into blocks of a few rows."""

    def switch(rows: int = 4, most_features: int = 100) -> None:
        monkeypatch.setattr(gram, "MOST_PAIRS", 0)
        monkeypatch.setattr(many_rows, "ROWS_AT_ONCE", rows)
        monkeypatch.setattr(many_rows, "MOST_FEATURES", most_features)

    return switch


def value_and_gradients(data: Batch, **options: Any) -> tuple[Tensor, ...]:
    features = tuple(x.detach().clone().requires_grad_() for x in (data[0], data[2]))
    result = scatter_alignment(features[0], data[1], features[1], data[3], **options)
    return *result, *torch.autograd.grad(result.loss, features)


@pytest.mark.parametrize("most_features", [0, 100], ids=["blocks", "covariances"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("orders", ORDER_SETS)
@given(data=batches())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5)
def test_equals_the_gram_form(
    data: Batch, orders: tuple[int, ...], estimator: str, most_features: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"num_classes": 4, "orders": orders, "estimator": estimator}
    expected = value_and_gradients(data, **options)
    with monkeypatch.context() as patch:
        patch.setattr(gram, "MOST_PAIRS", 0)
        patch.setattr(many_rows, "ROWS_AT_ONCE", 2)
        patch.setattr(many_rows, "MOST_FEATURES", most_features)
        found = value_and_gradients(data, **options)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [0.0, 3.0])
def test_the_scale_is_that_of_the_gram_form(in_blocks: Callable[..., None], scale: float) -> None:
    data, options = batch(0, *SIZES), {"num_classes": 5, "orders": (2, 3), "scale": torch.tensor(scale)}
    expected = value_and_gradients(data, **options)
    in_blocks()
    torch.testing.assert_close(value_and_gradients(data, **options), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_equals_the_gram_form_to_rounding(in_blocks: Callable[..., None], dtype: torch.dtype) -> None:
    data = batch(0, [40, 30], [20, 35], size=16, dtype=dtype)
    options = {"num_classes": 2, "orders": (2, 3, 4)}
    expected = value_and_gradients(data, **options)
    in_blocks(rows=8)
    found = value_and_gradients(data, **options)
    assert [x.dtype for x in found] == [x.dtype for x in expected]
    torch.testing.assert_close(found, expected, rtol=1e-4 if dtype == torch.float32 else 2e-2, atol=1e-2)


def test_functions_of_the_distances_can_be_differentiated(in_blocks: Callable[..., None]) -> None:
    source, source_labels, target, target_labels = batch(0, [6, 5], [4, 3], size=2)
    source.requires_grad_()

    def slope() -> tuple[Tensor, ...]:
        distances = class_distances(source, source_labels, target, target_labels, 2, (2, 3))
        return torch.autograd.grad((distances[1] / distances[0]).sqrt().sum(), source)

    expected = slope()
    in_blocks(rows=2)
    torch.testing.assert_close(slope(), expected)


@pytest.mark.parametrize("options", [{"scope": "marginal"}, {"num_sources": 2, "orders": (2, 3)}], ids=str)
def test_the_module_takes_large_classes(in_blocks: Callable[..., None], options: dict[str, Any]) -> None:
    source, labels, target, target_labels = batch(0, [9, 8], [7, 6])
    domains = torch.arange(len(source)) % 2 if "num_sources" in options else None
    align = ScatterAlignment(2, feature_scale="initial", **options).double()
    expected = align(source, labels, target, target_labels, source_domains=domains)
    in_blocks()
    torch.testing.assert_close(align(source, labels, target, target_labels, source_domains=domains), expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("orders", [(2,), (2, 3, 4)])
def test_no_matrix_of_all_pairs_is_made(
    in_blocks: Callable[..., None], orders: tuple[int, ...], estimator: str
) -> None:
    in_blocks(rows=8)
    source, target = torch.randn(150, 16, requires_grad=True), torch.randn(90, 16, requires_grad=True)
    with LargestTensor() as seen:
        loss = ScatterAlignment(1, orders, scope="marginal", estimator=estimator)(source, None, target, None)
        loss.backward()
    assert seen.most <= source.numel() + target.numel()


def test_a_distance_of_two_large_sets() -> None:
    x, y = torch.randn(3000, 3).double().requires_grad_(), 2 * torch.randn(40, 3).double()
    for order in (2, 3):
        by_gram = scatter_distance(x, y, order, "gram")  # 3040² pairs are more than MOST_PAIRS
        explicit = scatter_distance(x, y, order, "explicit")
        torch.testing.assert_close(by_gram, explicit)
        torch.testing.assert_close(torch.autograd.grad(by_gram, x), torch.autograd.grad(explicit, x))
