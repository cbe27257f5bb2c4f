"""The store of trunk outputs: the outputs of the frozen layers are computed once per image and shared by trainings.

They are kept on the device, in memory, in a file of the run, or in a folder shared by the cells of a grid. If every
step uses different images (--augment), or nothing is to be kept, the store returns the images themselves.
"""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import psutil
import torch
from torch import Tensor

from .._device import choose_device
from .._files import refuse_link
from ..data.augment import AugmentedImages
from ..data.image_batches import ImageInputs, iter_batches
from ..data.input_spec import InputSpec
from ..data.labelled import LabelledImages, Progress
from ..networks.trunk_cache import cache_trunk, open_cache, output_bytes, trunk_key
from ..networks.two_streams import TwoStreams
from ..training.inputs import Inputs, TensorInputs
from ..training.ranks import Ranks
from .config import RunConfig
from .run_model import OPTIONS, START
from .trunk_folder import BATCH, RowInputs, TrunkFolder, image_texts

OFF, SHARED = "off", "shared"
"""Places besides those of `RunConfig.cache`: images instead of outputs, and the folder of a grid."""

_ABOVE_THE_TRUNK = ("streams", "heads", "norm_bound", "projection")
_TRUNK = (*(name for name in OPTIONS if name not in _ABOVE_THE_TRUNK), *START, "seed", "augment")

Key = tuple[object, ...]


class TrunkStore:
    """Provides the inputs of trainings, and keeps shared trunk outputs by network, domain and list of images.

    Args:
        root: The folder in which the cells of a grid share outputs (see `TrunkFolder`); None if there is none.
        progress: Receives the number of images that passed through the trunk.

    Attributes:
        notes: What the user should know, one sentence each.
    """

    def __init__(self, root: Path | None = None, progress: Progress | None = None) -> None:
        self.root, self.progress = root, progress
        self.notes: list[str] = []
        self._places: dict[Key, str] = {}
        self._inputs: dict[Key, Inputs] = {}
        self._folders: dict[int, TrunkFolder] = {}

    def place(self, config: RunConfig, model: TwoStreams, rows: int) -> str:
        """Return where the outputs of a network are kept: "device", "memory", "disk", "shared" or "off".

        As requested, else where that many rows fit; decided once per network.
        """
        key = _network(config)
        if key not in self._places:
            shared = self.root is not None and not config.augment
            self._places[key] = SHARED if shared else choose_cache(config, model, rows)
        return self._places[key]

    def inputs(
        self,
        config: RunConfig,
        model: TwoStreams,
        domain: str,
        images: LabelledImages,
        place: str,
        rows: Sequence[int] | None = None,
    ) -> Inputs:
        """Return the inputs of a list of images, or of some of its rows.

        Args:
            config: Augmentation, device, threads, and the run's folder for outputs on disk.
            model: The two streams.
            domain: "source" or "target".
            images: The images.
            place: The result of `place`.
            rows: Rows of the list; None for all.
        """
        if place == OFF:
            return image_inputs(config, model.inputs[domain], images if rows is None else images.subset(rows))
        if place == SHARED:
            found = self.shared(config, model, domain, images if rows is None else images.subset(rows))
            return _near(found, choose_device(config.device)) if isinstance(found, RowInputs) else found
        key = (*_network(config), domain, images)
        if key not in self._inputs:
            self._inputs[key] = trunk_outputs(config, model, domain, images, place, self.progress)
        whole = self._inputs[key]
        return whole if rows is None else TensorInputs(whole.batch(torch.tensor(rows, dtype=torch.int64)))

    def shared(self, config: RunConfig, model: TwoStreams, domain: str, images: LabelledImages) -> Inputs:
        """Return the inputs of images from the grid's folder; missing ones are computed in memory, with a note."""
        folder = self.folder(model, domain)
        found = folder.inputs(images)
        if found is not None:
            return found
        name = folder.folder.parent.name
        self.notes = [f"outputs of the frozen layers were not in {name}/ and were computed for this cell only"]
        return trunk_outputs(config, model, domain, images, "memory")

    def folder(self, model: TwoStreams, domain: str) -> TrunkFolder:
        """Return the folder in which the cells of a grid share the outputs of a domain's trunk."""
        if self.root is None:
            raise ValueError("this store has no shared folder for cells")
        trunk = model.trunk(domain)
        if id(trunk) not in self._folders:
            self._folders[id(trunk)] = TrunkFolder(self.root, trunk, model.inputs[domain])
        return self._folders[id(trunk)]


def choose_cache(config: RunConfig, model: TwoStreams, rows: int) -> str:
    """Choose where a run keeps the trunk's outputs: as requested, else where they fit.

    On a GPU if they take at most a quarter of its free memory (training needs the rest), else in memory if they take
    at most half of the free memory, else on disk.
    """
    if config.augment:
        return OFF
    if config.cache is not None:
        return config.cache
    size = rows * output_bytes(model.trunk("target"), model.inputs["target"])
    if choose_device(config.device).type == "cuda" and size <= torch.cuda.mem_get_info()[0] / 4:
        return "device"
    return "memory" if size <= _free_memory() / 2 else "disk"


def trunk_outputs(
    config: RunConfig,
    model: TwoStreams,
    domain: str,
    images: LabelledImages,
    place: str,
    progress: Progress | None = None,
) -> TensorInputs:
    """Pass the images of one domain through the trunk.

    Several ranks of a machine share one file: the first writes it, the others memory-map it.

    Args:
        config: Device, threads, and the run's folder for outputs on disk.
        model: The two streams.
        domain: "source" or "target".
        images: The images.
        place: Where to keep the outputs: "device", "memory" or "disk".
        progress: Receives the number of images that passed through the trunk.
    """
    spec, trunk = model.inputs[domain], model.trunk(domain)
    ranks, device = Ranks.here(), choose_device(config.device)
    file = None
    if place == "disk" or ranks.several:
        file = refuse_link(cache_folder(config)) / f"{domain}.safetensors"
    key = None if file is None else trunk_key(trunk, [repr(spec), *image_texts(images)])
    if file is not None and key is not None and ranks.local > 0:
        outputs = _wait_for(file, len(images), key)
    else:
        stage = f"passing {domain} images through the frozen layers" if len(trunk) else f"reading {domain} images"
        told = None if progress is None else partial(progress, stage)
        batches = iter_batches(images, spec, BATCH, config.read_threads)
        outputs = cache_trunk(trunk, batches, len(images), file=file, device=device, key=key, progress=told)
    return TensorInputs(outputs.to(device) if place == "device" else outputs)


def cache_folder(config: RunConfig) -> Path:
    """Folder of outputs on disk, inside the run's folder."""
    return (config.out or Path()) / "cache"


def _wait_for(file: Path, rows: int, key: str) -> Tensor:
    """Wait for a cache that another rank writes; if that rank fails, the launcher ends this one too."""
    while (found := open_cache(file, rows, key)) is None:
        time.sleep(0.2)
    return found


def _near(inputs: RowInputs, device: torch.device) -> Inputs:
    """Copy what every step reads to a GPU once, if it takes at most a quarter of its free memory."""
    if device.type != "cuda":
        return inputs
    whole = inputs.batch(torch.arange(len(inputs)))
    fits = whole.numel() * whole.element_size() <= torch.cuda.mem_get_info()[0] / 4
    return TensorInputs(whole.to(device) if fits else whole)


def image_inputs(config: RunConfig, spec: InputSpec, images: LabelledImages) -> ImageInputs | AugmentedImages:
    """Return images unchanged, or cropped and mirrored anew in each step.

    Decoded images are kept while there is room: as for the trunk's outputs, at most half of the free memory, and a
    quarter of it on a GPU. Free memory is measured while images are already held, hence factors of one and a third;
    source and target share that.
    """
    if not config.augment:
        return ImageInputs(images, spec, config.read_threads)
    shares = 2 * Ranks.here().local_count
    gpu = None
    if choose_device(config.device).type == "cuda":
        gpu = torch.device("cuda", torch.cuda.current_device())  # reader threads may have another current device
    return AugmentedImages(
        images,
        spec,
        lambda: _free_memory() / shares,
        config.read_threads,
        gpu,
        lambda: torch.cuda.mem_get_info(gpu)[0] / 3 / 2,
    )


def _free_memory() -> float:
    """Estimate the free memory, in bytes."""
    return float(psutil.virtual_memory().available)


def _network(config: RunConfig) -> Key:
    """Return a key of everything that determines the outputs of a network's trunks."""
    return tuple(getattr(config, name) for name in _TRUNK)
