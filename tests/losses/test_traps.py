"""Situations in which a naive implementation collapses, explodes or returns NaN."""

import pytest
import torch
from oracle import batch
from torch import Tensor

from sohot import ScatterAlignment, scatter_distance


def parts_of(source_counts: list[int], target_counts: list[int], **options: object) -> dict[str, Tensor]:
    data = batch(0, source_counts, target_counts)
    return ScatterAlignment(len(source_counts), **{"orders": (2, 3, 4), **options})(*data, return_parts=True)[1]


def test_one_target_row_keeps_the_mean_term_only() -> None:
    parts = parts_of([20], [1])
    assert parts["means"] > 0
    assert parts["order2"] == parts["order3"] == parts["order4"] == 0


def test_one_target_row_does_not_collapse_the_source() -> None:
    """Aligned with the empty scatter of one row the spread falls to a few thousandths in 500 steps."""
    source, source_labels, target, target_labels = batch(0, [20], [1], dtype=torch.float32)
    source.requires_grad_()
    spread = source.detach().var(0).sum()
    optimizer = torch.optim.SGD([source], lr=0.05)
    align = ScatterAlignment(1)
    for _ in range(500):
        optimizer.zero_grad()
        align(source, source_labels, target, target_labels).backward()
        optimizer.step()
    torch.testing.assert_close(source.detach().var(0).sum(), spread)


def test_two_target_rows_leave_odd_orders_out() -> None:
    parts = parts_of([20], [2])
    assert parts["order3"] == 0
    assert parts["order2"] > 0
    assert parts["order4"] > 0


def test_two_rows_have_no_odd_scatter_at_all() -> None:
    assert scatter_distance(torch.randn(2, 3).double(), torch.randn(2, 3).double(), 3) < 1e-20


def test_three_rows_take_part_in_every_order() -> None:
    assert all(part > 0 for name, part in parts_of([20], [3]).items() if name != "weight_penalty")


def test_the_unbiased_estimator_needs_two_rows_for_any_order() -> None:
    parts = parts_of([20], [2], estimator="unbiased")
    assert parts["order3"] != 0
    parts = parts_of([20], [1], estimator="unbiased")
    assert parts["order2"] == parts["order3"] == parts["order4"] == 0
    assert parts["means"] != 0


@pytest.mark.parametrize("estimator", ["plugin", "unbiased"])
def test_one_row_in_both_domains_is_finite(estimator: str) -> None:
    source, source_labels, target, target_labels = batch(0, [1, 1], [1, 1])
    source.requires_grad_()
    loss = ScatterAlignment(2, (2, 3), estimator=estimator)(source, source_labels, target, target_labels)
    loss.backward()
    expected = (source[source_labels.argsort()] - target[target_labels.argsort()]).square().sum(1).mean()
    torch.testing.assert_close(loss, expected)
    assert torch.isfinite(source.grad).all()


def test_the_mean_is_over_the_classes_that_are_in_both_domains() -> None:
    data = batch(0, [4, 4, 0, 3], [3, 0, 3, 3])
    everything = ScatterAlignment(4)(*data)
    keep_source, keep_target = (torch.isin(labels, torch.tensor([0, 3])) for labels in (data[1], data[3]))
    only_shared = data[0][keep_source], data[1][keep_source], data[2][keep_target], data[3][keep_target]
    torch.testing.assert_close(everything, ScatterAlignment(4)(*only_shared))
    torch.testing.assert_close(everything, ScatterAlignment(1000)(*data))


@pytest.mark.parametrize("class_weights", [None, "learned", "closed-form"])
@pytest.mark.parametrize("feature_scale", ["none", "initial", "unit"])
def test_no_shared_class_gives_zero_with_a_gradient(class_weights: str | None, feature_scale: str) -> None:
    source, source_labels, target, target_labels = batch(0, [4, 0], [0, 4])
    source.requires_grad_()
    align = ScatterAlignment(2, class_weights=class_weights, feature_scale=feature_scale)
    loss = align(source, source_labels, target, target_labels)
    assert loss == 0
    loss.backward()
    assert torch.equal(source.grad, torch.zeros_like(source))


def test_orders_on_raw_features_differ_by_many_powers_and_scaling_evens_them_out() -> None:
    data = batch(0, [20] * 4, [20] * 4, size=64, dtype=torch.float32)
    large = 5 * data[0], data[1], 5 * data[2], data[3]  # energy about 1600
    raw = ScatterAlignment(4, (2, 3, 4))(*large, return_parts=True)[1]
    scaled = ScatterAlignment(4, (2, 3, 4), feature_scale="initial")(*large, return_parts=True)[1]
    assert raw["order4"] / raw["order2"] > 1e5
    assert scaled["order4"] / scaled["order2"] < 2


def test_identical_rows_have_no_spread_and_no_nan() -> None:
    rows = torch.ones(4, 3, requires_grad=True)
    labels = torch.zeros(4, dtype=torch.long)
    for feature_scale in ("none", "initial", "unit"):
        loss = ScatterAlignment(1, (2, 3), feature_scale=feature_scale)(rows, labels, torch.ones(4, 3), labels)
        loss.backward()
        assert loss == 0
        assert torch.equal(rows.grad, torch.zeros_like(rows))


def test_zero_rows_at_the_edge_of_relu_are_harmless() -> None:
    source, source_labels, target, target_labels = batch(0, [5, 5], [3, 3], dtype=torch.float32)
    source = source.relu().requires_grad_()
    loss = ScatterAlignment(2, (2, 3, 4))(source, source_labels, torch.zeros_like(target), target_labels)
    loss.backward()
    assert torch.isfinite(source.grad).all()
