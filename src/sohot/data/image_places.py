"""Where images are: a folder, or a file that lists them. Whatever takes one of them takes the other."""

from collections.abc import Callable
from pathlib import Path

from .folders import FolderScan, scan_folder
from .manifest import read_manifest, scan_manifest
from .manifest_rows import SUFFIXES, is_manifest
from .names import printable
from .unlabelled import scan_unlabelled


def scan_images(
    place: Path,
    *,
    labelled: bool = True,
    partly: bool = False,
    check: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> FolderScan:
    r"""Find the images of a place: a folder, see `scan_folder` and `scan_unlabelled`, or a list, see `scan_manifest`.

    Args:
        place: The folder or the list.
        labelled: Read the classes; otherwise all images are of one class, "unlabelled".
        partly: Of a list where some rows have a label and some have none, take those with one, if `labelled`, or those
            without. Otherwise all rows are taken, and each needs a label, if `labelled`.
        check: Decode every image, and leave out those that cannot be read.
        on_progress: Called from this thread with the number of images checked and the total.
        workers: Number of threads; None for one per processor, at most 8.

    Raises:
        FileNotFoundError: There is no such folder or list.
        NotADirectoryError: It is a file of another kind.
        ValueError: It is wrong in itself; the message says what is.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     for name in ("1.png", "2.png"):
        ...         Path(folder, name).touch()
        ...     _ = Path(folder, "list.csv").write_text("path,label\n2.png,pen\n1.png,mug\n")
        ...     images = scan_images(Path(folder, "list.csv"), check=False).images
        >>> [images.name(row) for row in range(len(images))], images.classes
        (['1.png', '2.png'], ('mug', 'pen'))
    """
    if is_manifest(place):
        return scan_manifest(
            place, labelled=labelled, partly=partly, check=check, on_progress=on_progress, workers=workers
        )
    if place.is_file():
        raise NotADirectoryError(f"{printable(place)} is not a folder or a list of images ({', '.join(SUFFIXES)})")
    scan = scan_folder if labelled else scan_unlabelled
    return scan(place, check=check, on_progress=on_progress, workers=workers)


def folder_of(place: Path) -> Path:
    """Return the folder below which the images of a place are named: itself, or that of a list's images."""
    return read_manifest(place).root if is_manifest(place) else place
