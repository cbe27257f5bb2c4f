"""The images whose labels the user has given: copies in a folder of one folder per class, ready to train on."""

from collections.abc import Sequence
from pathlib import Path

from .._files import refuse_link, write_atomically
from .._reading import read_regular
from ..data.decode import SUFFIXES
from ..data.labelled import LabelledImages
from .dropped_images import DroppedImage


class LabelledFolder:
    """One folder per class, in a folder that `sohot fit --target` takes as well.

    Args:
        folder: The folder; it need not exist.
        classes: Names of the classes.
    """

    def __init__(self, folder: Path, classes: Sequence[str]) -> None:
        self.folder, self.classes = folder, tuple(classes)
        self._files = self._read()

    def _read(self) -> dict[str, Path]:
        """Find the labelled images by the keys that are their names."""
        refuse_link(self.folder)
        places = [refuse_link(self._place(name)) for name in self.classes]
        files = [file for place in places if place.is_dir() for file in sorted(place.iterdir())]
        return {file.stem: file for file in files if file.suffix in SUFFIXES and not file.is_symlink()}

    def _place(self, name: str) -> Path:
        """Return the folder of a class; a name that cannot be one (a list of images may give it) is numbered."""
        plain = name == Path(name).name and not name.startswith(".") and "\0" not in name
        return self.folder / (name if plain else f"class {self.classes.index(name) + 1}")

    def label(self, key: str) -> str | None:
        """Return the class of an image; None if it has no label."""
        file = self._files.get(key)
        return None if file is None else next(name for name in self.classes if self._place(name) == file.parent)

    def give(self, image: DroppedImage, name: str) -> None:
        """Label an image, or change its label.

        Raises:
            ValueError: There is no such class.
        """
        if name not in self.classes:
            raise ValueError(f"{name!r} is not a class of the run")
        place = refuse_link(self._place(name))
        place.mkdir(parents=True, exist_ok=True)
        file = place / image.file.name
        write_atomically(file, read_regular(image.file))
        before, self._files[image.key] = self._files.get(image.key), file
        if before not in (None, file):
            before.unlink(missing_ok=True)

    def take_back(self, key: str) -> None:
        """Remove the label of an image, if it has one, and its copy."""
        if (file := self._files.pop(key, None)) is not None:
            file.unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self._files)

    def counts(self) -> dict[str, int]:
        """Count the labelled images of each class that has any."""
        images = self.images()
        counted = zip(images.classes, images.counts(), strict=True)
        return {name: count for name, count in counted if count}

    def images(self) -> LabelledImages:
        """Return the labelled images."""
        labels = [self.classes.index(str(self.label(key))) for key in self._files]
        return LabelledImages(tuple(self._files.values()), tuple(labels), self.classes, self.folder)
