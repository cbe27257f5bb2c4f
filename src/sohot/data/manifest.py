"""A list of images, a file of paths and labels, taken wherever a folder is: its rows become labelled images."""

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .decode import system_reason
from .folders import FolderScan, keep_readable
from .labelled import LabelledImages
from .manifest_rows import LABEL, PATH, Row, place_of, quoted, read_rows, wrong
from .names import natural_key, printable


class MissingLabels(ValueError):  # noqa: N818 - it is the list that is at fault
    """Some rows of a list have no label, or no domain, where each needs one."""


@dataclass(frozen=True)
class Manifest:
    """A list that was read, in its order.

    Attributes:
        file: The list.
        rows: Its rows.
        files: The image that each row names; all of them are files.
        root: The list's own folder, or, if an image lies elsewhere, the innermost folder that holds all images.
    """

    file: Path
    rows: tuple[Row, ...]
    files: tuple[Path, ...]
    root: Path

    @property
    def unlabelled(self) -> list[int]:
        """The rows without a label."""
        return [place for place, row in enumerate(self.rows) if not row.label]

    def labelled_images(self, *, partly: bool = False) -> LabelledImages:
        """Return the images with their labels, in the order of a folder: by class, then by name.

        Args:
            partly: Take the rows that have a label, instead of requiring one in each row.

        Raises:
            MissingLabels: A row has none, or no row has one.
        """
        if not (partly and len(self.unlabelled) < len(self.rows)):
            self.require(LABEL)
        return self.images_of([place for place, row in enumerate(self.rows) if row.label])

    def require(self, column: str) -> None:
        """Require a value in each row of a column.

        Raises:
            MissingLabels: A row has none.
        """
        if missing := [row.number for row in self.rows if not getattr(row, column)]:
            raise MissingLabels(
                f"{printable(self.file)}: {len(missing)} of {len(self.rows)} rows have no {column}, the first in "
                f"{place_of(self.file, missing[0])}; fill them in, or remove these rows"
            )

    def images_of(self, places: Sequence[int]) -> LabelledImages:
        """Return the images of some rows, by class, then by name."""
        classes = sorted({self.rows[place].label or "" for place in places}, key=natural_key)
        number = {name: label for label, name in enumerate(classes)}
        labels = {place: number[self.rows[place].label or ""] for place in places}
        ordered = sorted(places, key=lambda place: (labels[place], natural_key(str(self.files[place]))))
        files = tuple(self.files[place] for place in ordered)
        return LabelledImages(
            files, tuple(labels[place] for place in ordered), tuple(classes), self.root, folders=(self.file,)
        )

    def unlabelled_images(self, *, partly: bool = False) -> LabelledImages:
        """Return the images without their labels, in the order of a folder: its images, then those of its folders.

        Args:
            partly: Leave out rows that have a label, unless all have one.
        """
        places = (partly and self.unlabelled) or range(len(self.rows))
        outer = cache(_folders_key)
        files = sorted(
            (self.files[place] for place in places),
            key=lambda file: [*outer(file.parent), (False, natural_key(file.name))],  # images come before folders
        )
        images = LabelledImages(tuple(files), (0,) * len(files), ("",), self.root, folders=(self.file,))
        return images.without_labels()


def read_manifest(file: Path, needed: Sequence[str] = (PATH,)) -> Manifest:
    """Read a list of images, and require that there are such files; folders are listed, files are not opened.

    Args:
        file: The list.
        needed: The columns that it must have.

    Raises:
        FileNotFoundError: There is no such list.
        ModuleNotFoundError: It is a Parquet file, and nothing that reads those is installed.
        ValueError: A line is wrong, or there is none; the message says which and why.
    """
    rows = tuple(read_rows(file, needed))
    if not rows:
        raise ValueError(f"the list {printable(file)} names no images")
    paths = _paths(file, rows)
    _refuse_twice(file, rows, paths)
    _require_files(file, rows, paths)
    return Manifest(file, rows, tuple(map(Path, paths)), _root(file, rows, paths))


def scan_manifest(
    file: Path,
    *,
    labelled: bool = True,
    partly: bool = False,
    check: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> FolderScan:
    """Find the images of a list as `scan_folder` finds those of a folder.

    Args:
        file: The list.
        labelled: Read labels; otherwise all images are of one class, "unlabelled".
        partly: Take the rows that have a label, or have none, of a list that has both: see `Manifest`.
        check: Decode every image, in threads, and leave out those that cannot be read.
        on_progress: Called from this thread with the number of images checked and the total.
        workers: Number of threads; None for one per processor, at most 8.
    """
    manifest = read_manifest(file, (PATH, LABEL) if labelled else (PATH,))
    images = manifest.labelled_images(partly=partly) if labelled else manifest.unlabelled_images(partly=partly)
    found = FolderScan(images, [])
    return keep_readable(found, on_progress=on_progress, workers=workers) if check else found


def _folders_key(folder: Path) -> list[tuple[bool, tuple[list[str | int], str]]]:
    return [(True, natural_key(part)) for part in folder.parts]


def _base(file: Path, rows: Sequence[Row]) -> str:
    """Return the list's folder; absolute, if a row's path is, or leads out of that folder."""
    leaves = any(os.path.isabs(row.path) or os.path.normpath(row.path).startswith(os.pardir) for row in rows)
    return os.path.abspath(file.parent) if leaves else os.fspath(file.parent)


def _paths(file: Path, rows: Sequence[Row]) -> list[str]:
    """Return the path of each row's file: below the list's folder, or absolute."""
    base, paths = _base(file, rows), []
    for row in rows:
        if not row.path:
            raise wrong(file, row.number, "the path is empty")
        if "\0" in row.path or "\0" in (row.label or ""):
            raise wrong(file, row.number, "a null character is in it")
        path = os.path.normpath(row.path)
        leaves = path.startswith(os.pardir)
        paths.append(os.path.normpath(os.path.join(base, path)) if leaves else os.path.join(base, path))
    return paths


def _refuse_twice(file: Path, rows: Sequence[Row], paths: Sequence[str]) -> None:
    seen: dict[str, Row] = {}
    for row, path in zip(rows, paths, strict=True):
        if (first := seen.setdefault(path, row)) is not row:
            raise wrong(file, row.number, f"{quoted(row.path)} is in {place_of(file, first.number)} already")


def _require_files(file: Path, rows: Sequence[Row], paths: Sequence[str]) -> None:
    """Require that each path is a file. Each folder is listed once, so no file is looked up by itself."""
    listed = cache(_files_in)
    faults = []
    for row, path in zip(rows, paths, strict=True):
        folder, name = os.path.split(path)
        if name not in listed(folder) and (reason := _why_no_file(path)) is not None:
            faults.append((row, reason))
    if faults:
        (row, reason), more = faults[0], len(faults) - 1
        others = f" ({more} other {'row is' if more == 1 else 'rows are'} wrong like this)" if more else ""
        raise wrong(file, row.number, f"{quoted(row.path)} {reason}{others}")


def _files_in(folder: str) -> frozenset[str]:
    try:
        with os.scandir(folder or os.curdir) as entries:
            return frozenset(entry.name for entry in entries if entry.is_file())
    except (OSError, UnicodeEncodeError):  # it may be closed, and the file in it open; others are explained later
        return frozenset()


def _why_no_file(path: str) -> str | None:
    """Say why a path is not a file; None if it is, under a spelling that the system takes for the same."""
    try:
        mode = os.stat(path).st_mode
    except UnicodeEncodeError:
        return "is no name that this system can store"
    except OSError as error:
        hint = "; write / between folders" if "\\" in path and os.sep == "/" else ""
        return f"cannot be found: {system_reason(error)}{hint}"
    if stat.S_ISDIR(mode):
        return "is a folder: name each image in it"
    return None if stat.S_ISREG(mode) else "is a pipe or a device, not a file"


def _root(file: Path, rows: Sequence[Row], paths: Sequence[str]) -> Path:
    base = _base(file, rows)
    below = os.path.join(base, "")
    if all(path.startswith(below) for path in paths):
        return Path(base)
    try:
        return Path(os.path.commonpath([os.path.dirname(path) for path in paths]))
    except ValueError:
        raise ValueError(f"the images of {printable(file)} lie on different drives") from None
