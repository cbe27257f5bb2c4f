"""`split.json`: the images of a run by name, which train and which test, in the format of `sohot data split`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._files import write_atomically
from ..data.labelled import LabelledImages
from ..data.protocols.split import FORMAT, as_ascii, sealed, side_as_dict

SPLIT = "split.json"
"""The file in a run's folder."""

SOURCE, TARGET, POOL, TEST = "source_train", "target_train", "target_pool", "target_test"
"""Sides of a run; the pool is for target images without labels, and empty so far."""


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
