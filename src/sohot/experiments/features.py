"""Outputs of frozen trunks, computed once for a whole grid and shared by its cells."""

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor, nn

from .._files import write_json
from ..data.input_spec import InputSpec
from ..data.labelled import LabelledImages
from ..data.loading import iter_batches
from ..networks.trunk_cache import cache_trunk, open_cache, trunk_key
from ..runs.run_data import Progress
from ..training.run_files import lock_folder

CHUNK = 256
"""Images in one file: what a killed runner loses at most."""
BATCH = 32
STAGE = "passing images through the frozen layers"


class RowInputs:
    """Rows that lie in several memory-mapped tensors, as inputs of training.

    Args:
        tensors: The tensors, one row per image.
        places: For each row the number of its tensor and its row there, shape (rows, 2).

    Example:
        >>> inputs = RowInputs([torch.zeros(2, 1), torch.ones(1, 1)], torch.tensor([[1, 0], [0, 1]]))
        >>> len(inputs), inputs.batch(torch.tensor([0, 1, 0])).flatten()
        (2, tensor([1., 0., 1.]))
    """

    def __init__(self, tensors: Sequence[Tensor], places: Tensor) -> None:
        self.tensors, self.places = tensors, places

    def __len__(self) -> int:
        return len(self.places)

    def batch(self, rows: Tensor) -> Tensor:
        """Give these rows, stacked."""
        numbers, within = self.places[rows.cpu()].unbind(1)
        first = self.tensors[int(numbers[0])]
        found = torch.empty(len(rows), *first.shape[1:], dtype=first.dtype)
        for number in set(numbers.tolist()):
            chosen = numbers == number
            found[chosen] = self.tensors[number][within[chosen]]
        return found


class TrunkFeatures:
    """What one trunk gives for images, in a folder: files of some hundred images each, and an index beside each.

    Files appear whole or not at all, so that a runner that was killed goes on where it was, and one that needs more
    images adds to what is there. Images are known by name, size and time of change; trunks by layers and weights.

    Args:
        folder: Where features of all trunks lie.
        trunk: The frozen part of a network.
        spec: How the network wants its images.
    """

    def __init__(self, folder: Path, trunk: nn.Module, spec: InputSpec) -> None:
        self.trunk, self.spec = trunk, spec
        self.folder = folder / trunk_key(trunk, [repr(spec)])[:24]
        self._tensors: list[Tensor] = []
        self._places: dict[str, tuple[int, int]] = {}
        self._read: set[str] = set()
        self.refresh()

    def refresh(self) -> None:
        """Take note of what has come into the folder."""
        for index in sorted(self.folder.glob("*.json")):
            if index.name in self._read:
                continue
            try:
                content = json.loads(index.read_text(encoding="utf-8"))
                key, names = content["key"], content["images"]
            except (OSError, ValueError, KeyError, TypeError):  # damaged: its images are computed again
                continue
            tensor = open_cache(index.with_suffix(".safetensors"), len(names), key)
            if tensor is not None:
                self._read.add(index.name)
                self._places |= {name: (len(self._tensors), row) for row, name in enumerate(names)}
                self._tensors.append(tensor)

    def missing(self, images: LabelledImages) -> list[int]:
        """Give the rows of images that are not there yet."""
        return [row for row, name in enumerate(image_texts(images)) if name not in self._places]

    def inputs(self, images: LabelledImages) -> RowInputs | None:
        """Give inputs of training or test; None unless all the images are there."""
        try:
            places = [self._places[name] for name in image_texts(images)]
        except KeyError:
            return None
        return RowInputs(self._tensors, torch.tensor(places, dtype=torch.int64).reshape(-1, 2))

    def whole(self) -> Tensor:
        """Read everything that is there into memory, one row per image; see `rows`."""
        return torch.cat(self._tensors) if self._tensors else torch.empty(0)

    def rows(self, images: LabelledImages) -> Tensor | None:
        """Give the rows of images in `whole`; None unless all the images are there."""
        found = self.inputs(images)
        if found is None:
            return None
        starts = torch.tensor([0, *(len(tensor) for tensor in self._tensors)]).cumsum(0)
        return starts[found.places[:, 0]] + found.places[:, 1]

    def bytes_per_image(self) -> int:
        """Give the size of what the trunk makes of an image."""
        like = next(self.trunk.parameters(), torch.empty(0))
        shape = (1, self.spec.channels, self.spec.size, self.spec.size)
        with torch.no_grad():
            output: Tensor = self.trunk(torch.zeros(shape, device=like.device))
        return output.numel() * output.element_size()

    def add(
        self,
        images: LabelledImages,
        device: torch.device,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Compute what is missing of some images.

        Args:
            images: The images.
            device: Where the trunk runs.
            workers: Threads that read images.
            progress: Told how many images are done.
        """
        rows = self.missing(images)
        for start in range(0, len(rows), CHUNK):
            chunk = images.subset(rows[start : start + CHUNK])
            names = list(image_texts(chunk))
            key = trunk_key(self.trunk, [repr(self.spec), *names])
            file = self.folder / f"{key[:24]}.safetensors"
            batches = _counted(iter_batches(chunk, self.spec, BATCH, workers), start, len(rows), progress)
            cache_trunk(self.trunk, batches, len(chunk), file=file, device=device, key=key)
            write_json(file.with_suffix(".json"), {"key": key, "images": names})
        self.refresh()


def image_texts(images: LabelledImages) -> Iterator[str]:
    """Give a text for each image that changes when its file does, but not with the folder of the data set."""
    for row, file in enumerate(images.files):
        stat = file.stat()
        yield f"{images.reader} {images.name(row)} {stat.st_size} {stat.st_mtime_ns}"


def join_images(lists: Iterable[LabelledImages]) -> list[LabelledImages]:
    """Put lists of images together, each image once and in one order; one list for each way of reading."""
    found: dict[str, dict[str, tuple[LabelledImages, int]]] = {}
    for images in lists:
        named = found.setdefault(images.reader, {})
        for row, name in enumerate(image_texts(images)):
            named.setdefault(name, (images, row))
    return [_joined([named[name] for name in sorted(named)]) for named in found.values() if named]


def _joined(rows: Sequence[tuple[LabelledImages, int]]) -> LabelledImages:
    first = rows[0][0]
    parts = tuple(images.parts[row] for images, row in rows) if first.parts else ()
    files = tuple(images.files[row] for images, row in rows)
    return replace(first, files=files, labels=(0,) * len(rows), classes=("any",), parts=parts, groups=())


def fill_features(
    wanted: Sequence[tuple[TrunkFeatures, Sequence[LabelledImages]]],
    folder: Path,
    device: torch.device,
    workers: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Compute all features of a grid that are not there yet, one runner at a time.

    Args:
        wanted: Trunks and the images they shall see.
        folder: Where features of all trunks lie.
        device: Where the trunks run.
        workers: Threads that read images.
        progress: Told how many images are done.

    Returns:
        How many images passed a trunk.

    Raises:
        OSError: The disk has not enough room.
    """
    lists = [(features, images) for features, lists in wanted for images in join_images(lists)]
    if not any(features.missing(images) for features, images in lists):
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    lock = _lock(folder, progress)
    try:
        for features, _ in lists:
            features.refresh()  # another runner may have computed some meanwhile
        counts = [len(features.missing(images)) for features, images in lists]
        _require_room(folder, [(features, count) for (features, _), count in zip(lists, counts, strict=True) if count])
        for features, images in lists:
            features.add(images, device, workers, progress)
    finally:
        if lock is not None:
            lock.close()
    return sum(counts)


def _lock(folder: Path, progress: Progress | None) -> BinaryIO | None:
    while True:
        try:
            return lock_folder(folder)
        except BlockingIOError:
            if progress is not None:
                progress("waiting for another runner that computes features here", 0, 1)
            time.sleep(0.2)


def _require_room(folder: Path, wanted: Sequence[tuple[TrunkFeatures, int]]) -> None:
    needed = sum(features.bytes_per_image() * count for features, count in wanted)
    free = shutil.disk_usage(folder).free
    if needed > free:
        images = sum(count for _, count in wanted)
        raise OSError(
            f"the frozen layers' outputs for {images} images take {needed / 1e9:.1f} GB, and "
            f"{folder} has {free / 1e9:.1f} GB free: give --out on a larger disk, or fewer --shifts"
        )


def _counted(batches: Iterator[Tensor], done: int, of: int, progress: Progress | None) -> Iterator[Tensor]:
    for batch in batches:
        yield batch
        done += len(batch)
        if progress is not None:
            progress(STAGE, done, of)
