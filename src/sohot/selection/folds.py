"""Folds: each labelled row is held out once while the others train."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from ..functional.plain_checks import check_count

MOST_FOLDS = 5
"""Most folds of a selection, however many labelled rows a class has."""


class TooFewShots(ValueError):  # noqa: N818 - it names the problem
    """No class has a labelled target row to spare."""


class Fold(NamedTuple):
    """Indices of the training rows and of the held-out rows."""

    train: list[int]
    held: list[int]


def deal(
    labels: Sequence[int],
    keys: Sequence[Hashable],
    *,
    folds: int | None = None,
    order: Callable[[list[int]], Any] | None = None,
    unit: str = "rows",
) -> list[Fold]:
    """Assign the rows of each class to the folds that hold them out.

    With 3 rows per class there are 3 folds, each holding out one row of every class. Rows of a class with equal keys
    show the same content and form one shot. A class with one shot trains in every fold and is never held out.

    Args:
        labels: Class of each row.
        keys: What each row shows.
        folds: Number of folds; None for the number of shots of the largest class, which is also the maximum.
        order: Sort key of a shot (the numbers of its rows); None to sort shots by their first rows.
        unit: What a row is, for error messages.

    Raises:
        TooFewShots: No class has two shots.
        ValueError: `folds` is less than two.

    Example:
        >>> [fold.held for fold in deal([0, 0, 1, 1, 2], range(5))]
        [[0, 2], [1, 3]]
    """
    number = None if folds is None else check_count(folds, "folds", 2)
    together: dict[int, dict[Hashable, list[int]]] = {}
    for row, (label, key) in enumerate(zip(labels, keys, strict=True)):
        together.setdefault(label, {}).setdefault(key, []).append(row)
    most = max(map(len, together.values()), default=0)
    if most < 2:
        raise TooFewShots(f"no class has two labelled target {unit}: selection needs one to train and one to validate")
    held: list[set[int]] = [set() for _ in range(most if number is None else min(number, most))]
    for shots in together.values():
        if len(shots) > 1:
            for place, rows in enumerate(shots.values() if order is None else sorted(shots.values(), key=order)):
                held[place % len(held)].update(rows)
    return [Fold([row for row in range(len(labels)) if row not in rows], sorted(rows)) for rows in held]
