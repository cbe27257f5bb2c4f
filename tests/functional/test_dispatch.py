"""Calls of a kind that was seen before skip checks, and nothing else."""

from typing import Any

import pytest
import torch
from oracle import batch
from torch import Tensor

from sohot import ScatterAlignment
from sohot.functional import dispatch, scatter_alignment

COUNTS = [4, 3, 2], [2, 3, 4]


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    dispatch.forget_routes()


def data() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return batch(0, *COUNTS, dtype=torch.float32)


def test_a_known_kind_gives_the_same_bits() -> None:
    for options in ({}, {"estimator": "unbiased", "weights": torch.rand(2, 3)}, {"source_weights": torch.rand(9)}):
        first, second = (scatter_alignment(*data(), 3, **options) for _ in range(2))  # type: ignore[arg-type]
        assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))


def test_labels_changed_in_place_are_seen() -> None:
    source, source_labels, target, target_labels = data()
    align = ScatterAlignment(3)
    align(source, source_labels, target, target_labels)
    source_labels.copy_(source_labels.flip(0))
    changed = align(source, source_labels, target, target_labels)
    dispatch.forget_routes()
    torch.testing.assert_close(changed, align(source, source_labels, target, target_labels), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": torch.zeros(9, 4)}, "same number of features"),
        ({"source": torch.zeros(9, 3, dtype=torch.int64)}, "source must hold floating-point numbers"),
        ({"source": torch.zeros(9, 3).to_sparse()}, "source must be a dense tensor"),
        ({"source_labels": torch.zeros(9)}, "source_labels must hold integers"),
        ({"target_labels": torch.zeros(8, dtype=torch.int64)}, "one label per row of target"),
        ({"target_labels": [0] * 9}, "target_labels must be a torch.Tensor"),
        ({"num_classes": 2.0}, "num_classes must be an integer"),
        ({"num_classes": 2}, "source_labels must lie in 0 … 1"),
        ({"orders": (2.0,)}, "each of orders must be an integer"),
        ({"weights": (1.0, True)}, "each of weights must be a number"),
        ({"weights": torch.ones(2, 2)}, "weights must have the shape"),
        ({"scale": torch.ones(2)}, "scale must hold one floating-point number"),
        ({"target_weights": torch.ones(8)}, "one weight per row of target"),
        ({"full_rows": 0.5}, "full_rows must be a finite number of at least 1"),
        ({"estimator": "best"}, "estimator must be one of"),
    ],
    ids=str,
)
def test_wrong_input_is_found_after_right_input(change: dict[str, Any], message: str) -> None:
    names = "source", "source_labels", "target", "target_labels"
    right: dict[str, Any] = {**dict(zip(names, data(), strict=True)), "num_classes": 3, "weights": (1.0, 1.0)}
    scatter_alignment(**right)
    with pytest.raises((TypeError, ValueError), match=message):
        scatter_alignment(**{**right, **change})


def test_values_are_checked_in_each_call() -> None:
    source, source_labels, target, target_labels = data()
    align = ScatterAlignment(3)
    align(source, source_labels, target, target_labels)
    source[1, 1] = torch.nan
    with pytest.raises(ValueError, match="source holds NaN"):
        align(source, source_labels, target, target_labels)


def test_the_environment_counts_in_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    scatter_alignment(*data(), 3)
    monkeypatch.setenv("SOHOT_KERNEL", "tritn")
    with pytest.raises(ValueError, match=r"SOHOT_KERNEL must be one of .* did you mean 'triton'"):
        scatter_alignment(*data(), 3)


def test_only_so_many_kinds_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MOST_ROUTES", 2)
    source, source_labels, target, target_labels = data()
    for rows in range(2, 9):
        scatter_alignment(source[:rows], source_labels[:rows], target, target_labels, 3)
        assert len(dispatch._routes) <= 2


def test_a_parameter_and_a_subclass_of_tensors_are_features_too() -> None:
    class Tagged(Tensor):
        pass

    source, *others = data()
    expected = scatter_alignment(source, *others, 3).loss
    for features in (torch.nn.Parameter(source), source.as_subclass(Tagged)):  # type: ignore[arg-type]
        torch.testing.assert_close(torch.Tensor(scatter_alignment(features, *others, 3).loss), expected)


def test_a_scale_moves_only_after_it_was_used() -> None:
    """The gradient belongs to the scale before the call, although the module changes it in place."""
    source, source_labels, target, target_labels = data()
    source.requires_grad_()
    align = ScatterAlignment(3, feature_scale="unit")
    align(source.detach(), source_labels, target, target_labels)
    before = align.scale.clone()
    loss = align(2 * source, source_labels, target, target_labels)
    assert align.scale != before
    fixed = scatter_alignment(2 * source, source_labels, target, target_labels, 3, scale=before).loss
    torch.testing.assert_close(*(torch.autograd.grad(x, source)[0] for x in (loss, fixed)), rtol=0, atol=0)
