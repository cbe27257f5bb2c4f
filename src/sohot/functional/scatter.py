"""Scatter tensors built coefficient by coefficient (Eq. 1 of the paper).

They grow as d^r, so use them for few features, for order 2, and to check the Gram form.
"""

from functools import reduce

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .checks import check_features, check_finite
from .plain_checks import check_order

MOST_COEFFICIENTS = 2**31
"""Most coefficients of an explicit tensor (8 GiB in float32); more raise an error with advice."""

MOST_PRODUCTS = 2**25
"""Most products of coefficients that are kept at once (128 MiB in float32); more rows are summed part by part."""


def scatter_tensor(x: Tensor, order: int) -> Tensor:
    """Average the `order`-fold outer products of the rows of `x` minus their mean.

    Args:
        x: Feature rows, shape (n, d).
        order: Number of modes, at least 2. Order 2 gives the (population) covariance.

    Returns:
        A super-symmetric tensor with `order` modes of size d, differentiable in `x`. Half-precision input is computed
        and returned in float32.

    Example:
        >>> scatter_tensor(torch.tensor([[0.0, 0.0], [2.0, 4.0]]), order=2)
        tensor([[1., 2.],
                [2., 4.]])
        >>> scatter_tensor(torch.tensor([[0.0], [0.0], [3.0]]), order=3)
        tensor([[[2.]]])
    """
    check_features(x, "x")
    check_order(order)
    if not torch.compiler.is_compiling():  # reading values would break the graph
        check_finite(x, "x")
    rows, size = x.shape
    if size**order > MOST_COEFFICIENTS:
        raise ValueError(
            f"an order-{order} scatter tensor of {size} features holds {size**order:,} coefficients; "
            "use scatter_distance(..., method='gram'), which never builds it"
        )
    with torch.autocast(x.device.type, enabled=False):
        centred = x.to(torch.promote_types(x.dtype, torch.float32))
        centred = centred - centred.mean(dim=0)
        at_once = max(MOST_PRODUCTS // size ** (order - 1), 1)
        if rows <= at_once or torch.compiler.is_compiling():
            total = _sum_of_products(centred, order)
        else:  # computed again for the gradient, part by part
            parts = torch.split(centred, at_once)
            total = reduce(torch.add, (checkpoint(_sum_of_products, x, order, use_reentrant=False) for x in parts))
        return (total / rows).reshape((size,) * order)


def _sum_of_products(rows: Tensor, order: int) -> Tensor:
    """Add up the outer products of each row with itself: (d^(order − 1), d)."""
    products = rows  # (n, d^k), k = 1 … order − 1
    for _ in range(order - 2):
        products = (products.unsqueeze(2) * rows.unsqueeze(1)).flatten(1)
    return products.T @ rows


def explicit_is_cheaper(num_source: int, num_target: int, num_features: int, order: int) -> bool:
    """Compare the real work of the two ways: all d^r coefficients of a tensor against all (N + N*)² of a Gram matrix.

    At order 2 the matrix products decide. Above it the explicit way must first form the products of each row with
    itself, which is limited by memory speed: its work counts four times there. The Gram form also has many small steps,
    worth about five million multiplications (`make bench` shows both ways side by side).
    """
    check_order(order)
    rows = num_source + num_target
    explicit: int = (rows + 1) * num_features**order * (1 if order == 2 else 4)
    gram: int = rows * rows * (num_features + 2 * order) + 5_000_000
    return explicit < gram
