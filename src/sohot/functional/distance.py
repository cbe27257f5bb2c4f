"""The distance between two scatter tensors, computed the cheaper way."""

from functools import partial
from math import comb

import torch
from torch import Tensor

from .autograd import weighted_distances
from .checks import check_finite, check_pair, check_some_weight
from .plain_checks import check_choice, check_count, check_order
from .recomputed import look
from .row_weights import row_weights
from .scatter import scatter_tensor


def unique_coefficients(num_features: int, order: int) -> int:
    """Count the different coefficients of a super-symmetric tensor with `order` modes of size `num_features`.

    >>> unique_coefficients(4096, 2)
    8390656
    >>> unique_coefficients(4096, 3)
    11461636096
    """
    return comb(check_count(num_features, "num_features") + check_count(order, "order") - 1, order)


def explicit_cost(num_source: int, num_target: int, num_features: int, order: int) -> int:
    """Multiplications of the explicit distance by the paper's formula, (N + N* + 1)·D, D the unique coefficients."""
    check_count(num_source, "num_source", 0)
    check_count(num_target, "num_target", 0)
    return (num_source + num_target + 1) * unique_coefficients(num_features, order)


def gram_cost(num_source: int, num_target: int, num_features: int) -> int:
    """Multiplications of the kernel form by the paper's formula, (N² + N·N* + N*²)·d, whatever the order.

    >>> round(explicit_cost(20, 3, 4096, 2) / gram_cost(20, 3, 4096), 1)  # the text says 52
    104.8
    >>> round(explicit_cost(20, 3, 4096, 3) / gram_cost(20, 3, 4096))  # the text says 143 000
    143194
    """
    check_count(num_source, "num_source", 0)
    check_count(num_target, "num_target", 0)
    check_count(num_features, "num_features")
    return (num_source**2 + num_source * num_target + num_target**2) * num_features


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


METHODS = ("gram", "explicit", "auto")


def scatter_distance(
    x: Tensor,
    y: Tensor,
    order: int,
    method: str = "gram",
    *,
    source_weights: Tensor | None = None,
    target_weights: Tensor | None = None,
) -> Tensor:
    """Squared Frobenius distance between the scatter tensors of two sets of rows.

    Args:
        x: Rows of one set, shape (n, d).
        y: Rows of the other set, shape (m, d); n and m may differ.
        order: Order of the scatter tensors, at least 2.
        method: "gram" never builds a tensor and costs about (n + m)²·d whatever the order; "explicit" builds both
            tensors and costs about (n + m)·d^order, less for small d and many rows; "auto" takes the cheaper.
        source_weights: Weight of each row of x (n,), at least 0 and not all 0, a constant to autograd. Default: equal.
        target_weights: The same for the rows of y (m,).

    Returns:
        A scalar, differentiable in both arguments.

    Example:
        >>> x, y = torch.tensor([[0.0, 0.0], [2.0, 0.0]]), torch.tensor([[5.0, 5.0], [5.0, 9.0]])
        >>> scatter_distance(x, y, order=2)  # covariances diag(1, 0) and diag(0, 4)
        tensor(17.)
        >>> scatter_distance(x, y, order=2, method="explicit")
        tensor(17.)
        >>> scatter_distance(x, y, order=2, target_weights=torch.tensor([3.0, 1.0]))  # now diag(0, 3)
        tensor(10.)
    """
    check_pair(x, y, ("x", "y"))
    check_order(order)
    check_choice(method, METHODS, "method")
    given = row_weights(x, y, source_weights, target_weights, ("x", "y"))
    if method == "auto":
        method = "explicit" if explicit_is_cheaper(x.shape[0], y.shape[0], x.shape[1], order) else "gram"
    if not torch.compiler.is_compiling():  # reading values would break the graph
        look(partial(check_finite, name="x"), x)
        look(partial(check_finite, name="y"), y)
        for weights, name in ((source_weights, "source_weights"), (target_weights, "target_weights")):
            if weights is not None:
                look(partial(check_some_weight, name=name), weights)
    if method == "explicit":
        tensors = scatter_tensor(x, order, weights=source_weights), scatter_tensor(y, order, weights=target_weights)
        return (tensors[0] - tensors[1]).square().sum()
    dtype = torch.promote_types(torch.promote_types(x.dtype, y.dtype), torch.float32)
    scatter_only = torch.arange(2, dtype=dtype, device=x.device).unsqueeze(1)  # weight 0 for the means, 1 for the order
    one_class = torch.zeros(x.shape[0] + y.shape[0], dtype=torch.int64, device=x.device)
    of_x, of_y = one_class[: x.shape[0]], one_class[x.shape[0] :]
    data = x, of_x, y, of_y
    return weighted_distances(*data, scatter_only, (order,), row_weights=given, check_values=False)[0]
