"""The demo's task: from printed to handwritten digits, with a handful of labels, and what must never be mixed.

The handwritten digits fall into two halves, told apart by a hash of each image. Every choice of a setting is made on
the development half; the demo trains and tests on the demo half alone, so that its figures were never looked at
when choosing. Images that are equal have the same hash, so no image can be in both halves.
"""

import hashlib
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from ..data.digits import font_digits, handwritten_digits
from ..functional.plain_checks import check_choice

NUM_CLASSES = 10
SHOTS = 3
"""Labelled handwritten images of each digit."""
SOURCE_PER_CLASS = 100
"""Printed images of each digit."""
HALVES = ("development", "demo")


@dataclass(frozen=True)
class DigitSplit:
    """Who trains and who tests; images of shape (n, 1, 16, 16), float32 in 0 … 1, labels of shape (n,)."""

    source: Tensor
    source_labels: Tensor
    target: Tensor
    target_labels: Tensor
    test: Tensor
    test_labels: Tensor


def draw_split(split: int, *, seed: int = 0, half: str = "demo") -> DigitSplit:
    """Draw one split: printed digits, three handwritten ones of each class to learn from, the rest of the half to test.

    The choice depends on nothing but the arguments and the images: neither on the machine nor on a library's stream of
    random numbers.

    Args:
        split: Number of the split; another one draws other images of both domains.
        seed: Another seed gives another series of splits.
        half: "demo", or "development" for choosing settings.

    Returns:
        The split. No image, by its content, both trains and tests.

    Example:
        >>> split = draw_split(0)
        >>> len(split.source), len(split.target), len(split.test)
        (1000, 30, 841)
    """
    check_choice(half, HALVES, "half")
    images, labels = handwritten_half(half)
    key = f"{half} {seed} {split}"
    train, test = _shots(images, labels, key)
    source, source_labels = font_digits(SOURCE_PER_CLASS, seed=_number(key))
    return DigitSplit(source, source_labels, images[train], labels[train], images[test], labels[test])


@cache
def handwritten_half(half: str) -> tuple[Tensor, Tensor]:
    """Give the handwritten digits of one half, images and labels; each image once.

    >>> [len(handwritten_half(half)[1]) for half in HALVES]
    [926, 871]
    """
    images, labels = handwritten_digits()
    rows: dict[bytes, int] = {}
    for row, image in enumerate(images):
        digest = content_hash(image)
        if digest[0] % 2 == HALVES[::-1].index(half):
            rows.setdefault(digest, row)
    chosen = list(rows.values())
    return images[chosen], labels[chosen]


def content_hash(image: Tensor) -> bytes:
    """Hash what an image shows. Handwritten digits are multiples of 1/256, so rounding leaves nothing to chance."""
    return hashlib.sha256((image * 256).round().to(torch.int16).numpy().tobytes()).digest()


def _shots(images: Tensor, labels: Tensor, key: str) -> tuple[list[int], list[int]]:
    """Divide rows into the first three of each class, ordered by a hash, and the others."""

    def rank(row: int) -> bytes:
        return hashlib.sha256(key.encode() + content_hash(images[row])).digest()

    order = sorted(range(len(labels)), key=rank)
    by_class = [[row for row in order if labels[row] == c] for c in range(NUM_CLASSES)]
    train = sorted(row for rows in by_class for row in rows[:SHOTS])
    return train, sorted(row for rows in by_class for row in rows[SHOTS:])


def _number(key: str) -> int:
    """Turn a text into a seed."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "little")
