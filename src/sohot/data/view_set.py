"""A fixed set of weak and strong views of each image, for whoever keeps what a network makes of them."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from torch import Tensor

from .crops import to_tensor
from .image_batches import empty_batch, fill_batches
from .input_spec import InputSpec
from .labelled import LabelledImages
from .random_views import STRONG, STRONG_NUMBERS, Strength, to_view
from .readers import read_item

Kind = Literal["plain", "weak", "strong"]
"""Kinds of views: the plain centre, which tests use, those that are cropped and mirrored, and strongly changed ones."""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class ViewSet:
    """The views of each image: weak ones, the first of which is the plain centre, then as many strong ones if wanted.

    A view depends on the seed, the image's name, its kind and its number alone, not on other images or on their order.

    Attributes:
        seed: Seed of the views.
        each: Number of weak views, and of strong ones.
        strength: Strength of the strong ones; None for weak ones only.

    Example:
        >>> views = ViewSet(seed=0, each=4)
        >>> len(views), views.of("plain"), views.of("weak"), views.of("strong")
        (8, range(0, 1), range(0, 4), range(4, 8))
    """

    seed: int
    each: int
    strength: Strength | None = STRONG

    def __len__(self) -> int:
        return self.each if self.strength is None else 2 * self.each

    def of(self, kind: Kind) -> range:
        """Return the places of one kind of views in the set; the plain one is the first weak one."""
        if kind == "strong" and self.strength is None:
            raise ValueError("these images have weak views only")
        return {"plain": range(1), "weak": range(self.each), "strong": range(self.each, 2 * self.each)}[kind]

    def numbers(self, name: str, kind: Kind, number: int) -> list[float]:
        """Return the random numbers, from 0 to below 1, of one view of the image of this name.

        >>> [round(number, 3) for number in ViewSet(0, 4).numbers("mug/1.png", "weak", 1)[:3]]
        [0.495, 0.755, 0.684]
        """
        text = json.dumps([self.seed, name, kind, number])
        drawn = np.frombuffer(hashlib.shake_256(text.encode()).digest(8 * STRONG_NUMBERS), dtype="<u8")
        numbers: list[float] = ((drawn >> np.uint64(11)) * 2.0**-53).tolist()
        return numbers

    def load(self, images: LabelledImages, row: int, spec: InputSpec, out: Tensor) -> None:
        """Read an image, once, and write all its views: (views, channels, size, size).

        Raises:
            UnreadableImage: The image cannot be read; the message names it.
        """
        picture = read_item(images, row, spec.channels, at_least=2 * spec.resize)
        to_tensor(picture, spec, out=out[0])
        name = images.name(row)
        for number in range(1, self.each):
            to_view(picture, spec, self.numbers(name, "weak", number), out=out[number])
        for number in range(len(self) - self.each):
            drawn = self.numbers(name, "strong", number)
            to_view(picture, spec, drawn, self.strength, out[self.each + number])


def iter_views(
    images: LabelledImages, spec: InputSpec, views: ViewSet, batch_size: int, workers: int | None = None
) -> Iterator[Tensor]:
    """Read all images in order, as `iter_batches` does: batches of shape (images, views, channels, size, size)."""

    def empty(rows: int) -> Tensor:
        return empty_batch(rows * len(views), spec).view(rows, len(views), spec.channels, spec.size, spec.size)

    def load(row: int, out: Tensor) -> None:
        views.load(images, row, spec, out)

    return fill_batches(len(images), empty, load, batch_size, workers)
