"""Class-balanced batches as a pure function of a seed and the step number.

No state is kept between steps, so a killed run resumes with exactly the batches it would have seen.

The building block is a *cycle*: n items in a shuffled ring, of which turn t takes the m after those of turn t − 1.
Neighbours in a ring are different, so a turn never repeats an item; after n / gcd(n, m) turns all have been taken
equally often and the ring is reshuffled. At any moment the counts of two items differ by at most one. One cycle runs
over the classes; the rows of each class have their own cycles, one per domain.
"""

import hashlib
import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..functional.checks import INTEGER_TYPES, check_label_range

_Indices = npt.NDArray[np.int64]


@lru_cache(maxsize=8192)
def _ring(seed: int, owner: str, shuffle: int, length: int) -> _Indices:
    """Return a permutation that depends only on the arguments (the raw Philox stream is fixed across versions)."""
    key = hashlib.sha256(f"{seed} {owner} {shuffle}".encode()).digest()[:16]
    raw = np.random.Philox(key=int.from_bytes(key, "little")).random_raw(length)
    order = np.argsort(raw, kind="stable").astype(np.int64)
    order.flags.writeable = False  # shared by all callers
    return order


class _Cycle:
    """A cycle over `length` items, `take` per turn."""

    def __init__(self, seed: int, owner: str, length: int, take: int | None) -> None:
        self.seed, self.owner, self.length = seed, owner, length
        self.take: int = length if take is None else min(take, length)
        self.turns_per_shuffle = length // math.gcd(length, self.take) if length else 1

    def _locate(self, turn: int) -> tuple[_Indices, int, int]:
        """Return the ring of a turn, the number of its shuffle, and how many of its places were taken before."""
        shuffle, inner = divmod(turn, self.turns_per_shuffle)
        return _ring(self.seed, self.owner, shuffle, self.length), shuffle, inner * self.take

    def taken(self, turn: int) -> _Indices:
        """Return the items taken at a turn."""
        if self.take == self.length:
            return np.arange(self.length)
        ring, _, before = self._locate(turn)
        return ring.take(np.arange(before, before + self.take) % self.length)

    def earlier_turns(self, turn: int) -> _Indices:
        """Count, for each item taken at a turn, the earlier turns that took it."""
        if self.take == self.length:
            return np.full(self.length, turn)
        _, shuffle, before = self._locate(turn)
        in_this_shuffle = np.arange(before, before + self.take) // self.length
        return in_this_shuffle + shuffle * (self.turns_per_shuffle * self.take // self.length)


class BalancedBatches:
    """Batches in which every class shown has rows of both domains.

    Each batch shows `classes_per_batch` classes, each with `source_per_class` source rows and `target_per_class` target
    rows, or all its rows if it has fewer. No row repeats within a batch; over time all classes are shown equally often,
    and so are all rows of a class in a domain. A class that only one domain has takes its turns too, so that it is
    classified. A batch that happens to show no class of a domain has no rows of that domain.

    Args:
        source_labels: Classes of the source rows; may be empty.
        target_labels: Classes of the target rows; may be empty, but not both.
        num_classes: Number of classes.
        classes_per_batch: Classes shown in a batch; None for all.
        source_per_class: Source rows of each class shown; None for all it has.
        target_per_class: Target rows of each class shown; None for all it has.
        seed: Different seeds give different batches.

    If all three counts are None, each batch is the whole training set.

    Example:
        >>> batches = BalancedBatches(torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 1]), 2, source_per_class=1)
        >>> source_rows, target_rows = batches.batch(step=0)
        >>> len(source_rows), target_rows
        (2, tensor([0, 1]))
        >>> batches.steps_per_epoch
        3
    """

    def __init__(
        self,
        source_labels: Tensor,
        target_labels: Tensor,
        num_classes: int,
        classes_per_batch: int | None = None,
        source_per_class: int | None = None,
        target_per_class: int | None = None,
        seed: int = 0,
    ) -> None:
        takes = {"source": source_per_class, "target": target_per_class}
        _check_count(num_classes, "num_classes")
        _check_count(classes_per_batch, "classes_per_batch", or_none=True)
        _check_count(source_per_class, "source_per_class", or_none=True)
        _check_count(target_per_class, "target_per_class", or_none=True)
        labels = {"source": source_labels, "target": target_labels}
        self._rows = {
            domain: _rows_by_class(values, num_classes, f"{domain}_labels") for domain, values in labels.items()
        }
        self._classes = [c for c in range(num_classes) if any(len(rows[c]) for rows in self._rows.values())]
        if not self._classes:
            raise ValueError("source_labels and target_labels are both empty")
        self._class_cycle = _Cycle(seed, "classes", len(self._classes), classes_per_batch)
        self._row_cycles = {
            domain: [
                _Cycle(seed, f"{domain} {c}", len(rows), takes[domain]) for c, rows in enumerate(self._rows[domain])
            ]
            for domain in labels
        }

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return the source rows and the target rows of one step, each in ascending order."""
        if step < 0:
            raise ValueError(f"step must be at least 0, got {step}")
        shown = [self._classes[index] for index in self._class_cycle.taken(step)]
        turns = self._class_cycle.earlier_turns(step).tolist()
        return self._domain_rows("source", shown, turns), self._domain_rows("target", shown, turns)

    def _domain_rows(self, domain: str, shown: list[int], turns: list[int]) -> Tensor:
        rows, cycles = self._rows[domain], self._row_cycles[domain]
        parts = [rows[c][cycles[c].taken(turn)] for c, turn in zip(shown, turns, strict=True) if cycles[c].length]
        return torch.from_numpy(np.sort(np.concatenate(parts))) if parts else torch.empty(0, dtype=torch.int64)

    @property
    def most_rows(self) -> int:
        """Most rows that a class has in a batch, of both domains together."""
        pairs = zip(self._row_cycles["source"], self._row_cycles["target"], strict=True)
        return max(source.take + target.take for source, target in pairs)

    @property
    def steps_per_epoch(self) -> int:
        """Number of steps, from step 0, after which every row has been seen at least once."""
        cycles = [cycle for of_domain in self._row_cycles.values() for cycle in of_domain if cycle.length]
        turns = max(math.ceil(cycle.length / cycle.take) for cycle in cycles)
        return math.ceil(turns * self._class_cycle.length / self._class_cycle.take)


def _rows_by_class(labels: Tensor, num_classes: int, name: str) -> list[_Indices]:
    if not isinstance(labels, Tensor) or labels.dtype not in INTEGER_TYPES or labels.dim() != 1:
        raise TypeError(f"{name} must be a one-dimensional tensor of integers")
    if len(labels):
        check_label_range(labels, num_classes, name)
    values = labels.detach().cpu().numpy()
    order = np.argsort(values, kind="stable").astype(np.int64)
    return np.split(order, np.cumsum(np.bincount(values, minlength=num_classes))[:-1])


def _check_count(value: int | None, name: str, or_none: bool = False) -> None:
    if value is None and or_none:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1{' or None' if or_none else ''}, got {value!r}")
