"""Features before a regression: centred, on common axes, in one unit; two passes become blends of them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

NETWORK_AXES = 256
"""Axes that hold what a network makes of images."""
ALL_AXES = 1024
"""Most axes of other features, such as histograms, of which each may matter."""


class Preparation(NamedTuple):
    """An affine map of features of one or two passes to G groups of rows.

    Group g is the blend (1 − w) f₀ + w f₁ of both passes, minus its shift, times its unit, on the common axes.

    Attributes:
        mean: Subtracted first, (d,).
        axes: Orthonormal columns, (d, k).
        blends: w of each group, (G,).
        shift: Mean of the labelled rows of each group, (G, k).
        unit: Factor after which the mean square of a feature of labelled rows is 1, (G,).
    """

    mean: Tensor
    axes: Tensor
    blends: Tensor
    shift: Tensor
    unit: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        """Prepare features (n, passes, d): rows (G, n, k)."""
        return self._scale(self._blend(self._project(features)))

    def _project(self, features: Tensor) -> Tensor:
        return (features.float() - self.mean) @ self.axes  # (n, passes, k)

    def _blend(self, projected: Tensor) -> Tensor:
        own, other = projected[:, 0], projected[:, -1]
        return own + self.blends.view(-1, 1, 1) * (other - own)

    def _scale(self, blended: Tensor) -> Tensor:
        return (blended - self.shift.unsqueeze(1)) * self.unit.view(-1, 1, 1)


def prepare(features: Tensor, labelled: Tensor, blends: Sequence[float], components: int) -> Preparation:
    """Find the preparation of a problem.

    Args:
        features: All rows that train, labelled or not, (n, passes, d).
        labelled: Which of them have a label, (n,): these alone decide on shift and unit, so that a decay means the same
            with a pool and without.
        blends: w of each group; (0,) with one pass.
        components: Most axes.
    """
    rows = features.float()
    size = rows.shape[2]
    flat = rows.flatten(0, 1)
    mean = flat.mean(0)
    axes = _principal_axes(flat - mean, components)
    none = torch.zeros(len(blends), axes.shape[1]), torch.ones(len(blends))
    first = Preparation(mean, axes, torch.tensor(blends), *none)
    groups = first(rows[labelled])
    shift = groups.mean(1)
    length = (groups - shift.unsqueeze(1)).square().sum(2).mean(1).sqrt()
    unit = torch.where(length > 0, size**0.5 / length.clamp(min=1e-30), 1.0)
    return first._replace(shift=shift, unit=unit)


def _principal_axes(centred: Tensor, count: int) -> Tensor:
    """The first principal axes of rows (n, d): columns (d, at most count) by descending variance, with fixed signs."""
    rows, size = centred.shape
    if count >= size:
        return torch.eye(size)
    by_rows = rows < size  # all that the rows span: their inner products tell it, and there are fewer of them
    gram = (centred @ centred.T if by_rows else centred.T @ centred).double()
    variances, vectors = torch.linalg.eigh(gram)
    variances, vectors = variances.flip(0)[:count], vectors.flip(1)[:, :count]
    known = variances > 1e-10 * variances[:1].clamp(min=1e-300)  # beyond it lies rounding noise
    variances, vectors = variances[known], vectors[:, known]
    axes = centred.double().T @ (vectors / variances.sqrt()) if by_rows else vectors
    signs: Tensor = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    turned: Tensor = axes * signs
    return turned.float()
