"""Scatter tensors built coefficient by coefficient (Eq. 1 of the paper).

They grow as d^r, so use them for few features, for order 2, and to check the Gram form.
"""

from functools import partial, reduce

import torch
from torch import Tensor

from .checks import check_features, check_finite, check_row_weights, check_some_weight
from .plain_checks import check_order
from .recomputed import look, recomputed
from .row_weights import positive

MOST_COEFFICIENTS = 2**31
"""Most coefficients of an explicit tensor (8 GiB in float32); more raise an error with advice."""

MOST_PRODUCTS = 2**25
"""Most products of coefficients that are kept at once (128 MiB in float32); more rows are summed part by part."""


def scatter_tensor(x: Tensor, order: int, *, weights: Tensor | None = None) -> Tensor:
    """Average the `order`-fold outer products of the rows of `x` minus their mean.

    Args:
        x: Feature rows, shape (n, d).
        order: Number of modes, at least 2. Order 2 gives the (population) covariance.
        weights: Weight of each row (n,), at least 0 and not all 0, a constant to autograd: both means become weighted
            ones. Default: equal.

    Returns:
        A super-symmetric tensor with `order` modes of size d, differentiable in `x`. Half-precision input is computed
        and returned in float32.

    Example:
        >>> scatter_tensor(torch.tensor([[0.0, 0.0], [2.0, 4.0]]), order=2)
        tensor([[1., 2.],
                [2., 4.]])
        >>> scatter_tensor(torch.tensor([[0.0], [0.0], [3.0]]), order=3)
        tensor([[[2.]]])
        >>> scatter_tensor(torch.tensor([[0.0], [3.0]]), order=3, weights=torch.tensor([2.0, 1.0]))  # 0 counts twice
        tensor([[[2.]]])
    """
    check_features(x, "x")
    check_order(order)
    if weights is not None:
        check_row_weights(weights, x, ("weights", "x"))
    if not torch.compiler.is_compiling():  # reading values would break the graph
        look(partial(check_finite, name="x"), x)
        if weights is not None:
            look(partial(check_some_weight, name="weights"), weights)
    rows, size = x.shape
    if size**order > MOST_COEFFICIENTS:
        raise ValueError(
            f"an order-{order} scatter tensor of {size} features holds {size**order:,} coefficients; "
            "use scatter_distance(..., method='gram'), which never builds it"
        )
    with torch.autocast(x.device.type, enabled=False):
        centred = x.to(torch.promote_types(x.dtype, torch.float32))
        own: tuple[Tensor, ...] = ()
        total_weight: Tensor | int = rows
        if weights is None:
            centred = centred - centred.mean(dim=0)
        else:
            w = weights.detach().to(centred.dtype)
            w = w / positive(w.amax())  # equal weights become 1
            total_weight, own = w.sum(), (w,)
            centred = centred - (centred * w.unsqueeze(1)).sum(dim=0) / total_weight
        at_once = max(MOST_PRODUCTS // size ** (order - 1), 1)
        if rows <= at_once or torch.compiler.is_compiling():
            (total,) = _sum_of_products(centred, *own, order=order)
        else:
            function = partial(_sum_of_products, order=order)
            parts = zip(*(torch.split(of_rows, at_once) for of_rows in (centred, *own)), strict=True)
            total = reduce(torch.add, (recomputed(function, part[:1], part[1:])[0] for part in parts))
        return (total / total_weight).reshape((size,) * order)


def _sum_of_products(rows: Tensor, *weights: Tensor, order: int) -> tuple[Tensor]:
    """Add up the (weighted) outer products of each row with itself: (d^(order − 1), d)."""
    products = rows if not weights else rows * weights[0].unsqueeze(1)  # (n, d^k), k = 1 … order − 1
    for _ in range(order - 2):
        products = (products.unsqueeze(2) * rows.unsqueeze(1)).flatten(1)
    return (products.T @ rows,)
