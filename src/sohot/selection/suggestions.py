"""Which unlabelled rows to label next: those that the classifier doubts, but not many that show the same.

k-means divides the rows, each weighed by how much the classifier doubts its answer, and one row of each cluster stands
for the others. docs/results/suggest.md compares this with other ways.
"""

import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
Shares = npt.NDArray[np.float64]

POWER = 2
"""The power of its doubt that a row weighs: chosen on development splits (docs/results/suggest.md)."""
UNSURE = 0.5
"""A row counts as unsure if its doubt is above this."""
MOST_CLUSTERED = 10_000
"""Rows that k-means divides at most, those of the greatest doubt: the others would weigh nearly nothing."""

_STARTS = 3
_LEAST = 1e-6  # weight of a row without doubt, so that rows can be divided even if the classifier is sure of them all


class Suggestion(NamedTuple):
    """A row to label.

    Attributes:
        row: Its number.
        similar: How many other unsure rows it stands for.
    """

    row: int
    similar: int


def doubt(probabilities: Shares) -> Shares:
    """Return how much a classifier doubts each row: 1 minus the margin between its two most likely classes.

    >>> doubt(np.array([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0]])).round(6)
    array([0.2, 1. ])
    """
    second, first = np.sort(probabilities, axis=1)[:, -2:].T
    found: Shares = 1 - (first - second)
    return found


def suggest(
    features: Rows, probabilities: Shares, count: int, seed: int = 0, *, power: float = POWER
) -> list[Suggestion]:
    """Choose rows to label, the most useful first.

    Args:
        features: What the classifier sees of each row, (n, d).
        probabilities: Its calibrated probabilities, (n, classes); those of the two likeliest classes are enough.
        count: How many to choose; all if there are no more.
        seed: Seed of k-means.
        power: Rows weigh this power of their doubt.

    Returns:
        The rows. A row comes early if its cluster holds much doubt.

    Example:
        >>> features = np.array([[0.0, 1.0], [0.0, 1.1], [1.0, 0.0], [-1.0, 0.0]], dtype=np.float32)
        >>> probabilities = np.array([[0.5, 0.5], [0.55, 0.45], [0.6, 0.4], [1.0, 0.0]])
        >>> [one.row for one in suggest(features, probabilities, 2)]  # not both of the first two, which look alike
        [0, 2]
    """
    if len(features) != len(probabilities):
        raise ValueError(f"features and probabilities differ in rows: {len(features)} and {len(probabilities)}")
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    doubts = doubt(probabilities)
    order = np.argsort(-doubts, kind="stable")
    if count >= len(order):
        return [Suggestion(int(row), 0) for row in order]
    rows = np.sort(order[: max(MOST_CLUSTERED, 2 * count)])
    weights = doubts[rows] ** power + _LEAST
    nearest = _representatives(features[rows], doubts[rows], weights, count, seed)
    found = [Suggestion(int(rows[one.row]), one.similar) for one in nearest]
    taken = {one.row for one in found}
    rest = (int(row) for row in order if int(row) not in taken)  # needed where many rows are equal
    return found + [Suggestion(row, 0) for row, _ in zip(rest, range(count - len(found)), strict=False)]


def _representatives(features: Rows, doubts: Shares, weights: Shares, count: int, seed: int) -> list[Suggestion]:
    """Divide rows into clusters and take the row nearest to each centre, that of the most doubtful cluster first."""
    from sklearn.cluster import KMeans  # type: ignore[import-untyped]
    from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    directions = _directions(features, features.mean(axis=0))
    with threadpool_limits(1), warnings.catch_warnings():  # one thread: the same result whatever the machine
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters
        means = KMeans(count, n_init=_STARTS, random_state=seed).fit(directions, sample_weight=weights)
    ranked: list[tuple[float, Suggestion]] = []
    for cluster in range(count):
        own = np.flatnonzero(means.labels_ == cluster)
        if len(own):
            distances = np.square(directions[own] - means.cluster_centers_[cluster]).sum(axis=1)
            row = int(own[distances.argmin()])
            similar = int((doubts[own] > UNSURE).sum() - (doubts[row] > UNSURE))
            ranked.append((float(weights[own].sum()), Suggestion(row, similar)))
    return [one for _, one in sorted(ranked, key=lambda pair: (-pair[0], pair[1].row))]


def unlike(features: Rows, labelled: Rows) -> npt.NDArray[np.bool_]:
    """Tell which rows are farther from every labelled row than any labelled row is from the others.

    Args:
        features: The rows, (n, d).
        labelled: The labelled rows, (m, d); with fewer than two nothing can be told.

    Example:
        >>> labelled = np.array([[1.0, 0.1], [1.0, -0.1]], dtype=np.float32)
        >>> unlike(np.array([[2.0, 0.1], [-1.0, 0.0]], dtype=np.float32), labelled)
        array([False,  True])
    """
    if len(labelled) < 2:
        return np.zeros(len(features), dtype=np.bool_)
    middle = np.zeros(features.shape[1], dtype=np.float32)
    known, new = _directions(labelled, middle), _directions(features, middle)
    among = known @ known.T
    np.fill_diagonal(among, -1)
    found: npt.NDArray[np.bool_] = (new @ known.T).max(axis=1) < among.max(axis=1).min()
    return found


def _directions(features: Rows, middle: Rows) -> Rows:
    """Return unit vectors: which way each row lies from the middle."""
    moved = features - middle
    found: Rows = moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12)
    return found
