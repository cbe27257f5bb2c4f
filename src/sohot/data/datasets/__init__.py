"""The data sets of this field, read from their official releases."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from ...functional.plain_checks import check_choice
from .class_table import ClassTable, read_class_table
from .dataset import DataSet
from .digit_files import open_digits
from .domains import KNOWN, open_domains, open_office31
from .rgbd_caltech import open_rgbd_caltech
from .voc_sketches import open_voc_sketches

__all__ = ["ClassTable", "DataSet", "dataset_names", "open_dataset", "read_class_table"]


_OPENERS: Mapping[str, Callable[..., DataSet]] = {
    "office31": open_office31,
    "rgbd-caltech": open_rgbd_caltech,
    "voc-sketches": open_voc_sketches,
    "digits": open_digits,
    **{name: partial(open_domains, name=name) for name in KNOWN},
}


def dataset_names() -> list[str]:
    """List the names of the data sets.

    >>> dataset_names()
    ['office31', 'rgbd-caltech', 'voc-sketches', 'digits', 'domains', 'office-home', 'pacs']
    """
    return list(_OPENERS)


def open_dataset(
    name: str, root: str | os.PathLike[str], *, classes: ClassTable | None = None, **options: Any
) -> DataSet:
    """Read a data set from the unpacked folder of its official release. Images are not decoded.

    Args:
        name: One of `dataset_names()`.
        root: The folder.
        classes: A class table that replaces the data set's own; see `read_class_table`.
        options: Options of the data set: `whole`, `difficult`, `truncated` for voc-sketches, `part` for digits.

    Raises:
        FileNotFoundError: The folder is missing or does not contain the data set.
        ValueError: There is no such data set or option, or the folder has the wrong layout.
    """
    check_choice(name, tuple(_OPENERS), "the name of a data set")
    opener = _OPENERS[name]
    offered = [each.name for each in signature(opener).parameters.values() if each.kind is Parameter.KEYWORD_ONLY]
    for option in options:
        if option not in offered or option == "name":
            own = [each for each in offered if each != "name"]
            raise ValueError(f"{name} has no option {option!r}; it has {', '.join(own) if own else 'none'}")
    return opener(Path(root), classes, **options)
