"""The distance between two scatter tensors, computed the cheaper way."""

from math import comb

import torch
from torch import Tensor

from .autograd import weighted_distances
from .checks import check_finite, check_pair
from .plain_checks import check_choice, check_count, check_order
from .scatter import explicit_is_cheaper, scatter_tensor


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


METHODS = ("gram", "explicit", "auto")


def scatter_distance(
    x: Tensor,
    y: Tensor,
    order: int,
    method: str = "gram",
) -> Tensor:
    """Squared Frobenius distance between the scatter tensors of two sets of rows.

    Args:
        x: Rows of one set, shape (n, d).
        y: Rows of the other set, shape (m, d); n and m may differ.
        order: Order of the scatter tensors, at least 2.
        method: "gram" never builds a tensor and costs about (n + m)²·d whatever the order; "explicit" builds both
            tensors and costs about (n + m)·d^order, less for small d and many rows; "auto" takes the cheaper.

    Returns:
        A scalar, differentiable in both arguments.

    Example:
        >>> x, y = torch.tensor([[0.0, 0.0], [2.0, 0.0]]), torch.tensor([[5.0, 5.0], [5.0, 9.0]])
        >>> scatter_distance(x, y, order=2)  # covariances diag(1, 0) and diag(0, 4)
        tensor(17.)
        >>> scatter_distance(x, y, order=2, method="explicit")
        tensor(17.)
    """
    check_pair(x, y, ("x", "y"))
    check_order(order)
    check_choice(method, METHODS, "method")
    if method == "auto":
        method = "explicit" if explicit_is_cheaper(x.shape[0], y.shape[0], x.shape[1], order) else "gram"
    if not torch.compiler.is_compiling():  # reading values would break the graph
        check_finite(x, "x")
        check_finite(y, "y")
    if method == "explicit":
        return (scatter_tensor(x, order) - scatter_tensor(y, order)).square().sum()
    dtype = torch.promote_types(torch.promote_types(x.dtype, y.dtype), torch.float32)
    scatter_only = torch.arange(2, dtype=dtype, device=x.device).unsqueeze(1)  # weight 0 for the means, 1 for the order
    one_class = torch.zeros(x.shape[0] + y.shape[0], dtype=torch.int64, device=x.device)
    of_x, of_y = one_class[: x.shape[0]], one_class[x.shape[0] :]
    data = x, of_x, y, of_y
    return weighted_distances(*data, scatter_only, (order,), check_values=False)[0]
