"""Two folders of images as labelled lists over the same classes."""

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .decode import UnreadableImage
from .labelled import LabelledImages
from .names import enumerate_words, natural_key, printable
from .readers import read_item
from .walk import LeftOut, walk
from .workers import default_workers

CHECK_SIDE = 32
"""A JPEG is checked at this size: all of its bytes are read, few pixels are computed."""


@dataclass(frozen=True)
class FolderScan:
    """What a folder holds: its images, and what was left out and why."""

    images: LabelledImages
    left_out: list[LeftOut]


class ClassMismatchError(ValueError):
    """Two domains do not have the same classes: `source_only` and `target_only` name the difference."""

    def __init__(self, message: str, source_only: list[str], target_only: list[str]) -> None:
        super().__init__(message)
        self.source_only = source_only
        self.target_only = target_only


def scan_folder(
    root: str | os.PathLike[str],
    *,
    check: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> FolderScan:
    """Find the labelled images below a folder: one folder per class, further folders inside it as one likes.

    A level `images/` between the root and the class folders is accepted. Names are sorted as people do, the same on
    every machine. Hidden files and files that are no images are passed over.

    Args:
        root: The folder.
        check: Decode every image, in threads, and leave out those that cannot be read.
        on_progress: Called with the number of images checked and of all, from this thread.
        workers: Number of threads; None for one per processor, at most 8.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: It is empty, has no class folders, or a class has no image that can be read.
    """
    found = walk(Path(root))
    classes = sorted(found.classes, key=natural_key)
    files = [file for name in classes for file in found.classes[name]]
    labels = [label for label, name in enumerate(classes) for _ in found.classes[name]]
    images = LabelledImages(tuple(files), tuple(labels), tuple(classes), found.root)
    if not check:
        return FolderScan(images, found.left_out)
    broken = unreadable(images, on_progress=on_progress, workers=workers)
    readable = images.subset([row for row in range(len(images)) if row not in broken])
    _check_no_class_lost(images, readable, broken)
    return FolderScan(readable, found.left_out + [LeftOut(files[row], broken[row]) for row in sorted(broken)])


def common_classes(
    source: LabelledImages, target: LabelledImages, leave_out: bool = False
) -> tuple[LabelledImages, LabelledImages]:
    """Bring two domains to the same classes, with the same numbers.

    Args:
        source: Images of the source domain.
        target: Images of the target domain.
        leave_out: Leave out the classes that only one domain has, instead of refusing.

    Raises:
        ClassMismatchError: A class is missing from one domain and `leave_out` is false, or no class is shared.
    """
    in_source, in_target = (
        {name for name, count in zip(images.classes, images.counts(), strict=True) if count}
        for images in (source, target)
    )
    source_only = sorted(in_source - in_target, key=natural_key)
    target_only = sorted(in_target - in_source, key=natural_key)
    shared = sorted(in_source & in_target, key=natural_key)
    difference = _difference(source_only, target_only)
    if not shared:
        raise ClassMismatchError(
            f"the domains share no class: {difference or 'both are empty'}", source_only, target_only
        )
    if difference and not leave_out:
        raise ClassMismatchError(
            f"classes in one domain only: {difference}; rename them alike, or ask to leave them out",
            source_only,
            target_only,
        )
    return source.with_classes(shared), target.with_classes(shared)


def _difference(source_only: list[str], target_only: list[str]) -> str:
    sides = {"source": source_only, "target": target_only}
    return "; ".join(f"in the {side} {enumerate_words(map(repr, names))}" for side, names in sides.items() if names)


def unreadable(
    images: LabelledImages, *, on_progress: Callable[[int, int], None] | None = None, workers: int | None = None
) -> dict[int, str]:
    """Decode all images in threads; give the rows that failed, with the reason. See `scan_folder` for the arguments."""
    broken: dict[int, str] = {}
    threads = default_workers() if workers is None else max(workers, 1)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="sohot-check")
    try:
        with warnings.catch_warnings():
            # Pillow warns of odd metadata for each file; what matters here is whether the image decodes.
            warnings.filterwarnings("ignore", module=r"PIL\.")
            for row, reason in enumerate(pool.map(partial(_why_unreadable, images), range(len(images)))):
                if reason is not None:
                    broken[row] = reason
                if on_progress is not None:
                    on_progress(row + 1, len(images))
    finally:
        pool.shutdown(cancel_futures=True)  # when interrupted, do not first decode the rest
    return broken


def _why_unreadable(images: LabelledImages, row: int) -> str | None:
    try:
        read_item(images, row, at_least=CHECK_SIDE)
    except UnreadableImage as error:
        return error.reason
    return None


def _check_no_class_lost(images: LabelledImages, readable: LabelledImages, broken: dict[int, str]) -> None:
    for label, (before, after) in enumerate(zip(images.counts(), readable.counts(), strict=True)):
        if after == 0:
            row = images.labels.index(label)
            raise ValueError(
                f"none of the {before} images of class {images.classes[label]!r} in {printable(images.root or '')} "
                f"can be read; the first, {images.name(row)}: {broken[row]}"
            )
