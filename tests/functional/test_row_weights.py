"""Rows with weights: the laws that weighted class statistics obey, on every path."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from oracle import batch, tensor_of
from torch import Tensor
from torch.func import grad, vmap

from sohot.functional import class_distances, gram, scatter_alignment, scatter_distance, scatter_tensor, tiles
from sohot.functional.row_weights import class_rows

Batch = tuple[Tensor, Tensor, Tensor, Tensor]
SIZES = [6, 3, 0, 9, 1], [4, 5, 3, 3, 2]  # a missing and a one-row class among them
ESTIMATORS = ["plugin", "unbiased"]
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def use_tiles(monkeypatch: pytest.MonkeyPatch, most_features: int) -> None:
    """Compute class by class, as for large classes."""
    monkeypatch.setattr(gram, "MOST_PAIRS", 0)
    monkeypatch.setattr(tiles, "TILE", 4)
    monkeypatch.setattr(tiles, "MOST_FEATURES", most_features)


def weights_for(data: Batch, seed: int = 1) -> dict[str, Tensor]:
    """Random weights between 0.1 and 1."""
    generator = torch.Generator().manual_seed(seed)
    source, target = (0.1 + 0.9 * torch.rand(len(x), generator=generator).double() for x in (data[0], data[2]))
    return {"source_weights": source, "target_weights": target}


def everything(data: Batch, orders: tuple[int, ...] = (2, 3), **options: Any) -> tuple[Tensor, ...]:
    """The result, with the scale of the batch so that it enters too, and the gradients."""
    features = tuple(x.detach().clone().requires_grad_() for x in (data[0], data[2]))
    options = {"num_classes": 5, "scale": torch.zeros(()), **options}
    result = scatter_alignment(features[0], data[1], features[1], data[3], orders=orders, **options)
    return *result, *torch.autograd.grad(result.loss, features)


@each_estimator
@pytest.mark.parametrize("orders", [(2,), (2, 3)])
def test_weight_0_leaves_a_row_out(orders: tuple[int, ...], estimator: str) -> None:
    data = batch(0, *SIZES)
    weights = weights_for(data)
    weights["source_weights"][::3] = 0
    weights["target_weights"][data[3] == 1] = 0  # a class that the target no longer has
    found = everything(data, orders, estimator=estimator, **weights)
    kept = weights["source_weights"] > 0, weights["target_weights"] > 0
    rest = data[0][kept[0]], data[1][kept[0]], data[2][kept[1]], data[3][kept[1]]
    left = {name: w[own] for (name, w), own in zip(weights.items(), kept, strict=True)}
    expected = everything(rest, orders, estimator=estimator, **left)
    for ours, theirs in zip(found[:4], expected[:4], strict=True):
        assert torch.equal(ours, theirs)
    for slope, rest_slope, own in zip(found[4:], expected[4:], kept, strict=True):
        assert torch.equal(slope[own], rest_slope)
        assert not slope[~own].any()


def test_whole_numbers_repeat_rows() -> None:
    data = batch(0, [6, 3, 0, 9, 4], [4, 5, 3, 3, 3])  # as many as a scatter of order 3 needs without copies too
    times = [torch.randint(1, 4, (len(x),)) for x in (data[0], data[2])]
    again = [x.repeat_interleave(times[k // 2], 0) for k, x in enumerate(data)]
    repeated = everything((again[0], again[1], again[2], again[3]))
    found = everything(data, source_weights=times[0], target_weights=times[1])
    torch.testing.assert_close(found[:4], repeated[:4])
    for slope, of_copies, own in zip(found[4:], repeated[4:], times, strict=True):
        summed = torch.zeros_like(slope).index_add(0, torch.arange(len(own)).repeat_interleave(own), of_copies)
        torch.testing.assert_close(slope, summed)


@each_estimator
def test_a_common_factor_changes_nothing(estimator: str) -> None:
    data = batch(0, *SIZES)
    weights = weights_for(data)
    expected = everything(data, estimator=estimator, **weights)
    for factor in (7.3, 1e-200):
        scaled = {name: factor * w for name, w in weights.items()}
        torch.testing.assert_close(everything(data, estimator=estimator, **scaled), expected)
    per_class = {name: w * (1 + labels) for (name, w), labels in zip(weights.items(), data[1::2], strict=True)}
    distances = scatter_alignment(*data, 5, (2, 3), estimator=estimator, **per_class).distances
    torch.testing.assert_close(distances, scatter_alignment(*data, 5, (2, 3), estimator=estimator, **weights).distances)


@each_estimator
@pytest.mark.parametrize("tiled", [False, True])
def test_equal_weights_are_none_bit_for_bit(estimator: str, tiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tiled:
        use_tiles(monkeypatch, most_features=0)
    dtype = torch.float32  # whose sums show the order of its steps best
    source, source_labels, target, target_labels = batch(0, *SIZES, size=7)
    data = source.to(dtype), source_labels, target.to(dtype), target_labels
    expected = everything(data, estimator=estimator)
    weights = torch.full((len(source),), 0.3), torch.full((len(target),), 0.3)
    found = everything(data, estimator=estimator, source_weights=weights[0], target_weights=weights[1])
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))
    one_domain = everything(data, estimator=estimator, scale=None, target_weights=weights[1])
    without = everything(data, estimator=estimator, scale=None)
    assert all(torch.equal(one_domain[k], without[k]) for k in (0, 1, 2, 4, 5))


@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_gram_form_equals_explicit_weighted_tensors(order: int) -> None:
    x, y = torch.randn(7, 3).double(), torch.randn(5, 3).double() + 1
    a, b = torch.rand(7).double(), torch.rand(5).double()
    expected = (tensor_of(x, order, a) - tensor_of(y, order, b)).square().sum()
    for method in ("gram", "explicit"):
        found = scatter_distance(x, y, order, method, source_weights=a, target_weights=b)
        torch.testing.assert_close(found, expected)
    torch.testing.assert_close(scatter_tensor(x, order, weights=a), tensor_of(x, order, a))
    one_class = torch.zeros(7, dtype=torch.long), torch.zeros(5, dtype=torch.long)
    found = class_distances(x, one_class[0], y, one_class[1], 1, (order,), source_weights=a, target_weights=b)
    means = (a @ x / a.sum() - b @ y / b.sum()).square().sum()
    torch.testing.assert_close(found[:, 0], torch.stack([means, expected]))


@each_estimator
@pytest.mark.parametrize(("orders", "most_features"), [((2, 3), 0), ((2,), 100)], ids=["tiles", "covariances"])
def test_large_classes_equal_the_gram_form(
    orders: tuple[int, ...], most_features: int, estimator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = batch(0, [5, 6, 2], [3, 6, 3])
    weights = weights_for(data)
    weights["source_weights"][::4] = 0
    data[0].requires_grad_()

    def derivatives() -> tuple[Tensor, ...]:
        result = scatter_alignment(*data, 3, orders, estimator=estimator, **weights)
        (slope,) = torch.autograd.grad(result.loss, data[0], create_graph=True)
        return *result, slope, *torch.autograd.grad(slope.square().sum(), data[0])

    expected = everything(data, orders, estimator=estimator, **weights), derivatives()
    use_tiles(monkeypatch, most_features)
    torch.testing.assert_close((everything(data, orders, estimator=estimator, **weights), derivatives()), expected)


@each_estimator
def test_first_and_second_derivatives(estimator: str) -> None:
    data = batch(0, [3, 0, 1, 4], [4, 2, 3, 2], size=2)
    weights, per_term = weights_for(data), torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    weights["source_weights"][0] = 0

    def loss(source: Tensor, target: Tensor, per_term: Tensor) -> Tensor:
        options: dict[str, Any] = {"estimator": estimator, "weights": per_term, **weights}
        return scatter_alignment(source, data[1], target, data[3], 4, (2, 3), **options).loss

    inputs = data[0].mul_(0.5).requires_grad_(), data[2].mul_(0.5).requires_grad_(), per_term
    assert torch.autograd.gradcheck(loss, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(loss, inputs, fast_mode=True)


def test_weights_have_no_gradient() -> None:
    data = batch(0, *SIZES)
    weights = {name: w.requires_grad_() for name, w in weights_for(data).items()}
    assert not scatter_alignment(*data, 5, **weights).loss.requires_grad


@pytest.mark.parametrize("term", [0, 1, 2], ids=["means", "order2", "order3"])
def test_the_unbiased_estimate_is_zero_on_average(term: int) -> None:
    draws, generator = 3000, torch.Generator().manual_seed(0)
    classes, rows = torch.arange(draws), (6, 3)
    source, target = (torch.rand(draws * n, 3, generator=generator).double().log() for n in rows)  # skewed
    labels = [classes.repeat_interleave(n) for n in rows]
    weights = [torch.tensor(w).repeat(draws) for w in ([1.0, 1.0, 1.0, 0.5, 0.2, 0.1], [1.0, 0.6, 0.2])]
    z_scores = {}
    for estimator in ESTIMATORS:
        options: dict[str, Any] = {"source_weights": weights[0], "target_weights": weights[1], "estimator": estimator}
        values = scatter_alignment(source, labels[0], target, labels[1], draws, (2, 3), **options).distances[term]
        z_scores[estimator] = float(values.mean() / (values.std() / draws**0.5))
    assert abs(z_scores["unbiased"]) < 3.5
    assert z_scores["plugin"] > 5


def test_the_unbiased_estimate_weighs_pairs_of_different_rows() -> None:
    x, y = torch.tensor([[1.0], [2.0], [4.0]]).double(), torch.tensor([[0.0], [3.0]]).double()
    a, b, centre = torch.tensor([1.0, 2.0, 3.0]).double(), torch.tensor([2.0, 1.0]).double(), 2.0
    labels = torch.zeros(3, dtype=torch.long), torch.zeros(2, dtype=torch.long)
    options: dict[str, Any] = {"estimator": "unbiased", "source_weights": a, "target_weights": b}
    found = scatter_alignment(x, labels[0], y, labels[1], 1, (2,), **options).distances[:, 0]
    for order in (1, 2):
        parts = []
        for left, w, right, v in ((x, a, x, a), (y, b, y, b), (x, a, y, b)):
            powers = ((left - centre) @ (right - centre).T).pow(order)
            pairs = w.outer(v) * (1 - torch.eye(len(w)) if left is right else 1)
            parts.append((pairs * powers).sum() / pairs.sum())
        torch.testing.assert_close(found[order - 1], parts[0] + parts[1] - 2 * parts[2])


def test_effective_rows() -> None:
    rows = class_rows(torch.tensor([0, 0, 0, 1, 1]), 3, torch.tensor([2.0, 2.0, 0.0, 1.0, 3.0]))
    assert rows.counts.tolist() == [2, 2, 0]
    torch.testing.assert_close(rows.effective, torch.tensor([2.0, 1.6, 0.0]))


@pytest.mark.parametrize("weighted", [False, True])
def test_classes_with_few_effective_rows_count_less(weighted: bool) -> None:
    data = batch(0, [8, 8, 8, 0], [8, 4, 2, 5])
    target = torch.ones(len(data[2]))
    effective = torch.tensor([8.0, 4.0, 2.0, 0.0])
    if weighted:
        target[(data[3] == 0).nonzero()[:4]] = 0.5
        effective[0] = 36 / 5
    weights = {"target_weights": target} if weighted else {}
    base = scatter_alignment(*data, 4, (2,), **weights)
    assert base.loss == scatter_alignment(*data, 4, (2,), full_rows=1, scatter_rows=1.0, **weights).loss
    found = scatter_alignment(*data, 4, (2,), full_rows=8, scatter_rows=4, **weights)
    factor = (effective / 8).clamp(max=1)
    expected = base.distances * factor * torch.stack([torch.ones(4), effective >= 4])
    torch.testing.assert_close(found.terms, expected.sum(1) / 3)  # three classes are in both domains
    torch.testing.assert_close(found.loss, found.terms.sum())
    assert (found.distances[1] > 0).tolist() == [True, True, False, False]


def test_vmap_and_grad_equal_a_loop() -> None:
    batches = [batch(0, [4, 3], [2, 3]), batch(1, [2, 5], [3, 2])]
    data = [torch.stack(parts) for parts in zip(*batches, strict=True)]
    weights = [torch.rand(2, 7).double(), torch.rand(2, 5).double()]

    def loss(source: Tensor, *rest: Tensor) -> Tensor:
        options: dict[str, Any] = {"source_weights": rest[3], "target_weights": rest[4], "full_rows": 4}
        return scatter_alignment(source, *rest[:3], 2, (2, 3), **options).loss

    for function in (loss, grad(loss)):
        looped = torch.stack([function(*(part[k] for part in (*data, *weights))) for k in range(2)])
        torch.testing.assert_close(vmap(function)(*data, *weights), looped)


ROWS, LABELS = torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"source_weights": [1.0] * 4}, TypeError, "source_weights must be a torch.Tensor, got list"),
        (
            {"source_weights": torch.ones(3)},
            ValueError,
            r"source_weights must hold one weight per row of source: .* got",
        ),
        ({"target_weights": torch.ones(4, 1)}, ValueError, r"expected the shape \(4,\), got \(4, 1\)"),
        ({"target_weights": LABELS - 1}, ValueError, "target_weights must .* of at least 0, got -1.0 in row 0"),
        ({"source_weights": ROWS[0].new_tensor([1, 1, torch.nan, 1])}, ValueError, "got nan in row 2"),
        ({"source_weights": torch.full((4,), torch.inf)}, ValueError, "source_weights must hold finite numbers"),
        ({"source_weights": torch.ones(4) + 1j}, TypeError, "source_weights must hold real numbers, got"),
        ({"full_rows": 0}, ValueError, "full_rows must be a finite number of at least 1, got 0"),
        ({"scatter_rows": "six"}, TypeError, "scatter_rows must be a number, got 'six'"),
    ],
    ids=str,
)
def test_nonsense_gets_one_sentence(options: dict[str, Any], error: type[Exception], sentence: str) -> None:
    calls: list[Callable[..., Any]] = [scatter_alignment]
    if not any("rows" in name for name in options):
        calls.append(class_distances)
    for call in calls:
        with pytest.raises(error, match=sentence):
            call(ROWS, LABELS, ROWS, LABELS, 2, **options)


def test_a_distance_needs_a_row() -> None:
    for method in ("gram", "explicit"):
        with pytest.raises(ValueError, match="source_weights must hold a number above 0"):
            scatter_distance(ROWS, ROWS, 2, method, source_weights=torch.zeros(4))
        with pytest.raises(
            ValueError, match=r"target_weights must hold one weight per row of y: .* \(4,\), got \(3,\)"
        ):
            scatter_distance(ROWS, ROWS, 2, method, target_weights=torch.ones(3))
