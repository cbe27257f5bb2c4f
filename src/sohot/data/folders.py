"""Read folders of class folders as labelled lists: stable order, no endless loops, anything odd reported."""

import os
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from .decode import SUFFIXES, UnreadableImage, default_workers
from .labelled import UNLABELLED, LabelledImages
from .names import enumerate_words, natural_key, printable
from .readers import read_item

CHECK_SIDE = 32
"""A JPEG is checked at this size: all of its bytes are read, few pixels are computed."""
CLOSED = "it cannot be opened"
BETWEEN = "images"
"""A folder level allowed between the root and the class folders, as in Office-31."""


@dataclass(frozen=True)
class LeftOut:
    """A path that was found but not used, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{printable(self.path)}: {self.reason}"

    def as_json(self) -> dict[str, str]:
        """Return it as JSON values."""
        return {"path": printable(self.path), "reason": self.reason}


@dataclass
class Walk:
    """What was found: the image files of each class (by its printable name), and what was left out."""

    root: Path
    classes: dict[str, list[Path]] = field(default_factory=dict)
    reasons: dict[Path, str] = field(default_factory=dict)  # what was left out, and why
    _seen: dict[tuple[int, int], Path] = field(default_factory=dict)  # folders by device and inode

    def leave_out(self, path: str | Path, reason: str) -> None:
        """Record a path that is not used."""
        self.reasons.setdefault(Path(path), reason)

    @property
    def left_out(self) -> list[LeftOut]:
        """List what was left out."""
        return [LeftOut(path, reason) for path, reason in self.reasons.items()]

    def enter(self, folder: Path) -> bool:
        """Return whether a folder is new; a link back to one already read would give its images a second label."""
        stat = folder.stat()
        first = self._seen.setdefault((stat.st_dev, stat.st_ino), folder)
        if first is not folder:
            self.leave_out(folder, f"it links back to {printable(first)}")
        return first is folder

    def entries(self, folder: Path) -> tuple[list[Path], list[Path]]:
        """List the sub-folders and the image files of one folder. Skip hidden entries and other files."""
        folders, files = [], []
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: natural_key(entry.name))
        except OSError as error:
            self.leave_out(folder, f"{CLOSED}: {error.strerror}")
            return [], []
        for entry in entries:
            is_image = Path(entry.name).suffix.lower() in SUFFIXES
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            try:
                if entry.is_dir():
                    folders.append(Path(entry.path))
                elif entry.is_file() and is_image:
                    files.append(Path(entry.path))
                elif is_image:
                    self.leave_out(entry.path, "the link is broken" if entry.is_symlink() else "it is not a file")
            except OSError as error:  # a link to itself
                self.leave_out(entry.path, f"it cannot be followed: {error.strerror}")
        return folders, files


def walk(root: Path) -> Walk:
    """Find the class folders below `root` and their image files, in natural order.

    Raises:
        FileNotFoundError: There is no such folder.
        NotADirectoryError: It is a file.
        ValueError: It is empty or has no class folders.
    """
    if not root.exists():
        raise FileNotFoundError(f"the folder {printable(root)} does not exist")
    if not root.is_dir():
        raise NotADirectoryError(f"{printable(root)} is not a folder; put images in one folder per class")
    result = Walk(root)
    folders, files = result.entries(root)
    if len(folders) == 1 and folders[0].name.lower() == BETWEEN and not files:
        inner_folders, inner_files = result.entries(folders[0])
        if inner_folders and not inner_files:
            result.root, folders = folders[0], inner_folders
    if not folders:
        raise ValueError(_no_classes(result, bool(files)))
    for file in files:
        result.leave_out(file, "it is next to the class folders, not inside one")
    for outer in (result.root.resolve(), *result.root.resolve().parents):
        result.enter(outer)
    _read_classes(result, folders)
    return result


def _read_classes(result: Walk, folders: list[Path]) -> None:
    """Collect the image files of each class folder and of all folders inside it."""
    # Two spellings of one name (with composed or separate accents) are one class.
    pending = deque((printable(folder.name), folder) for folder in folders)
    links: deque[tuple[str, Path]] = deque()
    while pending or links:
        # Links come last, so that a class they point into has already been read under its own name.
        followed = not pending
        name, folder = links.popleft() if followed else pending.popleft()
        if folder.is_symlink() and not followed:
            links.append((name, folder))
        elif result.enter(folder):
            inner, files = result.entries(folder)
            pending.extend((name, each) for each in inner)
            result.classes.setdefault(name, []).extend(files)
    for folder in folders:
        if result.reasons.get(folder, "").startswith(CLOSED):  # else a class would be lost without anyone noticing
            raise ValueError(f"the class folder {printable(folder)}: {result.reasons[folder]}")
        if not result.classes.get(printable(folder.name)):
            result.classes.pop(printable(folder.name), None)
            result.leave_out(folder, "this class folder contains no images")
    if not result.classes:
        raise ValueError(f"no class folder in {printable(result.root)} contains an image")
    for files in result.classes.values():
        files.sort(key=lambda file: natural_key(str(file)))


def _no_classes(result: Walk, has_images: bool) -> str:
    name = printable(result.root)
    if result.root in result.reasons:  # it could not be opened
        return f"{name}: {result.reasons[result.root]}"
    if has_images:
        return f"{name} has no class folders: put the images of each class in a folder named after the class"
    return f"the folder {name} is empty: it needs one folder of images per class"


def holds_more_than(root: Path, most: int) -> bool:
    """Tell whether a folder holds more than so many files and folders at any depth; counting stops there."""
    counted = 0
    for _, folders, files in os.walk(root):
        counted += len(folders) + len(files)
        if counted > most:
            return True
    return False


@dataclass(frozen=True)
class FolderScan:
    """The contents of a folder: its images, and what was left out and why."""

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
    """Find the labelled images below a folder: one folder per class, with any subfolders.

    A level `images/` between the root and the class folders is accepted. Names are in natural order, the same on
    every machine. Hidden files and files that are not images are skipped.

    Args:
        root: The folder.
        check: Decode every image, in threads, and leave out those that cannot be read.
        on_progress: Called from this thread with the number of images checked and the total.
        workers: Number of threads; None for one per processor, at most 8.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: It is empty, has no class folders, or a class has no readable image.
    """
    walked = walk(Path(root))
    classes = sorted(walked.classes, key=natural_key)
    files = [file for name in classes for file in walked.classes[name]]
    labels = [label for label, name in enumerate(classes) for _ in walked.classes[name]]
    images = LabelledImages(tuple(files), tuple(labels), tuple(classes), walked.root)
    found = FolderScan(images, walked.left_out)
    return keep_readable(found, on_progress=on_progress, workers=workers) if check else found


def common_classes(
    source: LabelledImages, target: LabelledImages, leave_out: bool = False
) -> tuple[LabelledImages, LabelledImages]:
    """Restrict two domains to the same classes, with the same labels.

    Args:
        source: Images of the source domain.
        target: Images of the target domain.
        leave_out: Leave out the classes that only one domain has, instead of raising an error.

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
            f"classes in one domain only: {difference}; rename them to match, or ask to leave them out",
            source_only,
            target_only,
        )
    return source.with_classes(shared), target.with_classes(shared)


def _difference(source_only: list[str], target_only: list[str]) -> str:
    sides = {"source": source_only, "target": target_only}
    return "; ".join(f"in the {side} {enumerate_words(map(repr, names))}" for side, names in sides.items() if names)


def keep_readable(
    found: FolderScan, *, on_progress: Callable[[int, int], None] | None = None, workers: int | None = None
) -> FolderScan:
    """Decode all images and leave out those that cannot be read. See `scan_folder` for the arguments.

    Raises:
        ValueError: No image of a class, or none of images without labels, can be read.
    """
    images = found.images
    broken = unreadable(images, on_progress=on_progress, workers=workers)
    readable = images.subset([row for row in range(len(images)) if row not in broken])
    check_no_class_lost(images, readable, broken)
    return FolderScan(readable, found.left_out + [LeftOut(images.files[row], broken[row]) for row in sorted(broken)])


def unreadable(
    images: LabelledImages, *, on_progress: Callable[[int, int], None] | None = None, workers: int | None = None
) -> dict[int, str]:
    """Decode all images in threads; return the rows that failed, with reasons. See `scan_folder` for the arguments."""
    broken: dict[int, str] = {}
    threads = default_workers() if workers is None else max(workers, 1)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="sohot-check")
    try:
        with warnings.catch_warnings():
            # Pillow warns about odd metadata in each file; here only decoding matters.
            warnings.filterwarnings("ignore", module=r"PIL\.")
            for row, reason in enumerate(pool.map(partial(_why_unreadable, images), range(len(images)))):
                if reason is not None:
                    broken[row] = reason
                if on_progress is not None:
                    on_progress(row + 1, len(images))
    finally:
        pool.shutdown(cancel_futures=True)  # if interrupted, do not decode the rest first
    return broken


def _why_unreadable(images: LabelledImages, row: int) -> str | None:
    try:
        read_item(images, row, at_least=CHECK_SIDE)
    except UnreadableImage as error:
        return error.reason
    return None


def check_no_class_lost(images: LabelledImages, readable: LabelledImages, broken: dict[int, str]) -> None:
    """Require a readable image of each class; `broken` says why the other rows cannot be read."""
    for label, (before, after) in enumerate(zip(images.counts(), readable.counts(), strict=True)):
        if after == 0:
            row = images.labels.index(label)
            known = images.classes != (UNLABELLED,)
            of, first = (f" of class {images.classes[label]!r}", f", {images.name(row)}") if known else ("", "")
            raise ValueError(
                f"none of the {before} images{of} in {images.origin} can be read; the first{first}: {broken[row]}"
            )
