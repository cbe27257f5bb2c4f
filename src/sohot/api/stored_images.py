"""Images given in Python, as files: those in memory are written once, and a list names all with their labels."""

import csv
import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

from .._files import write_bytes
from .._new_folder import building
from ..data.decode import SUFFIXES
from ..data.manifest_rows import is_manifest
from ..data.names import printable
from ..training.errors import ChangedRun
from .given_images import Images, is_dataset, is_table, labelled_pairs
from .pictures import file_content, is_path, path_in

INPUTS = "inputs"
"""The folder of a run that holds the images given in Python."""
LISTED = "images.csv"

Places = Any
"""A folder or a list, as `RunConfig` takes it, or several; None for none."""


class StoredImages:
    """A folder for the images given in Python, one folder each for source, target and so on.

    Images that are files stay where they are; those in memory become files here. What is there already is compared, and
    never changed: a run that is resumed finds the images that it began with.

    Args:
        folder: The folder; made if something is to be stored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stored: dict[tuple[int, bool], Path] = {}
        self._new: list[Path] = []

    def places(self, given: Images | None, role: str, *, labelled: bool = True) -> Places:
        """Return where images are, in the words of the command line: folders and lists as they are, or a new list.

        Args:
            given: The images, see `sohot.api.given_images.TAKEN`, or a list of folders, lists, tables and data sets.
            role: What messages and the new folder call them: source, target, …
            labelled: Require a label for each image.
        """
        if given is None or is_path(given):
            return given
        if isinstance(given, (list, tuple)) and given and all(map(_is_set, given)):
            named = enumerate(given, start=1)
            return [one if is_path(one) else self._list(one, f"{role}-{number}", labelled) for number, one in named]
        return self._list(given, role, labelled)

    def _list(self, given: Any, role: str, labelled: bool) -> Path:
        key = id(given), labelled  # what is given twice, as target and as unlabelled, is one list
        if key not in self._stored:
            self._stored[key] = self._store(given, role, labelled)
        return self._stored[key]

    def _store(self, given: Any, role: str, labelled: bool) -> Path:
        folder = self.folder / role.replace("_", "-")
        if (folder / LISTED).is_file():
            if _list_text(given, role, labelled, None) != (folder / LISTED).read_bytes():
                raise ChangedRun(f"{role} is not what {folder.parent} holds of a run that was begun: give another out")
            return folder / LISTED
        self.folder.mkdir(parents=True, exist_ok=True)
        with building(folder) as draft:
            write_bytes(draft / LISTED, _list_text(given, role, labelled, draft))
        self._new.append(folder)
        return folder / LISTED

    def discard(self) -> None:
        """Remove what was stored here, and nothing else."""
        for folder in self._new:
            rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            self.folder.rmdir()  # only if it is empty


class ImageFile(NamedTuple):
    """The file of an image: the path that was given, or the name under which it is stored; and its label."""

    file: Path
    label: str
    stored: bool


def files_of(given: Any, role: str, scratch: Path | None) -> Iterator[ImageFile]:
    """Yield the file of each image.

    Args:
        given: The images.
        role: What messages call them.
        scratch: Where to write those in memory, under names that tell number and content; None to write nothing.

    Raises:
        FileNotFoundError: A path names no file.
    """
    for number, (image, label) in enumerate(labelled_pairs(given, role), start=1):
        if (path := path_in(image)) is not None:
            if not path.is_file():
                what = "is not a file" if path.exists() else "there is no such file"
                raise FileNotFoundError(f"{role}: {printable(path)}: {what}")
            yield ImageFile(path, label, stored=False)
            continue
        try:
            suffix, content = file_content(image)
        except ValueError as error:
            raise ValueError(f"{role}, image {number}: {error}") from None
        name = f"{number:06d}-{hashlib.sha256(content).hexdigest()[:12]}{suffix}"
        if scratch is not None:
            write_bytes(scratch / name, content)
        yield ImageFile(Path(name), label, stored=True)


def _list_text(given: Any, role: str, labelled: bool, scratch: Path | None) -> bytes:
    """Write the list of images as CSV."""
    files = files_of(given, role, scratch)
    rows = [(str(one.file) if one.stored else os.path.abspath(one.file), one.label) for one in files]
    if not rows:
        raise ValueError(f"{role} holds no images")
    if missing := sum(not label for _, label in rows) if labelled else 0:
        raise ValueError(
            f"{role}: {missing} of {len(rows)} images have no label: give a pair (images, labels) or a list of "
            "(image, label)"
        )
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows([("path", "label"), *rows])
    try:
        return stream.getvalue().encode()
    except UnicodeEncodeError:
        raise ValueError(f"{role}: the name of a file or a label is not UTF-8") from None


def _is_set(given: Any) -> bool:
    """Tell whether something is a whole set of images; a path is one, unless it is that of an image."""
    if is_path(given):
        return is_manifest(given) or not (os.path.isfile(given) or Path(given).suffix.lower() in SUFFIXES)
    return is_table(given) or is_dataset(given)
