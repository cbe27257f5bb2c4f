"""`split.json`: the images of a run by name, which train and which test, in the format of `sohot data split`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._files import write_atomically
from ..data.labelled import LabelledImages
from ..data.names import enumerate_words
from ..data.pools import POOL as POOL
from ..data.protocols.split import (
    FORMAT,
    as_ascii,
    check_seal,
    pool_from_dict,
    read_content,
    sealed,
    side_as_dict,
    side_from_dict,
)

SPLIT = "split.json"
"""The file in a run's folder."""

SOURCE, TARGET, TEST = "source_train", "target_train", "target_test"
"""Sides of a run, besides the `POOL`, whose images have no labels."""


def describe_split(classes: tuple[str, ...], sides: Mapping[str, LabelledImages | None]) -> dict[str, Any]:
    """Describe the sides of a run as JSON values: names below the folder of each side, labels, folders, fingerprint.

    The fingerprint does not depend on where the folders are.
    """
    given = {side: sides.get(side) for side in (SOURCE, TARGET, POOL, TEST)}
    nothing: dict[str, Any] = {"files": [], "labels": []}
    content = {
        "format": FORMAT,
        "protocol": "fit",
        "counts": {side: 0 if images is None else len(images) for side, images in given.items()},
        "classes": list(classes),
        "sides": {side: nothing if images is None else side_as_dict(images) for side, images in given.items()},
    }
    folders = {
        side: str(images.root.absolute())
        for side, images in given.items()
        if images is not None and images.root is not None
    }
    return {**sealed(content), "folders": folders}


def write_run_split(folder: Path, classes: tuple[str, ...], sides: Mapping[str, LabelledImages | None]) -> None:
    """Store which images a run trains and tests on in its folder."""
    write_atomically(folder / SPLIT, as_ascii(describe_split(classes, sides)))


def read_sides(file: Path, source: Path | None = None, target: Path | None = None) -> dict[str, LabelledImages]:
    """Read the sides of a split that have images: that of a run, or of a file of `sohot data split`.

    Args:
        file: The file.
        source: Where the source images lie; None for the folder that the file names.
        target: Where the target images lie: those that train, and those beside them that test or have no label; None
            likewise.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no split, was changed, names no folder, or an image is missing or on two sides.
    """
    try:
        content = read_content(file)
        check_seal(content)
        folders: dict[str, str] = content.get("folders", {})
        beside = {side: target for side in (POOL, TEST) if folders.get(side) == folders.get(TARGET)}
        given = {SOURCE: source, TARGET: target, POOL: None, TEST: None, **beside}
        sides = {}
        for side, folder in given.items():
            listed = content["sides"].get(side)
            if listed is None or not listed["files"]:
                continue
            if folder is None and side not in folders:
                raise ValueError("it does not say where its images are: give that folder as --source and --target")
            root = Path(folders[side]) if folder is None else folder
            if side == POOL:
                sides[side] = pool_from_dict(listed, root)
            else:
                sides[side] = side_from_dict(listed, tuple(content["classes"]), root)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"--split {file} is not a split: {type(error).__name__} {error}") from None
    except ValueError as error:
        raise ValueError(f"--split {file}: {error}") from None
    _check_sides(file, sides)
    return sides


def read_pool(folder: Path) -> LabelledImages | None:
    """Read the list of a run's unlabelled images from its folder; None if there are none.

    Raises:
        ValueError: The file is damaged.
    """
    return read_listed(folder).get(POOL)


def read_listed(folder: Path) -> dict[str, LabelledImages]:
    """Read the lists of a run's images from its folder, by side, those that name any; the files need not be there.

    Raises:
        ValueError: The file is damaged.
    """
    file = folder / SPLIT
    if not file.is_file():
        return {}
    content = read_content(file)
    try:
        check_seal(content)
        classes, folders = tuple(content["classes"]), content["folders"]
        listed = {side: images for side, images in content["sides"].items() if images["files"]}
        return {
            side: pool_from_dict(images, Path(folders[side]))
            if side == POOL
            else side_from_dict(images, classes, Path(folders[side]))
            for side, images in listed.items()
        }
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{file} is damaged: {error}") from None


def _check_sides(file: Path, sides: Mapping[str, LabelledImages]) -> None:
    for side, images in sides.items():
        if missing := [images.name(row) for row, path in enumerate(images.files) if not path.is_file()]:
            raise ValueError(
                f"--split {file}: {len(missing)} of {len(images)} images of {side} are not in {images.root}: "
                f"{enumerate_words(missing, limit=3)}"
            )
    trained = set(_images(sides.get(TARGET)))
    for side in (POOL, TEST):
        if both := [path.name for path, part in _images(sides.get(side)) if (path, part) in trained]:
            raise ValueError(
                f"--split {file} has {len(both)} images both in {TARGET} and in {side}: "
                f"{enumerate_words(both, limit=3)}"
            )


def _images(side: LabelledImages | None) -> list[tuple[Path, str]]:
    """List the images of a side: files, and their parts."""
    return [] if side is None else list(zip(side.files, side.parts or [""] * len(side), strict=True))
