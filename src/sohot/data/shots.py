"""Choose a handful of images per class, the same ones on every machine."""

import hashlib
from collections.abc import Iterable

from .labelled import LabelledImages
from .names import enumerate_words

SHORT = ("refuse", "take")


def take_shots(
    images: LabelledImages, shots: int, seed: int, *, short: str = "refuse"
) -> tuple[LabelledImages, LabelledImages]:
    """Divide images into `shots` of each class and the rest.

    The images of a class are ordered by a hash of the seed, the class name and the file name, so the choice depends on
    nothing else: neither the order of the list, nor the machine, nor a library's stream of random numbers. With the
    same seed, fewer shots are a subset of more.

    Args:
        images: The images to choose from.
        shots: How many of each class.
        seed: Any integer; another seed chooses other images.
        short: What to do with a class that has fewer images: "refuse", or "take" all it has (see `short_classes`).

    Returns:
        The chosen images and all others, both in the order of `images`.

    Raises:
        ValueError: A class has fewer images than `shots`, or an argument is wrong.

    Example:
        >>> from pathlib import Path
        >>> images = LabelledImages([Path(f"mug/{n}.jpg") for n in range(5)], [0] * 5, ["mug"])
        >>> train, rest = take_shots(images, shots=3, seed=0)
        >>> len(train), len(rest)
        (3, 2)
    """
    _check_integer(shots, "shots", lowest=1)
    _check_integer(seed, "seed")
    if short not in SHORT:
        raise ValueError(f"short must be one of {', '.join(map(repr, SHORT))}, got {short!r}")
    lacking = short_classes(images, shots)
    if lacking and short == "refuse":
        named = enumerate_words(f"{name!r} ({count})" for name, count in lacking.items())
        raise ValueError(f"{shots} shots per class were asked for, but these classes have fewer images: {named}")
    taken = shot_rows(images, shots, seed)
    everyone = range(len(images))
    return images.subset([row for row in everyone if row in taken]), images.subset(
        [row for row in everyone if row not in taken]
    )


def shot_rows(images: LabelledImages, shots: int, seed: int, among: Iterable[int] | None = None) -> set[int]:
    """Choose rows as `take_shots` does, or all rows of a class that has fewer; only `among` these rows, if given."""
    rows_by_class: list[list[int]] = [[] for _ in images.classes]
    for row in range(len(images)) if among is None else among:
        rows_by_class[images.labels[row]].append(row)
    taken: set[int] = set()
    for rows in rows_by_class:
        taken.update(sorted(rows, key=lambda row: (_draw(images, row, seed), row))[:shots])
    return taken


def short_classes(images: LabelledImages, shots: int) -> dict[str, int]:
    """Name the classes with fewer images than `shots`, and how many they have."""
    counts = zip(images.classes, images.counts(), strict=True)
    return {name: count for name, count in counts if count < shots}


def _draw(images: LabelledImages, row: int, seed: int) -> bytes:
    # No name contains the separator, so different parts never join to the same text.
    text = "\0".join((str(seed), images.classes[images.labels[row]], images.name(row)))
    return hashlib.sha256(text.encode("utf-8")).digest()


def _check_integer(value: int, name: str, lowest: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if lowest is not None and value < lowest:
        raise ValueError(f"{name} must be at least {lowest}, got {value}")
