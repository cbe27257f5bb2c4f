"""The demo's task: from printed to handwritten digits, with a handful of labels, and two halves that never mix.

A hash of each image assigns the handwritten digits to two halves. All settings are chosen on the development half; the
demo trains and tests only on the demo half, so its results never influenced a choice. Equal images have the same hash,
so no image can be in both halves.
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
    """Training and test images of shape (n, 1, 16, 16), float32 in 0 … 1, and labels of shape (n,)."""

    source: Tensor
    source_labels: Tensor
    target: Tensor
    target_labels: Tensor
    test: Tensor
    test_labels: Tensor


def draw_split(split: int, *, seed: int = 0, half: str = "demo") -> DigitSplit:
    """Draw one split: printed digits, three handwritten ones per class to train on, the rest of the half to test on.

    The choice depends only on the arguments and the images, not on the machine or a library's random numbers.

    Args:
        split: Number of the split; each draws different images of both domains.
        seed: Each seed gives a different series of splits.
        half: "demo", or "development" for choosing settings.

    Returns:
        The split. No image content occurs in both training and test.

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
    """Return the handwritten digits of one half, images and labels; each image once.

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
    """Hash the content of an image. Handwritten digits are multiples of 1/256, so rounding is exact."""
    return hashlib.sha256((image * 256).round().to(torch.int16).numpy().tobytes()).digest()


def _shots(images: Tensor, labels: Tensor, key: str) -> tuple[list[int], list[int]]:
    """Split rows into the first three of each class, ordered by a hash, and the others."""

    def rank(row: int) -> bytes:
        return hashlib.sha256(key.encode() + content_hash(images[row])).digest()

    order = sorted(range(len(labels)), key=rank)
    by_class = [[row for row in order if labels[row] == c] for c in range(NUM_CLASSES)]
    train = sorted(row for rows in by_class for row in rows[:SHOTS])
    return train, sorted(row for rows in by_class for row in rows[SHOTS:])


def _number(key: str) -> int:
    """Derive a seed from a text."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "little")
