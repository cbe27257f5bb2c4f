"""Mean and scatter distances of one class with too many rows for a matrix of all their pairs.

Let z hold the centred rows of both domains and a their weights, positive in the source, negative in the target, each
adding up to 1 in size. The distance of order r is Σᵢⱼ aᵢ aⱼ ⟨zᵢ, zⱼ⟩ʳ, as in `gram`. It is computed in one of two ways:

- tile by tile: pairs of up to `TILE` rows with up to `TILE` others. Every pair is visited once, and once more for each
  derivative, so that one tile at a time is in memory;
- for order 2 with fewer features than rows: as ‖Σᵢ aᵢ zᵢ zᵢᵀ‖², which needs features² numbers.

The unbiased estimator leaves out the pair of a row with itself and divides the sum over the pairs of one domain by
their total weight, 1 − Σ a². Weights are constants to autograd.
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import NamedTuple

import torch
from torch import Tensor

from .recomputed import recomputed
from .row_weights import RowWeights, positive

TILE = 512
"""Most rows of a tile: 2 MiB in float64, which a cache holds."""

MOST_FEATURES = 2896
"""Most features of a matrix of features²: 64 MiB in float64."""


class WeightedRows(NamedTuple):
    """The rows of one class in one domain."""

    rows: Tensor  # (n, d), centred
    weights: Tensor  # (n,) a: equal signs, adding up to 1 or −1

    def split(self) -> list["WeightedRows"]:
        """Divide the rows into parts of one tile's size."""
        parts = zip(torch.split(self.rows, TILE), torch.split(self.weights, TILE), strict=True)
        return [WeightedRows(*part) for part in parts]


class ClassDistances(NamedTuple):
    """The result for one class."""

    distances: Tensor  # (1 + orders,) the means first
    energy: Tensor  # (2,) without gradient: weighted sum of the squared distances of the rows from their centre, and
    # the sum of their weights


def class_distances(
    source: Tensor,
    target: Tensor,
    orders: Sequence[int],
    unbiased: bool,
    exact: torch.dtype,
    weights: Sequence[RowWeights] = (),
) -> ClassDistances:
    """Compute the distances between two sets of rows, (n, d) and (m, d); sums are in the type `exact`.

    `weights` of rows, all above 0, are those for the distances and those for the energy; none for equal weights.
    """
    own, of_energy = weights or ((None, None), (None, None))
    n, m = len(source), len(target)
    if unbiased:  # a centre that treats all rows alike, see `gram`
        source_mean, target_mean = source.mean(0), target.mean(0)
        source_mean = target_mean = target_mean + (source_mean - target_mean) * (n / (n + m))
    else:
        source_mean, target_mean = _mean(source, own[0]), _mean(target, own[1])
    domains = (
        WeightedRows(source - source_mean, _shares(source, own[0], exact)),
        WeightedRows(target - target_mean, -_shares(target, own[1], exact)),
    )
    energy = sum(_energy(domain.rows.detach(), w, exact) for domain, w in zip(domains, of_energy, strict=True))
    if unbiased:  # the means are order 1 of the same sum
        return ClassDistances(signed_sums(domains, (1, *orders), without_own=True), torch.as_tensor(energy))
    means = (source_mean - target_mean).to(exact).square().sum().unsqueeze(0)
    return ClassDistances(torch.cat([means, signed_sums(domains, orders)]), torch.as_tensor(energy))


def _mean(rows: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return rows.mean(0)
    return (rows * weights.to(rows.dtype).unsqueeze(1)).sum(0) / weights.sum().to(rows.dtype)


def _shares(rows: Tensor, weights: Tensor | None, exact: torch.dtype) -> Tensor:
    if weights is None:
        return torch.full((len(rows),), 1 / len(rows), dtype=exact, device=rows.device)
    return weights / weights.sum()


def _energy(rows: Tensor, weights: Tensor | None, exact: torch.dtype) -> Tensor:
    """Sum squares and weights: (2,)."""
    squares = rows.square()
    if weights is None:
        return torch.stack([squares.sum(dtype=exact), torch.full_like(squares[0, 0], len(rows), dtype=exact)])
    return torch.stack([(squares * weights.to(rows.dtype).unsqueeze(1)).sum(dtype=exact), weights.sum()])


def signed_sums(domains: Sequence[WeightedRows], orders: Sequence[int], without_own: bool = False) -> Tensor:
    """Sum aᵢ aⱼ ⟨zᵢ, zⱼ⟩ʳ over all pairs of rows, for each order r: (orders,).

    Args:
        domains: The rows.
        orders: The orders, 1 or more.
        without_own: Leave out the pair of a row with itself, as U-statistics do. A lone row keeps its one pair.
    """
    size = domains[0].rows.shape[1]
    few_features = max(orders) == 2 and size < sum(len(rows) for rows, _ in domains) and size <= MOST_FEATURES
    return _by_moments(domains, orders, without_own) if few_features else _by_tiles(domains, orders, without_own)


def _factor(domain: WeightedRows) -> Tensor | float:
    """Return 1 / (total weight of the pairs of different rows); 1 for a lone row."""
    return 1.0 if len(domain.rows) == 1 else 1 / positive(1 - domain.weights.square().sum())


def _by_tiles(domains: Sequence[WeightedRows], orders: Sequence[int], without_own: bool) -> Tensor:
    parts = [(domain, part) for domain in domains for part in domain.split()]
    total = torch.zeros(len(orders), dtype=domains[0].weights.dtype, device=domains[0].rows.device)
    for place, (domain, x) in enumerate(parts):
        for other, y in parts[place:]:
            factor = _factor(domain) if without_own and domain is other else 1.0
            without_diagonal = without_own and x is y and len(domain.rows) > 1
            sums = partial(_tile_sums, orders=tuple(orders), without_diagonal=without_diagonal)
            (found,) = recomputed(sums, (x.rows, y.rows), (x.weights, y.weights))
            total = total + factor * (1 if x is y else 2) * found
    return total


def _tile_sums(
    x: Tensor, y: Tensor, a: Tensor, b: Tensor, *, orders: tuple[int, ...], without_diagonal: bool
) -> tuple[Tensor]:
    products = (x @ y.T).to(a.dtype)
    if without_diagonal:
        products = products.masked_fill(torch.eye(len(x), dtype=torch.bool, device=x.device), 0)
    sums, power = {}, products
    for order in range(1, max(orders) + 1):
        power = power if order == 1 else power * products
        if order in orders:
            sums[order] = a @ (power @ b)
    return (torch.stack([sums[order] for order in orders]),)


def _by_moments(domains: Sequence[WeightedRows], orders: Sequence[int], without_own: bool) -> Tensor:
    sums = []
    for order in orders:
        moments = [_moment(domain, order) for domain in domains]
        total = torch.stack(moments).sum(0).square().sum()
        if without_own:  # of the pairs of one domain, put those of different rows in place of all
            for domain, moment in zip(domains, moments, strict=True):
                if len(domain.rows) > 1:
                    squares, own = moment.square().sum(), _own_pairs(domain, order)
                    total = total - squares + _factor(domain) * (squares - own)
        sums.append(total)
    return torch.stack(sums)


def _moment(domain: WeightedRows, order: int) -> Tensor:
    """Sum aᵢ zᵢ, or for order 2 aᵢ zᵢ zᵢᵀ."""
    function = partial(_moment_of_part, order=order)
    return reduce(torch.add, (recomputed(function, (x.rows,), (x.weights,))[0] for x in domain.split()))


def _moment_of_part(rows: Tensor, weights: Tensor, *, order: int) -> tuple[Tensor]:
    rows = rows.to(weights.dtype)
    return (weights @ rows if order == 1 else (rows * weights.unsqueeze(1)).T @ rows,)


def _own_pairs(domain: WeightedRows, order: int) -> Tensor:
    function = partial(_own_pairs_of_part, order=order)
    return reduce(torch.add, (recomputed(function, (x.rows,), (x.weights,))[0] for x in domain.split()))


def _own_pairs_of_part(rows: Tensor, weights: Tensor, *, order: int) -> tuple[Tensor]:
    squares = rows.to(weights.dtype).square().sum(1)
    return ((weights.square() * squares.pow(order)).sum(),)
