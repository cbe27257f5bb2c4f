"""A list of image files with their labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .names import relative_name


@dataclass(frozen=True)
class LabelledImages:
    """Image files and their classes, in plain Python values.

    Attributes:
        files: Where the images lie.
        labels: The class of each, an index into `classes`.
        classes: Names of the classes. A class may have no image.
        root: The folder that holds the class folders; what is random depends on names below it, not on where it lies.

    Example:
        >>> images = LabelledImages([Path("a/1.png"), Path("b/1.png"), Path("b/2.png")], [0, 1, 1], ["a", "b"])
        >>> images.counts()
        [1, 2]
        >>> images.subset([2]).name(0)
        'b/2.png'
    """

    files: tuple[Path, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    root: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(Path(file) for file in self.files))
        object.__setattr__(self, "labels", tuple(int(label) for label in self.labels))
        object.__setattr__(self, "classes", tuple(self.classes))
        if len(self.files) != len(self.labels):
            raise ValueError(f"files and labels must go together, got {len(self.files)} and {len(self.labels)}")
        if len(set(self.classes)) != len(self.classes):
            raise ValueError("classes must not repeat a name")
        wrong = [label for label in self.labels if not 0 <= label < len(self.classes)]
        if wrong:
            raise ValueError(f"labels must lie in 0 … {len(self.classes) - 1}, got {wrong[0]}")

    def __len__(self) -> int:
        return len(self.files)

    def subset(self, rows: Sequence[int]) -> "LabelledImages":
        """Keep some rows, in the order given; the classes stay."""
        return LabelledImages(
            tuple(self.files[row] for row in rows), tuple(self.labels[row] for row in rows), self.classes, self.root
        )

    def counts(self) -> list[int]:
        """Count the images of each class."""
        counts = [0] * len(self.classes)
        for label in self.labels:
            counts[label] += 1
        return counts

    def name(self, row: int) -> str:
        """Name one image by its path below `root`, spelled alike on every machine."""
        return relative_name(self.files[row], self.root)

    def with_classes(self, classes: Sequence[str]) -> "LabelledImages":
        """Keep the images of these classes alone and number the labels in this order."""
        new_label = {name: label for label, name in enumerate(classes)}
        names = [self.classes[label] for label in self.labels]
        rows = [row for row, name in enumerate(names) if name in new_label]
        labels = tuple(new_label[names[row]] for row in rows)
        return LabelledImages(tuple(self.files[row] for row in rows), labels, tuple(classes), self.root)

    def as_dict(self) -> dict[str, Any]:
        """Give the content as JSON holds it; `from_dict` reads it back."""
        return {
            "files": [str(file) for file in self.files],
            "labels": list(self.labels),
            "classes": list(self.classes),
            "root": None if self.root is None else str(self.root),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "LabelledImages":
        """Rebuild the list from what `as_dict` gave."""
        root = content.get("root")
        files = tuple(Path(file) for file in content["files"])
        return cls(files, tuple(content["labels"]), tuple(content["classes"]), None if root is None else Path(root))
