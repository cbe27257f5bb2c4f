"""Prepare features for training, once per problem: centre, project onto principal axes, divide by one constant."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..methods.settings import HeadSettings
from .problem import ChosenRows, FeatureProblem

_ROUNDS = 4  # of subspace iteration; after two or three the missed energy is negligible
_EXTRA = 16  # additional directions, so that the last axes are accurate too
_NEGLIGIBLE = 1e-10  # share of the largest variance: an axis below it is rounding noise


class Preparation(NamedTuple):
    """An affine map of raw features: (x − mean) @ axes, or (x − mean)·axes if `axes` is one number."""

    mean: Tensor  # (d,)
    axes: Tensor  # (d, k), or () without principal axes

    def __call__(self, rows: Tensor) -> Tensor:
        """Prepare rows (n, d)."""
        centred = rows - self.mean
        return centred @ self.axes if self.axes.dim() else centred * self.axes

    @property
    def size(self) -> int:
        """Number of output coordinates."""
        return self.axes.shape[1] if self.axes.dim() else self.mean.shape[0]


def prepare(
    rows: list[Tensor], components: int | None, pools: Sequence[Tensor | None] | None = None
) -> list[Preparation]:
    """Find the preparation of each of several sets of rows (n, d) of one feature size, on one device.

    Args:
        rows: The training rows of each problem.
        components: Number of principal axes, None for none.
        pools: Unlabelled rows of each problem (u, d). They have a say in the axes, not in the mean and the unit: λ
            means the same with a pool and without.

    Returns:
        One preparation each, in float64.
    """
    size = rows[0].shape[1]
    stacked = torch.zeros(len(rows), max(map(len, rows)), size, dtype=torch.float64, device=rows[0].device)
    means = torch.stack([of_one.double().mean(0) for of_one in rows])
    for own, of_one, mean in zip(stacked, rows, means, strict=True):
        own[: len(of_one)] = of_one.double() - mean  # empty rows stay zero and have no weight
    counts = torch.tensor([len(of_one) for of_one in rows], device=stacked.device)
    kept = size if components is None else min(components, size)
    if kept == size:
        scales = _root_mean_square(stacked, counts)
        return [Preparation(mean, scale.reciprocal()) for mean, scale in zip(means, scales, strict=True)]
    if pools is None or all(pool is None for pool in pools):
        axes = principal_axes(stacked, kept)
    else:
        axes = torch.cat([_common_axes(*one, kept) for one in zip(stacked, means, pools, strict=True)])
    scales = _root_mean_square(stacked, counts)  # of all features: λ means the same whatever the number of axes
    return [Preparation(*one) for one in zip(means, axes / scales.view(-1, 1, 1), strict=True)]


def _common_axes(centred: Tensor, mean: Tensor, pool: Tensor | None, count: int) -> Tensor:
    """Principal axes of one problem's rows and its pool: (1, d, count)."""
    together = centred if pool is None else torch.cat([centred, pool.double() - mean])
    return principal_axes(together.unsqueeze(0), count)


def _root_mean_square(stacked: Tensor, counts: Tensor) -> Tensor:
    """Root mean square of a coordinate; 1 if all rows are equal."""
    scale = (stacked.square().sum((1, 2)) / (counts * stacked.shape[2])).sqrt()
    return torch.where(scale > 0, scale, 1.0)


def principal_axes(centred: Tensor, count: int) -> Tensor:
    """Find the first principal axes of each of several centred data sets.

    Args:
        centred: Shape (problems, rows, d).
        count: Number of axes, at most d.

    Returns:
        Shape (problems, d, count), orthonormal columns by descending variance, the largest entry of each positive.
        Columns beyond the rank of the data are zero.

    Example:
        >>> x = torch.tensor([[[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]], dtype=torch.float64)
        >>> principal_axes(x, 1).flatten().round(decimals=6).abs()
        tensor([1., 0.], dtype=torch.float64)
    """
    _, rows, size = centred.shape
    width = min(count + _EXTRA, rows, size)
    if width == rows:  # all that the rows span: their inner products tell it exactly, and faster
        variances, turned = torch.linalg.eigh(centred @ centred.transpose(1, 2))
        axes = centred.transpose(1, 2) @ (turned / variances.clamp(min=1e-300).sqrt().unsqueeze(1))
    else:
        basis = _leading_span(centred, width)
        inside = centred @ basis
        variances, turned = torch.linalg.eigh(inside.transpose(1, 2) @ inside)
        axes = basis @ turned
    variances, axes = variances.flip(1)[:, :count], axes.flip(2)[:, :, :count]
    signs = axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign()
    axes = torch.where((variances > _NEGLIGIBLE * variances[:, :1]).unsqueeze(1), axes * signs, 0)
    return torch.nn.functional.pad(axes, (0, count - axes.shape[2]))


def _leading_span(centred: Tensor, width: int) -> Tensor:
    """Orthonormal columns that span nearly the first principal axes, by subspace iteration: (problems, d, width)."""
    if width == centred.shape[2]:  # the whole space, which needs no search
        return torch.eye(width, dtype=centred.dtype, device=centred.device).expand(len(centred), -1, -1)
    start = torch.randn(centred.shape[2], width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    transposed = centred.transpose(1, 2)
    found = transposed @ (centred @ start.to(centred))
    for _ in range(_ROUNDS):
        found = transposed @ (centred @ _orthonormal(found))
    return _orthonormal(_orthonormal(found))


def _orthonormal(columns: Tensor) -> Tensor:
    """Orthonormal columns that span the same space, by a Cholesky factor; directions of zero length become tiny."""
    gram = columns.transpose(1, 2) @ columns
    diagonal = gram.diagonal(dim1=1, dim2=2)
    diagonal += 1e-14 * diagonal.sum(1, keepdim=True) + 1e-300
    factor, _ = torch.linalg.cholesky_ex(gram)
    transposed: Tensor = torch.linalg.solve_triangular(factor, columns.transpose(1, 2), upper=False)
    return transposed.transpose(1, 2)


class PreparedRows(NamedTuple):
    """Rows of one fit, prepared and on the training device; without source rows if one domain trains alone."""

    source: Tensor | None
    target: Tensor
    labels: tuple[Tensor, Tensor]  # of the source rows (empty if none) and of the target rows
    preparations: dict[str, Preparation]  # the map from raw features, by domain
    pool: Tensor | None = None  # unlabelled target rows


_AT_ONCE = 64
"""Most problems prepared together on a GPU: raw float64 features are larger than the training tensors."""

_Key = tuple[int, bool, bool, bool, int]


class Preparer:
    """Prepares problems on a device and caches the results.

    Args:
        device: Where the fits will train.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._ready: dict[_Key, PreparedRows] = {}
        self._features: dict[int, Tensor] = {}  # of shared tensors, on the device

    def __call__(
        self, problems: Sequence[FeatureProblem], settings: Sequence[HeadSettings], size: int
    ) -> list[PreparedRows]:
        """Prepare problems whose features become `size` coordinates."""
        keys: list[_Key] = []
        missing: dict[_Key, tuple[FeatureProblem, HeadSettings]] = {}
        for problem, of_fit in zip(problems, settings, strict=True):
            method = of_fit.resolved_method()
            uses_pool = problem.pool_seen_by(of_fit) is not None
            key = id(problem), method.uses_source, method.uses_target, uses_pool, size
            keys.append(key)
            if key not in self._ready:
                missing[key] = problem, of_fit
        # One by one on a CPU: a result must not depend, even in its last digit, on what else is prepared with it.
        at_once = 1 if self.device.type == "cpu" else _AT_ONCE
        items = list(missing.items())
        for start in range(0, len(items), at_once):
            part = dict(items[start : start + at_once])
            self._ready |= zip(part, self._prepare(list(part.values()), size), strict=True)
        return [self._ready[key] for key in keys]

    def _prepare(self, problems: list[tuple[FeatureProblem, HeadSettings]], size: int) -> list[PreparedRows]:
        seen = [problem.seen_by(settings.resolved_method()) for problem, settings in problems]
        found = (problem.pool_seen_by(settings) for problem, settings in problems)
        pools = [None if pool is None else pool.to(self.device) for pool in found]
        sources = [None if source is None else self._take(source) for source, _ in seen]
        targets = [self._take(target) for _, target in seen]
        apart = sources[0] is not None and sources[0].shape[1] != targets[0].shape[1]
        pairs = list(zip(sources, targets, strict=True))
        if apart:  # nothing relates the columns of the two domains: each has its own axes
            for_source = prepare([source for source in sources if source is not None], size)
            for_target = prepare(targets, size, pools)
        else:
            both = [target if source is None else torch.cat([source, target]) for source, target in pairs]
            for_source = for_target = prepare(both, size, pools)
        labels = [
            (target.labels.new_empty(0) if source is None else source.labels, target.labels) for source, target in seen
        ]
        wholes = [problem for problem, _ in problems]
        return [_prepared(*one) for one in zip(wholes, pairs, labels, for_source, for_target, pools, strict=True)]

    def _take(self, rows: ChosenRows) -> Tensor:
        if rows.chosen is None:
            return rows.features.to(self.device)
        if id(rows.features) not in self._features:
            self._features[id(rows.features)] = rows.features.to(self.device)
        return rows.of(self._features[id(rows.features)])


def _prepared(
    problem: FeatureProblem,
    rows: tuple[Tensor | None, Tensor],
    labels: tuple[Tensor, Tensor],
    for_source: Preparation,
    for_target: Preparation,
    pool: Tensor | None,
) -> PreparedRows:
    source, target = rows
    kept = {"target": Preparation(*(x.to(problem.dtype) for x in for_target))}
    if for_source is not for_target:
        kept["source"] = Preparation(*(x.to(problem.dtype) for x in for_source))
    elif problem.source.shape[1] == problem.target.shape[1]:
        kept["source"] = kept["target"]
    return PreparedRows(
        None if source is None else for_source(source.double()).to(problem.dtype),
        for_target(target.double()).to(problem.dtype),
        labels,
        kept,
        None if pool is None else for_target(pool.double()).to(problem.dtype),
    )
