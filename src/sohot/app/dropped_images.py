"""Images that the user dropped on the page: checked, limited, and stored under names of our own."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from .._files import refuse_link, write_atomically, write_json
from .._reading import read_json
from ..data.decode import UnreadableImage, opened, read_image
from ..data.labelled import UNLABELLED, LabelledImages
from ..data.names import printable, visible

MOST_IMAGES = 500
MOST_BYTES = 25 << 20
"""The largest file."""
MOST_TOGETHER = 1 << 30
"""Bytes of all files together."""
LONGEST_NAME = 200
LIST = "dropped.json"

_SUFFIXES = {"JPEG2000": ".jp2", "MPO": ".jpg"}
"""Of formats that are not called as their files are; an MPO is a JPEG with more pictures behind the first."""


class Unknown(LookupError):  # noqa: N818 - it is what is asked for that is at fault
    """The page asks for something that is not there."""


class TooMuch(ValueError):  # noqa: N818 - it names what happened
    """A file is too large, or there are too many."""


@dataclass(frozen=True)
class DroppedImage:
    """An image.

    Attributes:
        key: Names it in addresses: the beginning of the hash of its bytes.
        name: What the user called it; only ever shown.
        file: Where it is stored.
    """

    key: str
    name: str
    file: Path


class DroppedImages:
    """The images in a folder, and the list of their names beside it.

    Args:
        folder: The app's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = refuse_link(folder / "dropped")
        self._list = folder / LIST
        self._images = self._read()

    def _read(self) -> dict[str, DroppedImage]:
        """Read the list; an image that is no longer there is forgotten."""
        if not (self._list.is_file() and self.folder.is_dir()):
            return {}
        listed = read_json(self._list)
        there = {file.stem: file for file in self.folder.iterdir() if file.is_file() and not file.is_symlink()}
        if not isinstance(listed, dict) or not all(isinstance(name, str) for name in listed.values()):
            raise ValueError(f"{self._list} is damaged: remove it")
        return {key: DroppedImage(key, name, there[key]) for key, name in listed.items() if key in there}

    def __len__(self) -> int:
        return len(self._images)

    def all(self) -> list[DroppedImage]:
        """Return the images in the order in which they came."""
        return list(self._images.values())

    def find(self, key: str) -> DroppedImage:
        """Look up an image.

        Raises:
            Unknown: There is none of this key.
        """
        if key not in self._images:
            raise Unknown("there is no such image: it was removed")
        return self._images[key]

    def add(self, name: str, content: bytes) -> DroppedImage:
        """Store an image; one that is there already keeps its name.

        Args:
            name: What the user calls it; it decides nothing.
            content: The bytes of the file.

        Raises:
            TooMuch: A limit is reached.
            UnreadableImage: It is not an image that can be read.
        """
        key = hashlib.sha256(content).hexdigest()[:32]
        if key in self._images:
            return self._images[key]
        self._check_room(len(content))
        shown = shown_name(name)
        self.folder.mkdir(exist_ok=True)
        bare = self.folder / key
        write_atomically(bare, content)
        try:
            read_image(bare)
            with opened(bare) as image:
                kind = str(image.format)
        except UnreadableImage as error:
            bare.unlink()
            raise UnreadableImage(shown, error.reason) from None
        suffix = _SUFFIXES.get(kind, f".{kind.lower()}")
        self._images[key] = DroppedImage(key, shown, bare.rename(bare.with_suffix(suffix)))
        self._store()
        return self._images[key]

    def _check_room(self, size: int) -> None:
        if size > MOST_BYTES:
            raise TooMuch(f"the file is larger than {MOST_BYTES >> 20} MB")
        if len(self) >= MOST_IMAGES:
            raise TooMuch(f"there are {MOST_IMAGES} images already: remove some")
        if size + sum(image.file.stat().st_size for image in self.all()) > MOST_TOGETHER:
            raise TooMuch(f"all images together would take more than {MOST_TOGETHER >> 20} MB: remove some")

    def remove(self, keys: Collection[str]) -> None:
        """Forget images and delete their files."""
        for key in keys:
            self.find(key).file.unlink(missing_ok=True)
            del self._images[key]
        self._store()

    def _store(self) -> None:
        write_json(self._list, {image.key: image.name for image in self.all()})


def shown_name(name: str) -> str:
    r"""Return the name of a file as it may be shown: control characters become escapes, and it is not too long.

    >>> shown_name("../<b>\x1b.png")
    '../<b>\\u001b.png'
    """
    return visible(printable(name[:LONGEST_NAME])) or "unnamed"


def as_list(files: Collection[Path]) -> LabelledImages:
    """Return image files as a list without labels."""
    return LabelledImages(tuple(files), (0,) * len(files), (UNLABELLED,))
