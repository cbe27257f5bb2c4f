"""Images without labels: all that lie below a folder, and their halves, drawn without a look at any label."""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from .contents import content_keys
from .folders import FolderScan, LeftOut, Walk, unreadable
from .labelled import LabelledImages
from .names import printable


def scan_unlabelled(
    root: str | os.PathLike[str],
    *,
    check: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> FolderScan:
    """Find all images below a folder, whatever its folders mean; `scan_folder` explains the arguments.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: No image in it can be read.
    """
    folder = Path(root)
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder {printable(folder)} does not exist")
    walked = Walk(folder)
    files = tuple(_below(walked, folder))
    if not files:
        raise ValueError(walked.reasons.get(folder) or f"{printable(folder)} holds no images")
    images = LabelledImages(files, (0,) * len(files), ("",), folder).without_labels()
    if not check:
        return FolderScan(images, walked.left_out)
    broken = unreadable(images, on_progress=on_progress, workers=workers)
    if len(broken) == len(files):
        raise ValueError(f"none of the {len(files)} images in {printable(folder)} can be read; the first: {broken[0]}")
    readable = images.subset([row for row in range(len(images)) if row not in broken])
    return FolderScan(readable, walked.left_out + [LeftOut(files[row], broken[row]) for row in sorted(broken)])


def _below(walked: Walk, folder: Path) -> Iterator[Path]:
    """List the images of a folder, then those of the folders in it; links are followed, but never in a circle."""
    if walked.enter(folder):
        folders, files = walked.entries(folder)
        yield from files
        for inner in folders:
            yield from _below(walked, inner)


def halve(images: LabelledImages, seed: int) -> tuple[LabelledImages, LabelledImages]:
    """Divide images into two halves at random; copies of one image, and images of one group, stay together.

    The order is that of a hash of the seed and the name, so the halves depend neither on labels nor on the machine.

    Args:
        images: The images; their labels are not read.
        seed: Any integer; another seed gives other halves.

    Returns:
        Both halves, in the order of `images`; the first has as many images as the second, or a few more.

    Example:
        >>> first, second = halve(LabelledImages([], [], ["mug"]), seed=0)
        >>> len(first), len(second)
        (0, 0)
    """
    drawn = sorted(_bound_together(images), key=lambda rows: _draw(images, rows[0], seed))
    first: set[int] = set()
    for rows in drawn:
        if 2 * len(first) >= len(images):
            break
        first.update(rows)
    everyone = range(len(images))
    return images.subset([row for row in everyone if row in first]), images.subset(
        [row for row in everyone if row not in first]
    )


def _bound_together(images: LabelledImages) -> list[list[int]]:
    """List the rows that must not be separated, each row in one list."""
    lists = {row: [row] for row in range(len(images))}
    for column in (content_keys([images])[0], images.groups):
        first: dict[str, int] = {}
        for row, sign in enumerate(column):
            mate = first.setdefault(sign, row) if sign else row
            if lists[mate] is not lists[row]:
                lists[mate].extend(lists[row])
                lists.update(dict.fromkeys(lists[row], lists[mate]))
    return [rows for row, rows in lists.items() if rows[0] == row]


def _draw(images: LabelledImages, row: int, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\0{images.name(row)}".encode()).digest()
