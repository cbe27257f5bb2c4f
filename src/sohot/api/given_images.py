"""The kinds of image sets that Python programs hold, each as pairs of image and label in its order."""

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Protocol, TypeAlias

from PIL import Image

from ..data.manifest_rows import SUFFIXES
from ..data.names import enumerate_words
from .pictures import is_array, is_one_picture, path_in


class Indexed(Protocol):
    """What has parts: lists, tuples, arrays, tables, data sets."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return a part."""


Images: TypeAlias = str | os.PathLike[str] | Image.Image | Indexed
"""What is taken for images: `TAKEN` says it in words."""

TAKEN = (
    f"a folder, a list ({', '.join(SUFFIXES)}), a pair (images, labels), a sequence of (image, label), a DataFrame "
    "or a Hugging Face Dataset with the columns path or image and label, or a torch Dataset of (image, label); "
    "an image is a path, a Pillow image or an array"
)


def is_table(given: Any) -> bool:
    """Tell whether an object has named columns: a DataFrame or a Hugging Face Dataset."""
    return hasattr(given, "columns") or (hasattr(given, "column_names") and hasattr(given, "features"))


def is_dataset(given: Any) -> bool:
    """Tell whether an object is a torch Dataset that knows its length."""
    data = sys.modules.get("torch.utils.data")  # if it is not imported, nobody has one
    return data is not None and isinstance(given, data.Dataset) and hasattr(given, "__len__")


def labelled_pairs(given: Any, role: str) -> Iterator[tuple[Any, str]]:
    """Yield each image with its label, "" if it has none, in the order they were given.

    Args:
        given: What `TAKEN` says, other than a folder or a list.
        role: What messages call it.

    Raises:
        TypeError: It is of another kind, or a label is.
        ValueError: A column is missing, or images and labels are not equally many.

    Example:
        >>> list(labelled_pairs((["a.png", "b.png"], [1, None]), "source"))
        [('a.png', '1'), ('b.png', '')]
    """
    if is_table(given):
        pairs, names = _of_table(given, role), _label_names(given)
    elif is_dataset(given):
        pairs, names = (_pair(given[row]) for row in range(len(given))), _class_names(given)
    elif is_one_picture(given):
        pairs, names = iter([(given, None)]), None
    elif isinstance(given, tuple) and len(given) == 2 and _is_column(given[0]) and _is_labels(given[1]):
        pairs, names = _side_by_side(*given, role), None
    elif isinstance(given, (list, tuple)) or (is_array(given) and len(given.shape) in (1, 3, 4)):
        pairs, names = (_pair(one) for one in given), None
    elif isinstance(given, Mapping) and given and all(map(is_table, given.values())):
        raise TypeError(f"{role} must be one data set: choose a split, such as {next(iter(given))!r}")
    else:
        raise TypeError(f"{role} must be {TAKEN}; got {type(given).__name__}")
    for image, label in pairs:
        if path_in(image) is None and not is_one_picture(image) and not is_array(image):
            raise TypeError(f"{role} must be {TAKEN}; got one that holds {type(image).__name__}")
        yield image, _label_text(label, names, role)


def _pair(item: Any) -> tuple[Any, Any]:
    """Take an item apart; without a label it is the image itself."""
    if isinstance(item, (tuple, list)) and len(item) == 2:
        return item[0], item[1]
    return item, None


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (hasattr(value, "shape") and not is_one_picture(value))


def _is_labels(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or len(getattr(value, "shape", ())) == 1


def _side_by_side(images: Any, labels: Any, role: str) -> Iterator[tuple[Any, Any]]:
    if len(images) != len(labels):
        raise ValueError(f"{role} has {len(images)} images, but {len(labels)} labels")
    return zip(images, labels, strict=True)


def _of_table(table: Any, role: str) -> Iterator[tuple[Any, Any]]:
    hub = hasattr(table, "column_names")  # of Hugging Face, where a path beside the image may lead nowhere
    columns = list(map(str, table.column_names if hub else table.columns))
    image = next(
        (name for name in (("image", "path", "file") if hub else ("path", "file", "image")) if name in columns), None
    )
    if image is None:
        raise ValueError(
            f"{role} needs a column 'path' or 'image': the columns are {enumerate_words(map(repr, columns)) or 'none'}"
        )
    if hub:  # row by row: its images are decoded when they are asked for
        return ((row[image], row.get("label")) for row in table)
    labels = table["label"].to_list() if "label" in columns else []
    return zip_longest(table[image].to_list(), labels)


def _label_names(table: Any) -> Sequence[str] | None:
    """Return the names of the classes of a Hugging Face Dataset whose labels are numbers of classes."""
    features = getattr(table, "features", None)
    return getattr(features["label"], "names", None) if features and "label" in features else None


def _class_names(dataset: Any) -> Sequence[str] | None:
    """Return the names of the classes of a torch Dataset, also through subsets of it."""
    while not hasattr(dataset, "classes") and hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    names = getattr(dataset, "classes", None)
    return names if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names) else None


def _label_text(label: Any, names: Sequence[str] | None, role: str) -> str:
    """Return a label as text; "" for none: None, NaN, and −1 where numbers stand for named classes."""
    if hasattr(label, "item"):  # of numpy or torch
        label = label.item()
    if isinstance(label, str):
        return label.strip()
    if label is None or type(label).__name__ in ("NAType", "NaTType") or (label != label):
        return ""
    if (
        isinstance(label, bool)
        or not isinstance(label, (int, float))
        or not math.isfinite(label)
        or label != int(label)
    ):
        raise TypeError(f"each label of {role} must be text or a whole number, got {label!r}")
    number = int(label)  # a column of whole numbers with gaps holds floats
    if names is None:
        return str(number)
    if not -1 <= number < len(names):
        raise ValueError(f"{role} has the label {number}, but names of {len(names)} classes")
    return names[number] if number >= 0 else ""
