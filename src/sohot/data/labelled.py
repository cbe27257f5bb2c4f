"""A list of image files with their labels."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .names import enumerate_words, natural_key, printable, relative_name

Progress = Callable[[str, int, int], None]
"""Called with the name of the stage, the number of images (or bytes) done, and the total."""

UNLABELLED = "unlabelled"
"""The one class of images whose classes are not known."""


@dataclass(frozen=True)
class LabelledImages:
    """Image files and their classes, in plain Python values.

    Attributes:
        files: Paths of the images.
        labels: The class of each, an index into `classes`.
        classes: Names of the classes. A class may have no image.
        root: The folder that holds the class folders. Random choices depend on names below it, not on its location.
        parts: The part of each file to use: a box "left,top,right,bottom", the number of an image in a file that holds
            many, or "" for the whole file. Empty, or one for each file.
        groups: What each image shows, where several show the same: views of one object, crops of one photograph. A
            group is never split. Empty, or one for each file; "" for an image that stands alone.
        reader: How the files are read: a name in `readers.READERS`.
        folders: Where the images come from, if not from the folder `root`: the folders and files that were pooled, see
            `pool`, or the file that lists them.

    Example:
        >>> images = LabelledImages([Path("a/1.png"), Path("b/1.png"), Path("b/2.png")], [0, 1, 1], ["a", "b"])
        >>> images.counts()
        [1, 2]
        >>> images.subset([2]).name(0)
        'b/2.png'
        >>> LabelledImages([Path("1.jpg")] * 2, [0, 0], ["mug"], parts=["0,0,9,9", "5,0,14,9"]).name(1)
        '1.jpg#5,0,14,9'
    """

    files: tuple[Path, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    root: Path | None = None
    parts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    reader: str = "image"
    folders: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(file if isinstance(file, Path) else Path(file) for file in self.files))
        object.__setattr__(self, "labels", tuple(int(label) for label in self.labels))
        object.__setattr__(self, "classes", tuple(self.classes))
        if len(self.files) != len(self.labels):
            raise ValueError(f"files and labels must match in number, got {len(self.files)} and {len(self.labels)}")
        for column in ("parts", "groups"):
            object.__setattr__(self, column, tuple(getattr(self, column)))
            if len(getattr(self, column)) not in (0, len(self.files)):
                raise ValueError(f"{column} must be empty or have one entry for each of {len(self.files)} files")
        if len(set(self.classes)) != len(self.classes):
            raise ValueError("classes must not repeat a name")
        wrong = [label for label in self.labels if not 0 <= label < len(self.classes)]
        if wrong:
            raise ValueError(f"labels must lie in 0 … {len(self.classes) - 1}, got {wrong[0]}")

    def __len__(self) -> int:
        return len(self.files)

    def subset(self, rows: Sequence[int]) -> "LabelledImages":
        """Keep some rows, in the given order; the classes do not change."""
        return replace(
            self,
            files=tuple(self.files[row] for row in rows),
            labels=tuple(self.labels[row] for row in rows),
            parts=tuple(self.parts[row] for row in rows) if self.parts else (),
            groups=tuple(self.groups[row] for row in rows) if self.groups else (),
        )

    def counts(self) -> list[int]:
        """Count the images of each class."""
        counts = [0] * len(self.classes)
        for label in self.labels:
            counts[label] += 1
        return counts

    def name(self, row: int) -> str:
        """Name one image by its path below `root`, and its part, the same on every machine."""
        name, part = relative_name(self.files[row], self.root), self.part(row)
        return f"{name}#{part}" if part else name

    def part(self, row: int) -> str:
        """Return the part of the file that a row refers to; "" for the whole file."""
        return self.parts[row] if self.parts else ""

    @property
    def origin(self) -> str:
        """Name the folder, or all folders and files, that the images come from."""
        return enumerate_words(map(printable, self.folders)) if self.folders else printable(self.root or "")

    def with_classes(self, classes: Sequence[str]) -> "LabelledImages":
        """Keep only the images of these classes and number the labels in this order."""
        new_label = {name: label for label, name in enumerate(classes)}
        names = [self.classes[label] for label in self.labels]
        rows = [row for row, name in enumerate(names) if name in new_label]
        labels = tuple(new_label[names[row]] for row in rows)
        return replace(self.subset(rows), labels=labels, classes=tuple(classes))

    def without_labels(self) -> "LabelledImages":
        """Forget the classes: all images are of the one class `UNLABELLED`.

        >>> LabelledImages([Path("b/1.png")], [1], ["a", "b"]).without_labels().labels
        (0,)
        """
        return replace(self, labels=(0,) * len(self), classes=(UNLABELLED,))

    def as_dict(self) -> dict[str, Any]:
        """Return the content as JSON values; `from_dict` reads it back."""
        return {
            "files": [str(file) for file in self.files],
            "labels": list(self.labels),
            "classes": list(self.classes),
            "root": None if self.root is None else str(self.root),
            **({"parts": list(self.parts)} if self.parts else {}),
            **({"groups": list(self.groups)} if self.groups else {}),
            **({"reader": self.reader} if self.reader != "image" else {}),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "LabelledImages":
        """Rebuild the list from the result of `as_dict`."""
        root = content.get("root")
        columns = {name: tuple(content.get(name, ())) for name in ("labels", "classes", "parts", "groups")}
        files = tuple(Path(file) for file in content["files"])
        return cls(files, root=None if root is None else Path(root), reader=content.get("reader", "image"), **columns)


def pool(lists: Sequence[LabelledImages]) -> LabelledImages:
    """Join lists of whole image files; a class may be missing from some of them.

    Names are those below the innermost folder that holds all of them.

    >>> photos = LabelledImages([Path("data/photos/mug/1.png")], [0], ["mug"], Path("data/photos"))
    >>> paintings = LabelledImages([Path("data/art/cup/1.png")], [0], ["cup"], Path("data/art"))
    >>> pooled = pool([photos, paintings])
    >>> pooled.classes, pooled.labels, pooled.name(0)
    (('cup', 'mug'), (1, 0), 'photos/mug/1.png')
    """
    classes = sorted({name for images in lists for name in images.classes}, key=natural_key)
    numbered = {name: label for label, name in enumerate(classes)}
    folders = tuple((images.root or Path()) for images in lists)
    origins = tuple(
        place for images, folder in zip(lists, folders, strict=True) for place in images.folders or [folder]
    )
    return LabelledImages(
        files=tuple(file for images in lists for file in images.files),
        labels=tuple(numbered[images.classes[label]] for images in lists for label in images.labels),
        classes=tuple(classes),
        root=_around(folders),
        folders=origins,
    )


def _around(folders: Sequence[Path]) -> Path | None:
    """Return the innermost folder that holds all of these; None if they are on different drives."""
    try:
        return Path(os.path.commonpath([folder.parent for folder in folders]))
    except ValueError:
        return None
