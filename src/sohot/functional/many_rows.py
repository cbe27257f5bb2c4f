"""Mean and scatter distances of one class with too many rows for a matrix of all their pairs, and their gradient.

The sums are those of `gram`, over a block of rows with all rows at a time. Covariances alone, with fewer features than
rows, are compared as they are: ‖Σᵢ aᵢ zᵢ zᵢᵀ‖² needs features² numbers.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .pairs import pair_weights, powers
from .scatter import explicit_is_cheaper

ROWS_AT_ONCE = 256
"""Rows of a block: of 20 000 rows, 40 MiB for each of a few matrices in float64."""

MOST_FEATURES = 2896
"""Most features of a covariance: 64 MiB in float64."""

Distances = tuple[Tensor, tuple[Tensor, ...]]
"""Distances (1 + orders,), the means first, and the gradients in the rows of both domains; none if not requested."""


def centred(source: Tensor, target: Tensor, unbiased: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return both domains minus their means, or for U-statistics minus the pooled mean; and δ of the means."""
    source_mean, target_mean = source.mean(0), target.mean(0)
    difference = source_mean - target_mean
    if unbiased:
        source_mean = target_mean = target_mean + difference * (len(source) / (len(source) + len(target)))
    return source - source_mean, target - target_mean, difference


def distances_of_rows(
    source: Tensor,
    target: Tensor,
    difference: Tensor,
    orders: Sequence[int],
    unbiased: bool,
    exact: torch.dtype,
    weights: Tensor | None,
) -> Distances:
    """Compute the distances between centred rows and, if there are weights, the gradient of their weighted sum."""
    n, m, size = len(source), len(target), source.shape[1]
    covariances = list(orders) == [2] and size <= MOST_FEATURES and explicit_is_cheaper(n, m, size, 2)
    by = _by_moments if covariances else _by_pairs
    distances, gradients = by(source, target, orders, unbiased, exact, weights)
    if not unbiased:
        distances[0] = difference.to(exact).square().sum()
    if weights is None:
        return distances, ()
    if unbiased:
        mean = torch.cat(gradients).mean(0)
        return distances, tuple(gradient - mean for gradient in gradients)
    of_means = 2 * weights[0].to(difference.dtype) * difference
    shifts = of_means / n, -of_means / m
    return distances, tuple(x - x.mean(0) + shift for x, shift in zip(gradients, shifts, strict=True))


def _by_pairs(
    source: Tensor, target: Tensor, orders: Sequence[int], unbiased: bool, exact: torch.dtype, weights: Tensor | None
) -> Distances:
    rows, n, m = torch.cat([source, target]), len(source), len(target)
    counts = torch.full((n + m,), n, dtype=exact, device=rows.device)
    counts[n:] = m
    signs = 1 / counts
    signs[n:].neg_()
    distances = torch.zeros(1 + len(orders), dtype=exact, device=rows.device)
    gradient = torch.zeros_like(rows)
    for first in range(0, n + m, ROWS_AT_ONCE):
        block = slice(first, first + ROWS_AT_ONCE)
        products = powers((rows[block] @ rows.T).to(exact), max(orders))
        pairs = pair_weights(signs, counts if unbiased else None, block)
        terms = list(enumerate([1, *orders] if unbiased else orders, start=0 if unbiased else 1))
        for k, order in terms:
            distances[k] += (pairs * products[order]).sum()
        if weights is not None:
            inner = sum(weights[k] * order * (products[order - 1] if order > 1 else 1) for k, order in terms)
            gradient[block] = (2 * pairs * inner).to(rows.dtype) @ rows
    return distances, (gradient[:n], gradient[n:])


def _by_moments(
    source: Tensor, target: Tensor, _: Sequence[int], unbiased: bool, exact: torch.dtype, weights: Tensor | None
) -> Distances:
    """Compare covariances, and for U-statistics means; pairs of a row with itself are subtracted from these."""
    distances = torch.zeros(2, dtype=exact, device=source.device)
    gradients = torch.zeros_like(source), torch.zeros_like(target)
    for order in (1, 2) if unbiased else (2,):
        moments = [_moment(x, order, exact) for x in (source, target)]
        distances[order - 1] += (moments[0] - moments[1]).square().sum()
        for x, gradient, own, other in zip((source, target), gradients, moments, reversed(moments), strict=True):
            n = len(x)
            apart = n / (n - 1) if unbiased and n > 1 else 1.0
            pull = (apart * own - other).to(x.dtype)
            slopes = x @ pull if order == 2 else pull.expand_as(x)
            if unbiased and n > 1:
                squares = x.to(exact).square().sum(1)
                distances[order - 1] += (apart - 1) * own.square().sum() - apart / n**2 * squares.pow(order).sum()
                slopes = slopes - apart / n * squares.pow(order - 1).to(x.dtype).unsqueeze(1) * x
            if weights is not None:
                gradient += 2 * order / n * weights[order - 1].to(x.dtype) * slopes
    return distances, gradients


def _moment(rows: Tensor, order: int, exact: torch.dtype) -> Tensor:
    """Average the rows, or for order 2 their products with themselves."""
    if order == 1:
        return rows.mean(0, dtype=exact)
    total = torch.zeros(rows.shape[1], rows.shape[1], dtype=exact, device=rows.device)
    for part in torch.split(rows, 16 * ROWS_AT_ONCE):
        total.addmm_(part.T.to(exact), part.to(exact))
    return total / len(rows)
