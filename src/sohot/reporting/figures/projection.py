"""Rows of features projected into a plane, by PCA or t-SNE."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ...functional.checks import check_features, check_finite
from ...functional.plain_checks import check_choice

METHODS = ("pca", "tsne")
Plane: TypeAlias = NDArray[np.float32]
_FEWEST_FOR_TSNE = 5
_FIRST_COMPONENTS = 50  # t-SNE compares rows in this many principal components: quicker, with less noise


def project(features: Tensor, how: str = "pca", seed: int = 0) -> Plane:
    """Project rows of features into a plane.

    Args:
        features: Shape (n, d).
        how: "pca" for two principal components (distances are meaningful), or "tsne" (neighbours stay neighbours).
        seed: Seed of t-SNE.

    Returns:
        An array of shape (n, 2), the same for the same input. With too few rows or features for two directions
        the rest is 0; fewer than five rows are always projected by PCA.

    Example:
        >>> import torch
        >>> plane = project(torch.tensor([[0.0, 0.0, 0.0], [0.0, 3.0, 4.0]]))
        >>> plane.shape, round(float(np.linalg.norm(plane[1] - plane[0])), 3)
        ((2, 2), 5.0)
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    check_features(features, "features")
    check_finite(features, "features")
    check_choice(how, METHODS, "how")
    rows = features.detach().cpu().double().numpy()
    rows = rows - rows.mean(0)
    with threadpool_limits(1):  # the work is small: beside other work, several threads take ten times as long
        if how == "pca" or len(rows) < _FEWEST_FOR_TSNE or not rows.any():
            return _main_directions(rows, 2)
        return _tsne(_main_directions(rows, min(_FIRST_COMPONENTS, rows.shape[1])), seed)


def _main_directions(centred: NDArray[np.float64], wanted: int) -> Plane:
    from sklearn.decomposition import PCA  # type: ignore[import-untyped]

    found = np.zeros((len(centred), wanted), dtype=np.float32)
    if centred.any():  # without spread there is no direction
        count = min(wanted, *centred.shape)
        found[:, :count] = PCA(count, svd_solver="full").fit_transform(centred)
    return found


def _tsne(rows: Plane, seed: int) -> Plane:
    from sklearn.manifold import TSNE  # type: ignore[import-untyped]

    start = np.zeros((len(rows), 2), dtype=np.float32)
    start[:, : min(2, rows.shape[1])] = rows[:, :2]
    start *= 1e-4 / max(float(start.std(axis=0).max()), 1e-12)  # as small as scikit-learn's own start
    perplexity = min(30.0, (len(rows) - 1) / 3)
    found: Plane = TSNE(2, perplexity=perplexity, init=start, random_state=seed).fit_transform(rows)
    return found
