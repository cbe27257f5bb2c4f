"""Two folders of digit images to try things with: printed ones as the source, handwritten ones as the target."""

import os
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from torch import Tensor

from .digits import SIDE, font_digits, handwritten_digits

PIXELS = 4 * SIDE
"""Side of the files: large enough to look at."""


class DigitFolders(NamedTuple):
    """Where `write_digit_folders` has put the images."""

    printed: Path  # one folder per digit
    handwritten: Path  # one folder per digit
    new: Path  # more handwritten digits, in no particular folders


def write_digit_folders(
    folder: str | os.PathLike[str], *, printed: int = 20, handwritten: int = 15, new: int = 5
) -> DigitFolders:
    """Write digits as PNG files, in folders as `sohot fit` takes them; nothing is downloaded.

    Args:
        folder: Where to write; the folder must not exist yet, or be empty.
        printed: Number of images of each digit in `printed`.
        handwritten: Number of images of each digit in `handwritten`.
        new: Number of images of each digit in `new`, all in one folder, in an order that says nothing.

    Returns:
        The three folders.

    Raises:
        ValueError: A number is out of range, or the folder holds files.

    Example:
        >>> import tempfile
        >>> folders = write_digit_folders(tempfile.mkdtemp(), printed=2, handwritten=1, new=3)
        >>> len(list(folders.printed.glob("7/*.png"))), len(list(folders.new.glob("*.png")))
        (2, 30)
    """
    root = Path(folder)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ValueError(f"folder must be new or empty, but {root} holds files")
    images, labels = handwritten_digits()
    fewest = int(labels.bincount().min())
    if handwritten < 1 or new < 0 or handwritten + new > fewest:
        raise ValueError(f"handwritten and new must add up to 1 to {fewest}, got {handwritten} and {new}")
    drawn, digits = font_digits(printed, seed=0)
    places = DigitFolders(root / "printed", root / "handwritten", root / "new")
    _write(places.printed, drawn, digits)
    ranks = _ranks(labels)
    _write(places.handwritten, images[ranks < handwritten], labels[ranks < handwritten])
    later = (ranks >= handwritten) & (ranks < handwritten + new)
    places.new.mkdir()
    for number, image in enumerate(images[later]):  # scikit-learn's order, in which the digits are mixed
        _save(image, places.new / f"{number:03}.png")
    return places


def _ranks(labels: Tensor) -> Tensor:
    """Say of each image how many of its class come before it."""
    same = labels[:, None] == labels
    return same.tril(-1).sum(1)


def _write(folder: Path, images: Tensor, labels: Tensor) -> None:
    for image, label, rank in zip(images, labels.tolist(), _ranks(labels).tolist(), strict=True):
        place = folder / str(label)
        place.mkdir(parents=True, exist_ok=True)
        _save(image, place / f"{rank:03}.png")


def _save(image: Tensor, file: Path) -> None:
    pixels = (255 * image[0]).round().byte().numpy()
    Image.fromarray(pixels).resize((PIXELS, PIXELS), Image.Resampling.BICUBIC).save(file)
