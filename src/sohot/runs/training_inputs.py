"""What the training loop reads: outputs of the frozen trunk, computed once and shared by trainings, or images."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ..data.augment import AugmentedImages
from ..data.input_spec import InputSpec
from ..data.labelled import LabelledImages
from ..data.loading import ImageInputs, iter_batches
from ..networks.model import TwoStreams
from ..networks.trunk_cache import cache_trunk, open_cache, trunk_key
from ..training.inputs import Inputs, TensorInputs
from ..training.ranks import Ranks
from .building import OPTIONS, START
from .config import RunConfig
from .run_data import Progress

BATCH = 32
"""Images that pass the trunk together."""


def choose_device(accelerator: str) -> torch.device:
    """Choose the device for what runs outside the training loop, the same as inside.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if accelerator == "auto":
        return torch.device(next(name for name, available in there.items() if available))
    if not there.get(accelerator, False):
        raise ValueError(f"--device {accelerator}: there is no such device here")
    return torch.device(accelerator)


def choose_cache(config: RunConfig, model: TwoStreams, rows: int) -> str:
    """Say where the trunk's outputs are kept: where asked, else where they fit.

    On a GPU if they take at most a quarter of what is free there (training needs the rest), else in memory if they take
    at most half of what is free, else on disk.
    """
    if config.augment:
        return "off"
    if config.cache is not None:
        return config.cache
    trunk, spec = model.trunk("target"), model.inputs["target"]
    with torch.no_grad():
        size = trunk(torch.zeros(1, spec.channels, spec.size, spec.size)).numel() * 4
    if choose_device(config.device).type == "cuda" and size * rows <= torch.cuda.mem_get_info()[0] / 4:
        return "device"
    return "memory" if size * rows <= _free_memory() / 2 else "disk"


def training_inputs(
    config: RunConfig,
    model: TwoStreams,
    domain: str,
    images: LabelledImages,
    cache: str,
    progress: Progress | None = None,
) -> Inputs:
    """Give the inputs of one domain.

    Args:
        config: Augmentation, device, threads, and the run's folder for a cache on disk.
        model: The two streams.
        domain: "source" or "target".
        images: The images.
        cache: "device", "memory", "disk" or "off".
        progress: Told how many images have passed the trunk.

    Several ranks of a machine share one file: the first of them writes it, the others read it in place.
    """
    spec, trunk = model.inputs[domain], model.trunk(domain)
    if cache == "off":
        return _augmented(config, spec, images) if config.augment else ImageInputs(images, spec, config.read_threads)
    ranks, device = Ranks.here(), choose_device(config.device)
    file = cache_folder(config) / f"{domain}.safetensors" if cache == "disk" or ranks.several else None
    key = None if file is None else trunk_key(trunk, _texts(images, spec))
    if file is not None and key is not None and ranks.local > 0:
        outputs = _wait_for(file, len(images), key)
        return TensorInputs(outputs.to(device) if cache == "device" else outputs)
    stage = f"passing {domain} images through the frozen layers" if len(trunk) else f"reading {domain} images"
    batches = _counted(iter_batches(images, spec, BATCH, config.read_threads), len(images), stage, progress)
    outputs = cache_trunk(
        trunk,
        batches,
        len(images),
        file=file,
        device=device,
        key=key,
    )
    return TensorInputs(outputs.to(device) if cache == "device" else outputs)


def _augmented(config: RunConfig, spec: InputSpec, images: LabelledImages) -> AugmentedImages:
    """Give images that are cropped and mirrored anew in each step, the decoded pictures kept as long as there is room.

    As for the trunk's outputs: at most half of what is free in memory, and a quarter of it on a GPU. What is free is
    asked while pictures are there already, hence a whole and a third of it; source and target share that.
    """
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


def _wait_for(file: Path, rows: int, key: str) -> Tensor:
    """Wait for a cache that another rank writes; if that one fails, whoever has started the ranks ends this one too."""
    while (found := open_cache(file, rows, key)) is None:
        time.sleep(0.2)
    return found


def cache_folder(config: RunConfig) -> Path:
    """Where a cache on disk lies: beside the run."""
    return (config.out or Path()) / "cache"


def _counted(batches: Iterator[Tensor], of: int, stage: str, progress: Progress | None) -> Iterator[Tensor]:
    done = 0
    for batch in batches:
        yield batch
        done += len(batch)
        if progress is not None:
            progress(stage, done, of)


def _texts(images: LabelledImages, spec: InputSpec) -> Iterator[str]:
    """Give a text for each image that changes when its file does, or the way it is read."""
    yield repr(spec)
    for file in images.files:
        stat = file.stat()
        yield f"{file.absolute()} {stat.st_size} {stat.st_mtime_ns}"


def _free_memory() -> float:
    """Estimate the memory that is free, in bytes."""
    try:
        with open("/proc/meminfo", encoding="ascii") as stream:
            for line in stream:
                if line.startswith("MemAvailable:"):
                    return float(line.split()[1]) * 1024
    except OSError:
        pass
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names:  # half of it may be in use
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    return 4.0 * 2**30


_ABOVE_THE_TRUNK = ("streams", "heads", "norm_bound", "projection")
_TRUNK = (*(name for name in OPTIONS if name not in _ABOVE_THE_TRUNK), *START, "seed", "augment")

Key = tuple[object, ...]


class SharedInputs:
    """Keeps the trunk's outputs of image lists, by network and domain.

    Args:
        progress: Told how many images have passed the trunk.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress
        self._places: dict[Key, str] = {}
        self._inputs: dict[Key, Inputs] = {}

    def place(self, config: RunConfig, model: TwoStreams, rows: int) -> str:
        """Say where the outputs of a network are kept, see `choose_cache`; decided once for each network."""
        key = _network(config)
        if key not in self._places:
            self._places[key] = choose_cache(config, model, rows)
        return self._places[key]

    def whole(self, config: RunConfig, model: TwoStreams, domain: str, images: LabelledImages, cache: str) -> Inputs:
        """Give the inputs of a list of images."""
        if cache == "off":
            return training_inputs(config, model, domain, images, cache, self.progress)
        key = (*_network(config), domain, images)
        if key not in self._inputs:
            self._inputs[key] = training_inputs(config, model, domain, images, cache, self.progress)
        return self._inputs[key]

    def part(
        self,
        config: RunConfig,
        model: TwoStreams,
        domain: str,
        images: LabelledImages,
        rows: Sequence[int],
        cache: str,
    ) -> Inputs:
        """Give the inputs of some rows of a list, out of those of the whole where these are kept."""
        if cache == "off":
            return training_inputs(config, model, domain, images.subset(rows), cache)
        inputs = self.whole(config, model, domain, images, cache)
        return TensorInputs(inputs.batch(torch.tensor(rows, dtype=torch.int64)))


def _network(config: RunConfig) -> Key:
    """Tell networks apart by all that decides what their trunks give."""
    return tuple(getattr(config, name) for name in _TRUNK)
