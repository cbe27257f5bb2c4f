"""Training again with more labels: the options of a run, and its split with the labelled images added."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._files import write_atomically, write_toml
from ..data.contents import new_rows
from ..data.labelled import LabelledImages
from ..data.protocols.split import as_ascii
from ..runs.auto import read_asked
from ..runs.description import CONFIG, is_head, read_config
from ..runs.split_file import SPLIT, TARGET, describe_split, read_sides
from ..runs.trust import refuse_code

_PLACES = ("source", "target", "target_test", "shots", "source_shots", "unlabelled")
"""Options that say where images are: the split lists them all."""


def why_not(run: Path) -> str | None:
    """Say why a run cannot train again; None if it can."""
    if is_head(run):
        return "a head on features does not train again here: use `sohot fit-features`"
    if not (run / SPLIT).is_file() or not (run / CONFIG).is_file():
        return "the run does not say which images trained it"
    return None


def write_request(run: Path, labelled: LabelledImages, folder: Path, name: str, *, trust: bool = False) -> Path:
    """Write the options for `sohot fit --config`, and the split that they name.

    A test image that has a label now trains, so `sohot fit` leaves it out of the test, and likewise out of the pool.

    Args:
        run: The run whose options and images to take.
        labelled: The labelled images to add to its target images.
        folder: Where to write both files.
        name: Their name.
        trust: Accept options that name a Python file to import.

    Returns:
        The file of the options.

    Raises:
        ValueError: The run cannot train again; the message says why.
    """
    if reason := why_not(run):
        raise ValueError(reason)
    values: dict[str, Any] = read_asked(run) or read_config(run / CONFIG)
    if not trust:
        refuse_code(values, run)
    sides = read_sides(run / SPLIT)
    if TARGET not in sides:
        raise ValueError("the method of this run does not learn from target labels")
    sides[TARGET] = with_labelled(sides[TARGET], labelled)
    split, config = folder / f"{name}.json", folder / f"{name}.toml"
    write_atomically(split, as_ascii(describe_split(labelled.classes, sides)))
    kept = {option: value for option, value in values.items() if option not in _PLACES}
    write_toml(config, {**kept, "split": str(split.absolute())}, f"{run.name}, with labels given in the app")
    return config


def with_labelled(target: LabelledImages, labelled: LabelledImages) -> LabelledImages:
    """Add labelled images to those that trained; of byte-identical ones the new label counts.

    Raises:
        ValueError: The images that trained are not image files.
    """
    if target.reader != "image":
        raise ValueError("the target images of this run are not image files, so no others can be added to them")
    old, new = target.subset(new_rows(target, [labelled])), labelled.with_classes(target.classes)
    added = ("",) * len(new)
    return replace(
        old,
        files=old.files + tuple(file.absolute() for file in new.files),
        labels=old.labels + new.labels,
        parts=old.parts + added if old.parts else (),
        groups=old.groups + added if old.groups else (),
        root=Path(os.path.commonpath([(images.root or Path()).absolute() for images in (old, new)])),
    )
