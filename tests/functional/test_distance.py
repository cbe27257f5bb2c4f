"""Laws of the scatter distance, for both ways of computing it."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import seeds, tensor_of
from torch import Tensor

from sohot import scatter_distance

ORDERS = (2, 3, 4)
WAYS = ("gram", "explicit", "auto")


@st.composite
def row_pairs(draw: st.DrawFn, fewest: int = 1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(draw(seeds))
    n, m, d = draw(st.integers(fewest, 8)), draw(st.integers(fewest, 8)), draw(st.integers(1, 5))
    x, y = (torch.randn(rows, d, generator=generator, dtype=torch.float64) for rows in (n, m))
    return x * draw(st.sampled_from([0.1, 1.0, 10.0])), y + 3 * torch.randn(d, generator=generator, dtype=torch.float64)


def close(a: Tensor, b: Tensor, scale: Tensor, tolerance: float = 1e-10) -> bool:
    """Equal to a relative tolerance, measured on the sizes that were subtracted."""
    return bool((a - b).abs() <= tolerance * scale.abs() + 1e-14)


def sizes(x: Tensor, y: Tensor, order: int) -> Tensor:
    """What the kernel form adds and subtracts; two rows cancel to nothing in odd orders."""
    return sum((rows - rows.mean(0)).norm(dim=1).max() ** (2 * order) for rows in (x, y))


@pytest.mark.parametrize("order", [*ORDERS, 5, 6])
@given(pair=row_pairs())
def test_gram_equals_explicit(pair: tuple[Tensor, Tensor], order: int) -> None:
    x, y = pair
    explicit = (tensor_of(x, order) - tensor_of(y, order)).square().sum()
    for way in WAYS:
        assert close(scatter_distance(x, y, order, method=way), explicit, sizes(x, y, order))


@pytest.mark.parametrize("order", ORDERS)
@given(pair=row_pairs())
def test_identical_sets_have_distance_zero(pair: tuple[Tensor, Tensor], order: int) -> None:
    x, _ = pair
    shuffled = x[torch.randperm(len(x))]
    for way in WAYS:
        assert close(scatter_distance(x, shuffled, order, way), torch.tensor(0.0), sizes(x, x, order), 1e-14)


@pytest.mark.parametrize("order", ORDERS)
@given(pair=row_pairs())
def test_is_symmetric(pair: tuple[Tensor, Tensor], order: int) -> None:
    x, y = pair
    for way in WAYS:
        assert close(scatter_distance(x, y, order, way), scatter_distance(y, x, order, way), sizes(x, y, order))


@pytest.mark.parametrize("order", ORDERS)
@given(pair=row_pairs(), seed=seeds)
def test_is_unchanged_by_permutation_translation_and_rotation(
    pair: tuple[Tensor, Tensor], seed: int, order: int
) -> None:
    x, y = pair
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(x.shape[1], x.shape[1], generator=generator, dtype=x.dtype)).Q
    shift = 10 * torch.randn(x.shape[1], generator=generator, dtype=x.dtype)
    moved_x = (x @ rotation + shift)[torch.randperm(len(x), generator=generator)]
    moved_y = (y @ rotation + shift)[torch.randperm(len(y), generator=generator)]
    for way in WAYS:
        before, after = scatter_distance(x, y, order, way), scatter_distance(moved_x, moved_y, order, way)
        assert close(before, after, sizes(x, y, order))


@pytest.mark.parametrize("order", ORDERS)
@given(pair=row_pairs(), factor=st.floats(0.1, 10))
def test_scales_with_twice_the_order(pair: tuple[Tensor, Tensor], factor: float, order: int) -> None:
    x, y = pair
    for way in WAYS:
        scaled = scatter_distance(factor * x, factor * y, order, way)
        expected = factor ** (2 * order) * scatter_distance(x, y, order, way)
        assert close(scaled, expected, sizes(factor * x, factor * y, order))


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@given(pair=row_pairs(fewest=3))
def test_only_odd_orders_see_a_reflection(pair: tuple[Tensor, Tensor], order: int) -> None:
    x, _ = pair
    size = tensor_of(x, order).square().sum()
    assume(size > 1e-12)
    expected = torch.zeros(()) if order % 2 == 0 else 4 * size  # ‖X − (−X)‖² = 4 ‖X‖²
    for way in WAYS:
        assert close(scatter_distance(x, -x, order, way), expected, sizes(x, x, order))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", [*ORDERS, 7])
def test_gradients_of_every_order(order: int, way: str) -> None:
    x, y = torch.randn(4, 2, dtype=torch.float64) / 2 + 3, torch.randn(3, 2, dtype=torch.float64) / 2
    x.requires_grad_(), y.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: scatter_distance(a, b, order, way), (x, y))


def test_one_row_is_compared_as_it_stands() -> None:
    x, y = torch.randn(5, 3, dtype=torch.float64), torch.randn(1, 3, dtype=torch.float64)
    torch.testing.assert_close(scatter_distance(x, y, 2), torch.cov(x.T, correction=0).square().sum())


def test_auto_never_builds_a_huge_tensor() -> None:
    assert scatter_distance(torch.randn(5, 4096), torch.randn(3, 4096), 3, "auto") > 0


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ((torch.zeros(3), torch.zeros(2, 2), 2), ValueError, r"x must have the shape \(rows, features\), got \(3,\)"),
        ((torch.zeros(3, 2), torch.zeros(3, 4), 2), ValueError, "same number of features, got 2 and 4"),
        ((torch.zeros(3, 2), torch.zeros(0, 2), 2), ValueError, r"y is empty: its shape is \(0, 2\)"),
        ((torch.zeros(3, 2), torch.zeros(3, 2).long(), 2), TypeError, "y must hold floating-point numbers"),
        (([[1.0]], torch.zeros(3, 2), 2), TypeError, "x must be a torch.Tensor, got list"),
        ((torch.zeros(3, 2), torch.zeros(3, 2), 1), ValueError, "order must be at least 2"),
        ((torch.zeros(3, 2), torch.zeros(3, 2), 2.0), TypeError, "order must be an integer"),
        ((torch.zeros(3, 2), torch.zeros(3, 2), 2, "fast"), ValueError, "method must be one of 'gram', 'explicit'"),
        ((torch.full((3, 2), torch.nan), torch.zeros(3, 2), 2), ValueError, "x holds NaN .* 3 of its 3 rows"),
        ((torch.zeros(3, 2), torch.full((3, 2), torch.inf), 2, "explicit"), ValueError, "y holds NaN or infinite"),
    ],
)
def test_bad_input_gets_one_sentence(arguments: tuple, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        scatter_distance(*arguments)
