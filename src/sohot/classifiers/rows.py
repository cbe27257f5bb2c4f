"""Rows of features, whatever they come from, in an order and in folds that follow from their own values."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

POOL = -1
"""The label of a target row without one."""
MOST_FOLDS = 5
"""Most folds, however many labelled rows a class has."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Features of both domains: images after a network, a feature file, or a table.

    Attributes:
        features: Shape (n, passes, d): one pass, or two with the network's and the target's batch-norm statistics.
        labels: Classes 0, 1, …, and −1 for rows of the pool, (n,).
        is_target: Whether a row comes from the target; all rows of the pool do, (n,).
    """

    features: Tensor
    labels: Tensor
    is_target: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: Tensor | slice) -> "Rows":
        """Take some rows, by numbers, a mask or a slice."""
        return Rows(self.features[chosen], self.labels[chosen], self.is_target[chosen])


def digests(features: Tensor) -> list[bytes]:
    """Digest the values of each row: the same image gives the same digest, whatever its name, place and neighbours."""
    values = features.detach().cpu().float().contiguous().flatten(1).numpy()
    return [hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in values]


def in_order(rows: Rows) -> tuple[Rows, Tensor, list[bytes]]:
    """Sort rows: labelled source rows, labelled target rows, then the pool; each part by the digests of its rows.

    What follows then depends neither on names nor on the order in which rows were given.

    Returns:
        The sorted rows, where each of them was, and their digests.
    """
    keys = digests(rows.features)
    labels, is_target = rows.labels.tolist(), rows.is_target.tolist()
    order = sorted(range(len(keys)), key=lambda i: (labels[i] == POOL, is_target[i], keys[i], labels[i]))
    indices = torch.tensor(order, dtype=torch.long)
    return rows[indices], indices, [keys[i] for i in order]


def deal_folds(labels: Sequence[int], keys: Sequence[bytes], most: int = MOST_FOLDS) -> Tensor:
    """Deal labelled target rows to folds: each class gives every fold about as many rows.

    Rows with equal values share a fold. A class with one row trains in every fold and is never held out, since
    nothing of it would be left.

    Args:
        labels: Classes, of rows in the order of `in_order`.
        keys: Digests of the rows.
        most: Most folds.

    Returns:
        The fold of each row, −1 for one that is never held out, (m,).

    Example:
        >>> deal_folds([0, 0, 1, 1, 2], [b"a", b"b", b"c", b"d", b"e"]).tolist()
        [0, 1, 0, 1, -1]
    """
    of_class: dict[int, dict[bytes, int]] = {}
    for label, key in zip(labels, keys, strict=True):
        seen = of_class.setdefault(label, {})
        seen.setdefault(key, len(seen))
    count = min(most, max(map(len, of_class.values()), default=0))
    return torch.tensor(
        [
            of_class[label][key] % count if count > 1 and len(of_class[label]) > 1 else -1
            for label, key in zip(labels, keys, strict=True)
        ],
        dtype=torch.long,
    )
