"""Outputs of the frozen trunk for the images of a run, and where there is room for them."""

import shutil
import time
from functools import partial
from pathlib import Path

import psutil
import torch
from torch import Tensor

from .._device import choose_device
from .._files import refuse_link
from ..data.augment import AugmentedImages
from ..data.image_batches import ImageInputs
from ..data.input_spec import InputSpec
from ..data.labelled import LabelledImages, Progress
from ..data.random_views import STRONG
from ..data.view_set import ViewSet
from ..networks.trunk_cache import cache_trunk, open_cache, output_bytes, trunk_key
from ..networks.two_streams import TwoStreams
from ..training.inputs import TensorInputs
from ..training.ranks import Ranks
from .config import RunConfig
from .trunk_folder import image_texts, trunk_batches

OFF, SHARED = "off", "shared"
"""Places besides those of `RunConfig.cache`: images instead of outputs, and the folder of a grid."""


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
    name: str | None = None,
    views: ViewSet | None = None,
) -> TensorInputs:
    """Pass the images of one domain, or views of them, through the trunk.

    Several ranks of a machine share one file: the first writes it, the others memory-map it.

    Args:
        config: Device, threads, and the run's folder for outputs on disk.
        model: The two streams.
        domain: "source" or "target".
        images: The images.
        place: Where to keep the outputs: "device", "memory" or "disk".
        progress: Receives the number of images that passed through the trunk.
        name: Name of a file for them, without its ending; None for that of the domain.
        views: The views of each image to pass; None for the plain one.
    """
    spec, trunk = model.inputs[domain], model.trunk(domain)
    ranks, device = Ranks.here(), choose_device(config.device)
    file = None
    if place == "disk" or ranks.several:
        file = cache_file(config, name or domain)
    seen = [repr(spec)] if views is None else [repr(spec), repr(views)]
    key = None if file is None else trunk_key(trunk, [*seen, *image_texts(images)])
    if file is not None and key is not None and ranks.local > 0:
        outputs = _wait_for(file, len(images), key)
    else:
        what = f"{domain} images" if views is None else f"views of {domain} images ({len(views)} each)"
        stage = f"passing {what} through the frozen layers" if len(trunk) else f"reading {what}"
        told = None if progress is None else partial(progress, stage)
        batches = trunk_batches(images, spec, views, config.read_threads)
        count = None if views is None else len(views)
        outputs = cache_trunk(
            trunk, batches, len(images), file=file, device=device, key=key, progress=told, views=count
        )
    if place == "device":
        # Rows are gathered as they will be used: with the channels of a pixel side by side.
        layout = torch.channels_last if outputs.dim() == 4 and device.type == "cuda" else torch.preserve_format
        outputs = outputs.to(device, memory_format=layout)
    return TensorInputs(outputs)


def cache_folder(config: RunConfig) -> Path:
    """Folder of outputs on disk, inside the run's folder."""
    return (config.out or Path()) / "cache"


def cache_file(config: RunConfig, name: str) -> Path:
    """File of outputs on disk."""
    return refuse_link(cache_folder(config)) / f"{name}.safetensors"


def view_set(config: RunConfig, domain: str, each: int | None = None) -> ViewSet:
    """Return the views of a domain's images, as many of each kind as requested unless `each` says otherwise.

    Source images are all labelled, so nothing is learnt from strong views of them.
    """
    return ViewSet(config.seed, each or config.pool_views, None if domain == "source" else STRONG)


def view_rows(config: RunConfig, domain: str, images: LabelledImages | None) -> int:
    """Count the rows that the views of a domain's images take, for `TrunkStore.place`."""
    return 0 if images is None else len(images) * len(view_set(config, domain))


def fitting_views(config: RunConfig, model: TwoStreams, domain: str, rows: int, place: str, name: str) -> int:
    """Return how many views of each kind can be kept of each image: as requested, else what fits, at least 1.

    Args:
        config: Number of views, device, and the run's folder for outputs on disk.
        model: The two streams.
        domain: "source" or "target".
        rows: Number of images.
        place: Where to keep the outputs: "device", "memory" or "disk".
        name: Name of their file; what is in it already needs no more room.
    """
    if place == "disk":
        file = cache_file(config, name)
        room = _free_disk(file.parent) + (file.stat().st_size if file.is_file() else 0)
    elif place == "device" and choose_device(config.device).type == "cuda":
        room = torch.cuda.mem_get_info()[0] / 4
    else:
        room = _free_memory() / 2
    size = rows * len(view_set(config, domain, 1)) * output_bytes(model.trunk(domain), model.inputs[domain])
    return max(min(config.pool_views, int(room // max(size, 1))), 1)


def _wait_for(file: Path, rows: int, key: str) -> Tensor:
    """Wait for a cache that another rank writes; if that rank fails, the launcher ends this one too."""
    while (found := open_cache(file, rows, key)) is None:
        time.sleep(0.2)
    return found


def image_inputs(config: RunConfig, spec: InputSpec, images: LabelledImages) -> ImageInputs | AugmentedImages:
    """Return images unchanged, or cropped and mirrored anew in each step."""
    return augmented_images(config, spec, images) if config.augment else ImageInputs(images, spec, config.read_threads)


def augmented_images(config: RunConfig, spec: InputSpec, images: LabelledImages) -> AugmentedImages:
    """Return images cropped and mirrored anew in each step.

    Decoded images are kept while there is room: as for the trunk's outputs, at most half of the free memory, and a
    quarter of it on a GPU. Free memory is measured while images are already held, hence factors of one and a third;
    source and target share that.
    """
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


def _free_disk(folder: Path) -> float:
    """Return the free room on the disk of a folder that may not exist yet, in bytes."""
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    return float(shutil.disk_usage(there).free)


def _free_memory() -> float:
    """Estimate the free memory, in bytes."""
    return float(psutil.virtual_memory().available)
