"""Walk through a folder of class folders: stable order, no endless loop, everything odd noted."""

import os
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from .decode import SUFFIXES
from .names import natural_key, printable

BETWEEN = "images"
"""A level that may stand between the root and the class folders, as in Office-31."""


@dataclass(frozen=True)
class LeftOut:
    """Something that was found and not used, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{printable(self.path)}: {self.reason}"


@dataclass
class Walk:
    """What was found: the image files of each class (by its printable name), and what was left out."""

    root: Path
    classes: dict[str, list[Path]] = field(default_factory=dict)
    reasons: dict[Path, str] = field(default_factory=dict)  # what was left out, and why
    _seen: dict[tuple[int, int], Path] = field(default_factory=dict)  # folders by device and inode

    def leave_out(self, path: str | Path, reason: str) -> None:
        """Note that something is not used."""
        self.reasons.setdefault(Path(path), reason)

    @property
    def left_out(self) -> list[LeftOut]:
        """List what was left out."""
        return [LeftOut(path, reason) for path, reason in self.reasons.items()]

    def enter(self, folder: Path) -> bool:
        """Tell whether a folder is new; a link back to one that was read would give its images a second label."""
        stat = folder.stat()
        first = self._seen.setdefault((stat.st_dev, stat.st_ino), folder)
        if first is not folder:
            self.leave_out(folder, f"it leads back to {printable(first)}")
        return first is folder

    def entries(self, folder: Path) -> tuple[list[Path], list[Path]]:
        """List the sub-folders and the image files of one folder. Hidden ones and other files are passed over."""
        folders, files = [], []
        try:
            found = sorted(os.scandir(folder), key=lambda entry: natural_key(entry.name))
        except OSError as error:
            self.leave_out(folder, f"it cannot be opened: {error.strerror}")
            return [], []
        for entry in found:
            is_image = Path(entry.name).suffix.lower() in SUFFIXES
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            try:
                if entry.is_dir():
                    folders.append(Path(entry.path))
                elif entry.is_file() and is_image:
                    files.append(Path(entry.path))
                elif is_image:
                    self.leave_out(entry.path, "the link leads nowhere" if entry.is_symlink() else "it is not a file")
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
        raise NotADirectoryError(f"{printable(root)} is not a folder; images must lie in one folder per class")
    result = Walk(root)
    folders, files = result.entries(root)
    if len(folders) == 1 and folders[0].name.lower() == BETWEEN and not files:
        inner_folders, inner_files = result.entries(folders[0])
        if inner_folders and not inner_files:
            result.root, folders = folders[0], inner_folders
    if not folders:
        raise ValueError(_no_classes(result, bool(files)))
    for file in files:
        result.leave_out(file, "it lies beside the class folders, not in one")
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
        # Links come last: one that leads into another class must find that class read under its own name.
        followed = not pending
        name, folder = links.popleft() if followed else pending.popleft()
        if folder.is_symlink() and not followed:
            links.append((name, folder))
        elif result.enter(folder):
            inner, files = result.entries(folder)
            pending.extend((name, each) for each in inner)
            result.classes.setdefault(name, []).extend(files)
    for folder in folders:
        if not result.classes.get(printable(folder.name)):
            result.classes.pop(printable(folder.name), None)
            result.leave_out(folder, "this class folder holds no image")
    if not result.classes:
        raise ValueError(f"no class folder in {printable(result.root)} holds an image")
    for files in result.classes.values():
        files.sort(key=lambda file: natural_key(str(file)))


def _no_classes(result: Walk, has_images: bool) -> str:
    name = printable(result.root)
    if result.root in result.reasons:  # may not be opened
        return f"{name}: {result.reasons[result.root]}"
    if has_images:
        return f"{name} has no class folders: put the images of each class in a folder named after the class"
    return f"the folder {name} is empty: it must hold one folder of images per class"
