"""Images in shards, tar files or Parquet files that hold many: which there are, and their labels."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from .decode import SUFFIXES
from .folders import FolderScan, Walk, keep_readable
from .labelled import LabelledImages
from .names import natural_key, printable
from .shard_files import PARQUET, TAR, count_rows, image_column, parquet_rows, read_entry, tar_entries


class ShardImage(NamedTuple):
    """An image in a shard: its path below it, and its class, if the shard says."""

    file: Path
    label: str | None


def shards_at(place: Path) -> list[Path]:
    """Return the shards of a place: itself, or those in a folder that holds shards alone; empty if it is another thing.

    A Parquet file is a shard if it has a column of images and none of paths, which would make it a list.

    >>> shards_at(Path("photos"))
    []
    """
    if place.is_file():
        return [place] if _is_shard(place) else []
    folders, images = Walk(place).entries(place)
    if folders or images:
        return []
    found: list[Path] = []
    with suppress(OSError):  # there is no such folder, or it is closed, which others explain
        found = [file for file in place.iterdir() if file.suffix.lower() in (TAR, PARQUET) and file.is_file()]
    return sorted(found, key=lambda file: natural_key(file.name)) if all(map(_is_shard, found)) else []


def _is_shard(file: Path) -> bool:
    if file.suffix.lower() != PARQUET:
        return file.suffix.lower() == TAR
    try:
        return image_column(file) is not None
    except ModuleNotFoundError:  # a list may be read by other means
        return False


def images_in(shard: Path) -> Iterator[ShardImage]:
    """List the images of a shard, in its order.

    The class of an image in a tar file is the text of the file beside it that ends in `.cls`, as WebDataset has it,
    or else the first folder that it lies in. In a Parquet file it is the value of the column `label`.

    Raises:
        ValueError: It is not such a file.
    """
    if shard.suffix.lower() == PARQUET:
        labels = parquet_rows(shard, "label") or [None] * count_rows(shard)
        for row, label in enumerate(labels):
            yield ShardImage(shard / str(row), None if label in (None, "") else printable(str(label)))
        return
    entries = tar_entries(shard)
    for name in entries:
        path = PurePosixPath(name)
        if path.suffix.lower() not in SUFFIXES or path.name.startswith("."):
            continue
        told = entries.get(f"{path.parent / path.name.partition('.')[0]}.cls")
        folder = path.parts[0] if len(path.parts) > 1 else ""
        label = folder if told is None else read_entry(shard, told).decode("utf-8", "replace").strip()
        yield ShardImage(shard / name, printable(label) or None)


def scan_shards(
    place: Path,
    *,
    labelled: bool = True,
    check: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> FolderScan:
    """Find the images of shards as `scan_folder` finds those of a folder, but in the order of the shards.

    Args:
        place: A shard, or a folder of them.
        labelled: Read the classes, of which each image needs one; otherwise all are of one class, "unlabelled".
        check: Decode every image, in threads, and leave out those that cannot be read.
        on_progress: Called from this thread with the number of images checked and the total.
        workers: Number of threads; None for one per processor, at most 8.

    Raises:
        ValueError: There are no images, or one has no label.
    """
    found = [image for shard in shards_at(place) for image in images_in(shard)]
    if not found:
        raise ValueError(f"{printable(place)} holds no images")
    files = tuple(image.file for image in found)
    names = [image.label or "" for image in found] if labelled else []
    if labelled and not all(names):
        raise ValueError(f"{printable(files[names.index('')])} has no label: its shard needs one for each image")
    classes = sorted(set(names), key=natural_key)
    number = {name: label for label, name in enumerate(classes)}
    images = LabelledImages(
        files, tuple(number[name] for name in names) or (0,) * len(files), tuple(classes) or ("",), place
    )
    scan = FolderScan(images if labelled else images.without_labels(), [])
    return keep_readable(scan, on_progress=on_progress, workers=workers) if check else scan
