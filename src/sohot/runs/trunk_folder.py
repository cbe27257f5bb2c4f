"""Outputs of a frozen trunk in a folder shared by many trainings: the cells of a grid and its runners."""

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from .._files import lock_folder, refuse_link, write_json
from .._reading import read_json
from ..data.image_batches import iter_batches
from ..data.input_spec import InputSpec
from ..data.labelled import LabelledImages, Progress
from ..data.view_set import ViewSet, iter_views
from ..networks.trunk_cache import cache_trunk, open_cache, output_bytes, trunk_key

CHUNK = 256
"""Images in one file: the most that a killed runner loses."""
BATCH = 32
"""Images, or views of them, that pass through the trunk together."""
MOST_LISTS = 16
"""Lists of images whose places are remembered: those of a few splits."""
STAGE = "passing images through the frozen layers"


class RowInputs:
    """Rows of several memory-mapped tensors, as inputs of training.

    Args:
        tensors: The tensors, one row per image.
        places: The tensor number of each row and its index there, see `gather`.

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
        """Return these rows, stacked."""
        return gather(self.tensors, self.places[rows.cpu()])


def gather(tensors: Sequence[Tensor], places: Tensor) -> Tensor:
    """Return parts of several tensors, stacked.

    Args:
        tensors: Tensors on the CPU, or a single one on any device.
        places: One row for each part: the number of its tensor, and an index of its first dimensions.

    Example:
        >>> gather([torch.zeros(2, 2, 1), torch.ones(1, 2, 1)], torch.tensor([[1, 0, 1], [0, 1, 0]])).flatten()
        tensor([1., 0.])
    """
    numbers, within = places[:, 0], places[:, 1:]
    if len(tensors) == 1:
        return tensors[0][within.to(tensors[0].device, non_blocking=True).unbind(1)]
    found = torch.empty(len(places), *tensors[0].shape[within.shape[1] :], dtype=tensors[0].dtype)
    for number in set(numbers.tolist()):
        chosen = numbers == number
        found[chosen] = tensors[number][within[chosen].unbind(1)]
    return found


class TrunkFolder:
    """Outputs of one trunk for images, in a folder: files of a few hundred images each, with an index each.

    Files are written atomically, so a killed runner continues where it stopped, and one that needs more images adds to
    them. Images are identified by name, size and modification time; trunks by layers and weights.

    Args:
        root: The folder that holds the folders of all trunks.
        trunk: The frozen part of a network.
        spec: The network's image format.
        views: The views of each image that pass; None for the plain one.
    """

    def __init__(self, root: Path, trunk: nn.Module, spec: InputSpec, views: ViewSet | None = None) -> None:
        self.trunk, self.spec, self.views = trunk, spec, views
        self._seen = [repr(spec)] if views is None else [repr(spec), repr(views)]
        self.folder = root / trunk_key(trunk, self._seen)[:24]
        self._tensors: list[Tensor] = []
        self._places: dict[str, tuple[int, int]] = {}
        self._read: set[str] = set()
        self._found: dict[LabelledImages, Tensor] = {}
        self._near: dict[torch.device, Tensor | None] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read new files in the folder."""
        self._near = {}
        for index in sorted(self.folder.glob("*.json")):
            if index.name in self._read:
                continue
            try:
                content = read_json(index)
                key, names = content["key"], content["images"]
            except (OSError, ValueError, KeyError, TypeError):  # damaged: its images are computed again
                continue
            tensor = open_cache(index.with_suffix(".safetensors"), len(names), key)
            if tensor is not None:
                self._read.add(index.name)
                self._places |= {name: (len(self._tensors), row) for row, name in enumerate(names)}
                self._tensors.append(tensor)

    def image_bytes(self) -> int:
        """Return the size of what is kept of one image."""
        return output_bytes(self.trunk, self.spec) * (1 if self.views is None else len(self.views))

    def missing(self, images: LabelledImages) -> list[int]:
        """Return the rows of images that are still missing."""
        return [row for row, name in enumerate(image_texts(images)) if name not in self._places]

    def inputs(self, images: LabelledImages) -> RowInputs | None:
        """Return inputs of training or test; None unless all the images are there."""
        if images not in self._found:
            try:
                places = [self._places[name] for name in image_texts(images)]
            except KeyError:
                return None
            if len(self._found) >= MOST_LISTS:
                self._found.clear()
            self._found[images] = torch.tensor(places, dtype=torch.int64).reshape(-1, 2)
        return RowInputs(self._tensors, self._found[images])

    def whole(self) -> Tensor:
        """Read all files into memory, one row per image; see `rows`."""
        return torch.cat(self._tensors) if self._tensors else torch.empty(0)

    def rows(self, images: LabelledImages) -> Tensor | None:
        """Return the rows of images in `whole`; None unless all the images are there."""
        found = self.inputs(images)
        return None if found is None else self._row_numbers(found)

    def near(self, images: LabelledImages, device: torch.device) -> Tensor | None:
        """Return the outputs of images where a GPU reads them fastest; None unless all the images are there.

        All files are copied to the GPU once if they take at most a quarter of its free memory. Otherwise the outputs of
        these images are, or they are in main memory.
        """
        found = self.inputs(images)
        if found is None:
            return None
        whole = self._copied(device)
        if whole is not None:
            own = whole.index_select(0, self._row_numbers(found).to(device))
        else:
            own = found.batch(torch.arange(len(found)))
            own = own.to(device) if self._fits(device, len(found)) else own
        # Steps gather rows as they use them: with the channels of a pixel side by side.
        return own.contiguous(memory_format=torch.channels_last) if own.dim() == 4 else own

    def near_inputs(self, images: LabelledImages, device: torch.device) -> RowInputs | None:
        """Return inputs that a GPU reads fastest, without a copy for each list of images; None unless all are there."""
        found = self.inputs(images)
        whole = None if found is None or device.type != "cuda" else self._copied(device)
        if found is None or whole is None:
            return found
        rows = self._row_numbers(found)
        return RowInputs([whole], torch.stack([torch.zeros_like(rows), rows], 1))

    def _copied(self, device: torch.device) -> Tensor | None:
        """Return all files on a GPU, copied there once; None if they take more than a quarter of its free memory."""
        if device not in self._near:
            fits = self._fits(device, sum(len(tensor) for tensor in self._tensors))
            self._near[device] = torch.cat([tensor.to(device) for tensor in self._tensors]) if fits else None
        return self._near[device]

    def _fits(self, device: torch.device, rows: int) -> bool:
        row = self._tensors[0][0]
        return rows * row.numel() * row.element_size() <= torch.cuda.mem_get_info(device)[0] / 4

    def _row_numbers(self, inputs: RowInputs) -> Tensor:
        starts = torch.tensor([0, *(len(tensor) for tensor in self._tensors)]).cumsum(0)
        return starts[inputs.places[:, 0]] + inputs.places[:, 1]

    def add(
        self,
        images: LabelledImages,
        device: torch.device,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Compute the missing outputs of some images.

        Args:
            images: The images.
            device: Where the trunk runs.
            workers: Threads that read images.
            progress: Receives the number of images done.
        """
        rows = self.missing(images)
        for start in range(0, len(rows), CHUNK):
            chunk = images.subset(rows[start : start + CHUNK])
            names = list(image_texts(chunk))
            key = trunk_key(self.trunk, [*self._seen, *names])
            file = refuse_link(self.folder) / f"{key[:24]}.safetensors"
            batches = trunk_batches(chunk, self.spec, self.views, workers)
            told = None if progress is None else partial(_tell, progress, start, len(rows))
            views = None if self.views is None else len(self.views)
            cache_trunk(self.trunk, batches, len(chunk), file=file, device=device, key=key, progress=told, views=views)
            write_json(file.with_suffix(".json"), {"key": key, "images": names})
        self.refresh()


def trunk_batches(
    images: LabelledImages, spec: InputSpec, views: ViewSet | None, workers: int | None
) -> Iterator[Tensor]:
    """Read images for a trunk: plain ones, or all their views."""
    if views is None:
        return iter_batches(images, spec, BATCH, workers)
    return iter_views(images, spec, views, max(BATCH // len(views), 1), workers)


def image_texts(images: LabelledImages) -> Iterator[str]:
    """Yield a text for each image that changes with its file, but not with the folder of the data set."""
    for row, file in enumerate(images.files):
        stat = file.stat()
        yield f"{images.reader} {images.name(row)} {stat.st_size} {stat.st_mtime_ns}"


def join_images(lists: Iterable[LabelledImages]) -> list[LabelledImages]:
    """Merge lists of images, each image once and in a fixed order; one list per reader."""
    found: dict[str, dict[str, tuple[LabelledImages, int]]] = {}
    for images in lists:
        named = found.setdefault(images.reader, {})
        for row, name in enumerate(image_texts(images)):
            named.setdefault(name, (images, row))
    return [_joined([named[name] for name in sorted(named)]) for named in found.values() if named]


def _joined(rows: Sequence[tuple[LabelledImages, int]]) -> LabelledImages:
    first = rows[0][0]
    parts = tuple(images.part(row) for images, row in rows)
    files = tuple(images.files[row] for images, row in rows)
    return replace(first, files=files, labels=(0,) * len(rows), classes=("any",), parts=parts, groups=())


def fill_folders(
    wanted: Sequence[tuple[TrunkFolder, Sequence[LabelledImages]]],
    root: Path,
    device: torch.device,
    workers: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Compute all missing outputs of a grid, one runner at a time.

    Args:
        wanted: Trunks and the images for each.
        root: The folder that holds the folders of all trunks.
        device: Where the trunks run.
        workers: Threads that read images.
        progress: Receives the number of images done.

    Returns:
        How many images passed through a trunk.

    Raises:
        OSError: There is not enough disk space.
    """
    lists = [(folder, images) for folder, lists in wanted for images in join_images(lists)]
    if not any(folder.missing(images) for folder, images in lists):
        return 0
    refuse_link(root).mkdir(parents=True, exist_ok=True)
    with _lock(root, progress):
        for folder, _ in lists:
            folder.refresh()  # another runner may have computed some
        counts = [len(folder.missing(images)) for folder, images in lists]
        _require_room(root, [(folder, count) for (folder, _), count in zip(lists, counts, strict=True) if count])
        for folder, images in lists:
            folder.add(images, device, workers, progress)
    return sum(counts)


def _lock(root: Path, progress: Progress | None) -> ExitStack:
    while True:
        try:
            return lock_folder(root)
        except BlockingIOError:
            if progress is not None:
                progress("waiting for another runner to compute features here", 0, 1)
            time.sleep(0.2)


def _require_room(root: Path, wanted: Sequence[tuple[TrunkFolder, int]]) -> None:
    needed = sum(folder.image_bytes() * count for folder, count in wanted)
    free = shutil.disk_usage(root).free
    if needed > free:
        images = sum(count for _, count in wanted)
        raise OSError(
            f"the frozen layers' outputs for {images} images take {needed / 1e9:.1f} GB, but "
            f"{root} has {free / 1e9:.1f} GB free: put --out on a larger disk, or give fewer --shifts"
        )


def _tell(progress: Progress, before: int, of: int, done: int, _: int) -> None:
    progress(STAGE, before + done, of)
