"""The store of trunk outputs: what the frozen layers give for an image is computed once and shared by trainings.

Outputs lie on the device, in memory, in a file beside the run, or in a folder that the cells of a grid share. Where
every step sees other pictures (--augment), or nothing is to be kept, the store gives the images themselves.
"""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import psutil
import torch
from torch import Tensor

from .._device import choose_device
from ..data.augment import AugmentedImages
from ..data.image_batches import ImageInputs, iter_batches
from ..data.input_spec import InputSpec
from ..data.labelled import LabelledImages, Progress
from ..networks.trunk_cache import cache_trunk, open_cache, output_bytes, trunk_key
from ..networks.two_streams import TwoStreams
from ..training.inputs import Inputs, TensorInputs
from ..training.ranks import Ranks
from .building import OPTIONS, START
from .config import RunConfig
from .trunk_folder import BATCH, RowInputs, TrunkFolder, image_texts

OFF, SHARED = "off", "shared"
"""Places beside those that `RunConfig.cache` names: no outputs but images, and the folder of a grid."""

_ABOVE_THE_TRUNK = ("streams", "heads", "norm_bound", "projection")
_TRUNK = (*(name for name in OPTIONS if name not in _ABOVE_THE_TRUNK), *START, "seed", "augment")

Key = tuple[object, ...]


class TrunkStore:
    """Gives the inputs of trainings, and keeps the trunk outputs they share by network, domain and list of images.

    Args:
        root: The folder in which the cells of a grid share outputs (see `TrunkFolder`); None if there is none.
        progress: Told how many images have passed the trunk.

    Attributes:
        notes: What the user should know, a sentence each.
    """

    def __init__(self, root: Path | None = None, progress: Progress | None = None) -> None:
        self.root, self.progress = root, progress
        self.notes: list[str] = []
        self._places: dict[Key, str] = {}
        self._inputs: dict[Key, Inputs] = {}
        self._folders: dict[int, TrunkFolder] = {}

    def place(self, config: RunConfig, model: TwoStreams, rows: int) -> str:
        """Say where the outputs of a network are kept: "device", "memory", "disk", "shared" or "off".

        Where asked, else where so many rows fit; decided once for each network.
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
        """Give the inputs of a list of images, or of some rows out of what is kept of the whole list.

        Args:
            config: Augmentation, device, threads, and the run's folder for outputs on disk.
            model: The two streams.
            domain: "source" or "target".
            images: The images.
            place: What `place` said.
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
        """Give the inputs of images out of the grid's folder; what is not there is computed in memory, with a note."""
        folder = self.folder(model, domain)
        found = folder.inputs(images)
        if found is not None:
            return found
        name = folder.folder.parent.name
        self.notes = [f"outputs of the frozen layers were not in {name}/ and were computed for this cell alone"]
        return trunk_outputs(config, model, domain, images, "memory")

    def folder(self, model: TwoStreams, domain: str) -> TrunkFolder:
        """Give the folder in which the cells of a grid share the outputs of a domain's trunk."""
        if self.root is None:
            raise ValueError("this store has no folder that cells share")
        trunk = model.trunk(domain)
        if id(trunk) not in self._folders:
            self._folders[id(trunk)] = TrunkFolder(self.root, trunk, model.inputs[domain])
        return self._folders[id(trunk)]


def choose_cache(config: RunConfig, model: TwoStreams, rows: int) -> str:
    """Say where a run keeps the trunk's outputs: where asked, else where they fit.

    On a GPU if they take at most a quarter of what is free there (training needs the rest), else in memory if they take
    at most half of what is free, else on disk.
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

    Several ranks of a machine share one file: the first of them writes it, the others read it in place.

    Args:
        config: Device, threads, and the run's folder for outputs on disk.
        model: The two streams.
        domain: "source" or "target".
        images: The images.
        place: Where to keep the outputs: "device", "memory" or "disk".
        progress: Told how many images have passed the trunk.
    """
    spec, trunk = model.inputs[domain], model.trunk(domain)
    ranks, device = Ranks.here(), choose_device(config.device)
    file = cache_folder(config) / f"{domain}.safetensors" if place == "disk" or ranks.several else None
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
    """Where outputs on disk lie: beside the run."""
    return (config.out or Path()) / "cache"


def _wait_for(file: Path, rows: int, key: str) -> Tensor:
    """Wait for a cache that another rank writes; if that one fails, whoever has started the ranks ends this one too."""
    while (found := open_cache(file, rows, key)) is None:
        time.sleep(0.2)
    return found


def _near(inputs: RowInputs, device: torch.device) -> Inputs:
    """Bring what is read in every step to a GPU once, if it takes at most a quarter of what is free there."""
    if device.type != "cuda":
        return inputs
    whole = inputs.batch(torch.arange(len(inputs)))
    fits = whole.numel() * whole.element_size() <= torch.cuda.mem_get_info()[0] / 4
    return TensorInputs(whole.to(device) if fits else whole)


def image_inputs(config: RunConfig, spec: InputSpec, images: LabelledImages) -> ImageInputs | AugmentedImages:
    """Give images as they are, or cropped and mirrored anew in each step.

    Decoded pictures are kept as long as there is room: as for the trunk's outputs, at most half of what is free in
    memory, and a quarter of it on a GPU. What is free is asked while pictures are there already, hence a whole and a
    third of it; source and target share that.
    """
    if not config.augment:
        return ImageInputs(images, spec, config.read_threads)
    shares = 2 * Ranks.here().local_count
    gpu = None
    if choose_device(config.device).type == "cuda":
        gpu = torch.device("cuda", torch.cuda.current_device())  # threads that read may have another current one
    return AugmentedImages(
        images,
        spec,
        lambda: _free_memory() / shares,
        config.read_threads,
        gpu,
        lambda: torch.cuda.mem_get_info(gpu)[0] / 3 / 2,
    )


def _free_memory() -> float:
    """Estimate the memory that is free, in bytes."""
    return float(psutil.virtual_memory().available)


def _network(config: RunConfig) -> Key:
    """Tell networks apart by all that decides what their trunks give."""
    return tuple(getattr(config, name) for name in _TRUNK)
