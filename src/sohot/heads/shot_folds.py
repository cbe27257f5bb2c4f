"""Leave one shot of every class out in turn: how to choose settings when a class has three labels."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .domains import Features

FOLDS = 5
"""Most folds, unless asked for more."""

Numbers = npt.NDArray[np.int64]


class ShotFold(NamedTuple):
    """Numbers of the target rows that train and of those that validate."""

    train: Numbers
    held: Numbers


def shot_folds(target: Features, labels: npt.NDArray[Any], folds: int | None = None) -> list[ShotFold]:
    """Deal the target rows of each class, in their order, to the folds in which they validate.

    With 3 rows per class there are 3 folds, and fold k leaves the k-th row of every class out. Equal rows stay
    together. A class of one row trains in every fold and validates in none.

    Args:
        target: Labelled target rows.
        labels: Their classes.
        folds: How many; None for as many as the largest class has rows, at most 5.

    Raises:
        ValueError: No class has two different rows, or fewer than two folds are asked for.

    Example:
        >>> folds = shot_folds(np.arange(5.0)[:, None], np.array([0, 0, 1, 1, 2]))
        >>> [fold.held.tolist() for fold in folds]
        [[0, 2], [1, 3]]
    """
    if folds is not None and (isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or folds < 2):
        raise ValueError(f"folds must be an integer of at least 2, got {folds!r}")
    _, content = np.unique(target, axis=0, return_inverse=True)
    shots = [_distinct(np.flatnonzero(labels == c), content.reshape(-1)) for c in np.unique(labels)]
    most = max(map(len, shots), default=0)
    if most < 2:
        raise ValueError("no class has two labelled target rows: one to train and one to validate are needed")
    number = min(most, FOLDS if folds is None else int(folds))
    held: list[list[int]] = [[] for _ in range(number)]
    for rows_of_shots in shots:
        if len(rows_of_shots) > 1:
            for place, rows in enumerate(rows_of_shots):
                held[place % number] += rows
    return [_fold(np.asarray(sorted(rows), dtype=np.int64), len(target)) for rows in held]


def _distinct(rows: npt.NDArray[np.intp], content: npt.NDArray[np.intp]) -> list[list[int]]:
    """Bring equal rows of a class together."""
    together: dict[int, list[int]] = {}
    for row in rows.tolist():
        together.setdefault(int(content[row]), []).append(row)
    return list(together.values())


def _fold(held: Numbers, count: int) -> ShotFold:
    return ShotFold(np.setdiff1d(np.arange(count, dtype=np.int64), held), held)
