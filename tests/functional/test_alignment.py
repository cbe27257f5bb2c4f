"""The alignment loss against the slow oracle, its gradient and its laws."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracle import alignment, batch, batches, seeds
from torch import Tensor

from sohot.functional import class_distances, scatter_alignment

Batch = tuple[Tensor, Tensor, Tensor, Tensor]
ORDER_SETS = [(2,), (3,), (4,), (2, 3), (4, 2), (2, 3, 4), (5,)]


def leaves(data: Batch) -> tuple[Tensor, Tensor]:
    return data[0].requires_grad_(), data[2].requires_grad_()


@pytest.mark.parametrize("orders", ORDER_SETS)
@given(data=batches())
def test_equals_the_oracle(data: Batch, orders: tuple[int, ...]) -> None:
    result = scatter_alignment(*data, num_classes=4, orders=orders)
    torch.testing.assert_close(result.loss, alignment(*data, orders=orders), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("orders", ORDER_SETS)
@given(data=batches())
def test_gradient_equals_autograd_on_the_oracle(data: Batch, orders: tuple[int, ...]) -> None:
    features = leaves(data)
    ours = torch.autograd.grad(scatter_alignment(*data, num_classes=4, orders=orders).loss, features)
    theirs = torch.autograd.grad(alignment(*data, orders=orders), features)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("estimator", ["plugin", "unbiased"])
@pytest.mark.parametrize("orders", [(3,), (4, 2), (2, 3, 4), (5,)])
def test_gradcheck(orders: tuple[int, ...], estimator: str) -> None:
    data = batch(0, [3, 0, 1, 2], [4, 1, 2, 2], size=2)  # missing, one-sample and two-sample classes among them
    weights = torch.rand(1 + len(orders), 4, dtype=torch.float64, requires_grad=True)

    def loss(source: Tensor, target: Tensor, weights: Tensor) -> Tensor:
        return scatter_alignment(source, data[1], target, data[3], 4, orders, weights=weights, estimator=estimator).loss

    features = tuple(x.mul_(0.5).requires_grad_() for x in (data[0], data[2]))
    assert torch.autograd.gradcheck(loss, (*features, weights))


def test_padded_and_bucketed_classes_have_the_right_gradient() -> None:
    data = batch(1, [40, 2, 3, 1, 2], [2, 35, 3, 2, 0], size=2)
    features = leaves(data)
    ours = torch.autograd.grad(scatter_alignment(*data, num_classes=5, orders=(2, 3)).loss, features)
    theirs = torch.autograd.grad(alignment(*data, orders=(2, 3)), features)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


@given(data=batches())
def test_terms_add_up_and_distances_are_those_of_the_classes(data: Batch) -> None:
    result = scatter_alignment(*data, num_classes=4, orders=(2, 4))
    torch.testing.assert_close(result.terms.sum(), result.loss)
    plain = class_distances(*data, num_classes=4, orders=(2, 4))
    entered = result.distances != 0
    torch.testing.assert_close(result.distances[entered], plain[entered])


@given(data=batches(), seed=seeds)
def test_is_unchanged_by_shuffled_rows_and_renamed_classes(data: Batch, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    expected = scatter_alignment(*data, num_classes=4, orders=(2, 3)).loss
    names = torch.randperm(7, generator=generator)[:4]
    rows, other_rows = (torch.randperm(len(labels), generator=generator) for labels in (data[1], data[3]))
    shuffled = data[0][rows], names[data[1][rows]], data[2][other_rows], names[data[3][other_rows]]
    torch.testing.assert_close(scatter_alignment(*shuffled, num_classes=7, orders=(2, 3)).loss, expected)


@pytest.mark.parametrize("estimator", ["plugin", "unbiased"])
@given(data=batches(), seed=seeds)
def test_is_symmetric_and_unchanged_by_a_motion_of_the_space(data: Batch, estimator: str, seed: int) -> None:
    source, source_labels, target, target_labels = data
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(source.shape[1], source.shape[1], generator=generator).double()).Q
    shift = 10 * torch.randn(source.shape[1], generator=generator).double()
    options = {"num_classes": 4, "orders": (2, 3), "estimator": estimator}
    here = scatter_alignment(*data, **options).loss
    swapped = scatter_alignment(target, target_labels, source, source_labels, **options).loss
    moved = scatter_alignment(
        source @ rotation + shift, source_labels, target @ rotation + shift, target_labels, **options
    ).loss
    torch.testing.assert_close(swapped, here, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(moved, here, rtol=1e-8, atol=1e-8)


@given(data=batches(fewest=1))
def test_identical_domains_give_zero(data: Batch) -> None:
    source, labels, _, _ = data
    order = torch.randperm(len(labels))
    loss = scatter_alignment(source, labels, source[order], labels[order], 4, (2, 3, 4)).loss
    assert loss.abs() < 1e-18 * (1 + source.norm() ** 8)


@given(data=batches(), scale=st.floats(0.1, 10))
def test_a_scale_divides_the_features(data: Batch, scale: float) -> None:
    features = leaves(data)
    given_scale = torch.tensor(scale, dtype=torch.float64)
    by_scale = scatter_alignment(*data, num_classes=4, orders=(2, 3), scale=given_scale).loss
    divided = scatter_alignment(data[0] / scale, data[1], data[2] / scale, data[3], 4, (2, 3)).loss
    torch.testing.assert_close(by_scale, divided)
    torch.testing.assert_close(torch.autograd.grad(by_scale, features), torch.autograd.grad(divided, features))


def test_scale_zero_uses_the_spread_of_the_batch() -> None:
    data = batch(3, [5, 4], [3, 3])
    spread = scatter_alignment(*data, num_classes=2).spread
    squares = torch.cat(
        [(x[y == c] - x[y == c].mean(0)).square().sum(1) for x, y in (data[:2], data[2:]) for c in range(2)]
    )
    torch.testing.assert_close(spread, squares.mean().sqrt())
    torch.testing.assert_close(
        scatter_alignment(*data, num_classes=2, scale=torch.zeros(())).loss,
        scatter_alignment(*data, num_classes=2, scale=spread).loss,
    )


def test_functions_of_the_distances_can_be_differentiated() -> None:
    source, source_labels, target, target_labels = batch(0, [4, 3, 0], [3, 2, 2], size=2)

    def relative(source: Tensor, target: Tensor) -> Tensor:
        distances = class_distances(source, source_labels, target, target_labels, 3, (2,))
        return (distances[1, :2] / distances[0, :2]).sqrt().sum()

    assert torch.autograd.gradcheck(relative, (source.requires_grad_(), target.requires_grad_()))


def test_a_second_derivative_is_refused() -> None:
    data = batch(0, [4, 3], [3, 2])
    source, _ = leaves(data)
    for value in (scatter_alignment(*data, num_classes=2).loss, class_distances(*data, num_classes=2).sum()):
        with pytest.raises(RuntimeError, match="can be differentiated once"):
            torch.autograd.grad(value, source, create_graph=True)


def test_backward_can_run_twice() -> None:
    data = batch(0, [4, 3], [3, 2])
    source, _ = leaves(data)
    loss = scatter_alignment(*data, num_classes=2).loss
    first, second = (torch.autograd.grad(loss, source, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_one_number_per_term_is_the_same_as_a_tensor() -> None:
    data = batch(0, [4, 3], [3, 3])
    numbers = scatter_alignment(*data, num_classes=2, orders=(2, 3), weights=(0.5, 2.0, 1.0)).loss
    tensor = torch.tensor([[0.5], [2.0], [1.0]], dtype=torch.float64)
    assert numbers == scatter_alignment(*data, num_classes=2, orders=(2, 3), weights=tensor).loss


@pytest.mark.parametrize("weights", [(1.0,), torch.ones(2), torch.ones(1, 2), torch.ones(2, 3), torch.ones(3, 2)])
def test_weights_of_another_shape_are_refused(weights: Tensor | tuple[float, ...]) -> None:
    data = batch(0, [4, 3], [3, 3])
    with pytest.raises(ValueError, match=r"weights must (hold 2 numbers|have the shape \(2, 2\) or)"):
        scatter_alignment(*data, num_classes=2, orders=(2,), weights=weights)


ROWS, LABELS = torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"num_classes": 0}, ValueError, "num_classes must be an integer of at least 1, got 0"),
        ({"num_classes": "two"}, ValueError, "num_classes must be an integer of at least 1, got 'two'"),
        ({"most_rows": 0}, ValueError, "most_rows must be an integer of at least 1, got 0"),
        ({"scale": 2.0}, TypeError, r"scale must be a tensor of one number such as torch.tensor\(2.0\), got 2.0"),
        ({"scale": torch.ones(2)}, ValueError, r"scale must hold one floating-point number, got the shape \(2,\)"),
        ({"scale": torch.tensor(1j)}, ValueError, "scale must hold one floating-point number, .* torch.complex64"),
        ({"scale": torch.tensor(-1.0)}, ValueError, "scale must be a finite number of at least 0 .*, got -1.0"),
        ({"scale": torch.tensor(torch.nan)}, ValueError, "scale must be a finite number of at least 0 .*, got nan"),
        ({"weights": 1.0}, TypeError, "weights must be a tensor or 2 numbers, the means first, got 1.0"),
        ({"weights": ("a", "b")}, TypeError, "each of weights must be a number, got 'a'"),
        ({"weights": (1.0, torch.inf)}, ValueError, "each of weights must be a finite number, got inf"),
        ({"weights": torch.ones(2, 2).bool()}, TypeError, "weights must hold real numbers, got torch.bool"),
        ({"weights": torch.full((2, 2), torch.nan)}, ValueError, "weights must hold finite numbers"),
    ],
    ids=str,
)
def test_nonsense_gets_one_sentence(options: dict[str, object], error: type[Exception], sentence: str) -> None:
    usual = {"source": ROWS, "source_labels": LABELS, "target": ROWS, "target_labels": LABELS, "num_classes": 2}
    with pytest.raises(error, match=sentence):
        scatter_alignment(**{**usual, **options})


def test_distances_of_nonsense_get_one_sentence() -> None:
    with pytest.raises(ValueError, match="num_classes must be an integer of at least 1, got 0"):
        class_distances(ROWS, LABELS, ROWS, LABELS, 0)
    with pytest.raises(ValueError, match="target holds NaN"):
        class_distances(ROWS, LABELS, ROWS / 0, LABELS, 2)


def test_orders_may_come_in_any_sequence() -> None:
    data = batch(0, [4, 3], [3, 3])
    forwards = scatter_alignment(*data, num_classes=2, orders=(2, 3, 4))
    backwards = scatter_alignment(*data, num_classes=2, orders=(4, 3, 2))
    torch.testing.assert_close(forwards.terms[[0, 3, 2, 1]], backwards.terms)
