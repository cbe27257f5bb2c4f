"""Images without labels: all that lie below a folder, and their halves, drawn without a look at any label."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from .contents import content_keys
from .folders import FolderScan, Walk, keep_readable
from .labelled import LabelledImages
from .names import printable
from .protocols.drawing import Pictures


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
        closed = walked.reasons.get(folder)
        raise ValueError(f"{printable(folder)} holds no images" if closed is None else f"{printable(folder)}: {closed}")
    images = LabelledImages(files, (0,) * len(files), ("",), folder).without_labels()
    found = FolderScan(images, walked.left_out)
    return keep_readable(found, on_progress=on_progress, workers=workers) if check else found


def _below(walked: Walk, folder: Path) -> Iterator[Path]:
    """List the images of a folder, then those of the folders in it; links are followed, but neither up nor back."""
    for outer in folder.resolve().parents:
        walked.enter(outer)
    pending = [folder]
    while pending:
        if walked.enter(inner := pending.pop()):
            folders, files = walked.entries(inner)
            yield from files
            pending += reversed(folders)


def halve(images: LabelledImages, seed: int) -> tuple[LabelledImages, LabelledImages]:
    """Divide images at random into two halves; copies of one image, and images of one group, stay together.

    The order is that of a hash of the seed and the names, so the halves depend neither on labels nor on the machine.

    Args:
        images: The images; their labels are not read.
        seed: Any integer; another seed gives other halves.

    Returns:
        Both halves, in the order of `images`; if nothing has to stay together, the first has at most one image more.

    Example:
        >>> first, second = halve(LabelledImages([], [], ["mug"]), seed=0)
        >>> len(first), len(second)
        (0, 0)
    """
    pictures = Pictures(images, content_keys([images])[0])
    first, second = pictures.halves(range(len(images)), seed)
    return images.subset(first), images.subset(second)
