"""MNIST and USPS from their original files: two ways to write ten digits."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...functional.plain_checks import check_choice
from ..digit_formats import read_idx, read_usps
from ..labelled import LabelledImages
from ..names import printable
from .class_table import ClassTable, apply_table
from .dataset import DataSet, nothing_found, require_folder

NAME = "digits"
PARTS = ("all", "train", "test")
OFFICIAL = {"mnist": {"train": 60000, "test": 10000}, "usps": {"train": 7291, "test": 2007}}
_MNIST = {"train": "train", "test": "t10k"}
_USPS = {"train": ("usps.bz2", "usps"), "test": ("usps.t.bz2", "usps.t")}
_CLASSES = tuple(map(str, range(10)))


def open_digits(root: Path, classes: ClassTable | None = None, *, part: str = "all") -> DataSet:
    """Read MNIST (`train-images-idx3-ubyte.gz` and so on) and USPS (`usps.bz2`, `usps.t.bz2`).

    Args:
        root: The folder of the files, packed or unpacked, also in folders `MNIST/raw`, `mnist` and `usps`.
        classes: Another table of classes; the digits are called "0" … "9".
        part: "train" or "test" for the official half, "all" for both.
    """
    check_choice(part, PARTS, "part")
    require_folder(root)
    halves = tuple(OFFICIAL["mnist"]) if part == "all" else (part,)
    images_of = {"mnist": _mnist(root, halves), "usps": _usps(root, halves)}
    domains = {name: images for name, images in images_of.items() if len(images)}
    if not domains:
        raise nothing_found(NAME, root, "train-images-idx3-ubyte.gz, its labels, t10k-…, usps.bz2 and usps.t.bz2")
    missing = [f"the domain {name} is missing" for name in images_of if name not in domains]
    domains, lacking = apply_table(domains, classes)
    official = {name: sum(counts[half] for half in halves) for name, counts in OFFICIAL.items()}
    letters = {"M": "mnist", "U": "usps"}
    return DataSet(NAME, root, domains, letters, ("M-U", "U-M"), official, (), (*missing, *lacking))


def _mnist(root: Path, halves: Sequence[str]) -> LabelledImages:
    files: dict[Path, npt.NDArray[np.uint8]] = {}
    for half in halves:
        images, labels = (
            _first(root, ("", "MNIST/raw", "mnist", "MNIST"), _spellings(_MNIST[half], what, dimensions))
            for what, dimensions in (("images", 3), ("labels", 1))
        )
        if images is None:
            continue
        if labels is None:
            raise FileNotFoundError(f"{printable(images)} exists, but its labels are missing")
        pixels, digits = read_idx(images), read_idx(labels)
        if pixels.ndim != 3 or digits.shape != pixels.shape[:1]:
            raise ValueError(
                f"{printable(images)} and {printable(labels)} do not match: {pixels.shape} and {digits.shape}"
            )
        files[images] = digits
    return _list(root, files, "idx")


def _usps(root: Path, halves: Sequence[str]) -> LabelledImages:
    files = [_first(root, ("", "usps", "USPS"), _USPS[half]) for half in halves]
    return _list(root, {file: read_usps(file)[1] for file in files if file is not None}, "usps")


def _spellings(half: str, what: str, dimensions: int) -> list[str]:
    names = [f"{half}-{what}-idx{dimensions}-ubyte", f"{half}-{what}.idx{dimensions}-ubyte"]
    return [name + packed for name in names for packed in (".gz", "")]


def _first(root: Path, folders: Sequence[str], names: Sequence[str]) -> Path | None:
    files = (root / folder / name for folder in folders for name in names)
    return next((file for file in files if file.is_file()), None)


def _list(root: Path, digits: dict[Path, npt.NDArray[np.uint8]], reader: str) -> LabelledImages:
    rows = sorted(
        (int(digit), number, row) for number, each in enumerate(digits.values()) for row, digit in enumerate(each)
    )
    files = list(digits)
    if rows and rows[-1][0] > 9:
        raise ValueError(f"{printable(files[rows[-1][1]])} has label {rows[-1][0]}, but digits end at 9")
    return LabelledImages(
        tuple(files[number] for _, number, _ in rows),
        tuple(digit for digit, _, _ in rows),
        _CLASSES,
        root,
        parts=tuple(str(row) for _, _, row in rows),
        reader=reader,
    )
