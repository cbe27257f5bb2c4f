"""torch.func on the loss: first and second derivatives equal autograd, vmap equals a loop."""

from typing import Any

import pytest
import torch
from oracle import batch
from torch import Tensor
from torch.func import grad, jacrev, vmap

from sohot import scatter_distance
from sohot.functional import gram, scatter_alignment, tiles

OPTIONS: list[dict[str, Any]] = [
    {"orders": (2,)},
    {"orders": (2, 3), "estimator": "unbiased", "scale": torch.tensor(2.0)},
]
each_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


@pytest.fixture(params=["small", "tiled"])
def _both_sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "tiled":
        monkeypatch.setattr(gram, "MOST_PAIRS", 0)
        monkeypatch.setattr(tiles, "TILE", 4)


def problems(count: int = 3) -> tuple[Tensor, ...]:
    """Batches of one shape whose classes have different sizes."""
    counts = [([4, 3, 0], [2, 2, 2]), ([2, 2, 3], [3, 1, 2]), ([1, 3, 3], [0, 4, 2])]
    batches = [batch(number, *counts[number]) for number in range(count)]
    return tuple(torch.stack(parts) for parts in zip(*batches, strict=True))


@pytest.mark.usefixtures("_both_sizes")
@each_option
def test_first_and_second_derivatives_equal_autograd(options: dict[str, Any]) -> None:
    source, source_labels, target, target_labels = batch(0, [5], [3], size=2)

    def loss(source: Tensor) -> Tensor:
        return scatter_alignment(source, source_labels, target, target_labels, 1, **options).loss

    leaf = source.clone().requires_grad_()
    torch.testing.assert_close(grad(loss)(source), *torch.autograd.grad(loss(leaf), leaf))
    torch.testing.assert_close(jacrev(grad(loss))(source), torch.autograd.functional.hessian(loss, source))


@pytest.mark.usefixtures("_both_sizes")
@each_option
def test_vmap_equals_a_loop(options: dict[str, Any]) -> None:
    data = problems()

    def loss(*one: Tensor) -> Tensor:
        return scatter_alignment(*one, 3, **options).loss

    for function in (loss, grad(loss), grad(loss, argnums=2)):
        looped = torch.stack([function(*(part[k] for part in data)) for k in range(3)])
        torch.testing.assert_close(vmap(function)(*data), looped)


def test_gradients_of_each_problem_in_the_class_weights() -> None:
    data, weights = problems(), torch.rand(3, 2, 3, dtype=torch.float64)

    def loss(weights: Tensor, *one: Tensor) -> Tensor:
        return scatter_alignment(*one, 3, weights=weights).loss

    looped = torch.stack([grad(loss)(weights[k], *(part[k] for part in data)) for k in range(3)])
    torch.testing.assert_close(vmap(grad(loss))(weights, *data), looped)


@pytest.mark.parametrize("method", ["gram", "explicit"])
def test_the_distance_of_two_sets(method: str) -> None:
    x, y = torch.randn(4, 5, 3).double(), torch.randn(4, 6, 3).double()

    def slope(x: Tensor, y: Tensor) -> Tensor:
        return grad(lambda x: scatter_distance(x, y, 3, method))(x)

    leaf = x.clone().requires_grad_()
    expected = torch.autograd.grad(sum(scatter_distance(a, b, 3, method) for a, b in zip(leaf, y, strict=True)), leaf)
    torch.testing.assert_close(vmap(slope)(x, y), *expected)
