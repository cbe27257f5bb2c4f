"""Second statistics of batch normalisation, from target images: they need no labels."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from .._files import write_atomically
from ..data.image_batches import iter_batches
from ..data.labelled import LabelledImages, Progress
from ..networks.trunk_cache import told, trunk_key
from ..networks.two_passes import TwoPasses, estimate_statistics, passes_of
from ..networks.two_streams import DOMAINS, TwoStreams
from .trunk_folder import image_texts, join_images

MOST_IMAGES = 512
"""Images that are looked at: more change the statistics little."""
LEAST_IMAGES = 8
BATCH = 64

STAGE = "reading the style of target images"


def target_statistics(
    model: TwoStreams,
    targets: Sequence[LabelledImages],
    device: torch.device,
    threads: int | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Tensor]:
    """Return the statistics of target images for the second passes of a network.

    Which images are looked at, and in which order, depends on the images alone, not on their lists.

    Args:
        model: The two streams, with `batch_norm="both"`.
        targets: Target images, labelled or not.
        device: Where to compute.
        threads: Threads that read images.
        folder: Where to keep the statistics for other processes; None to keep none.
        progress: Receives the number of images done.

    Raises:
        ValueError: There are too few images.
    """
    chosen = [_mixed(images) for images in join_images(targets)]
    images = max(chosen, key=len, default=None)
    if images is None or len(images) < LEAST_IMAGES:
        count = 0 if images is None else len(images)
        raise ValueError(f"--batch-norm both needs at least {LEAST_IMAGES} target images, got {count}")
    passes = _passes(model, "target")
    spec = model.inputs["target"]
    file = None
    if folder is not None:
        key = trunk_key(torch.nn.ModuleList(passes), [repr(spec), *image_texts(images)])
        file = folder / f"statistics-{key[:32]}.safetensors"
    if file is not None and (known := _read(file)) is not None:
        return known
    size = -(-len(images) // -(-len(images) // BATCH))  # batches of about the same size
    shown = None if progress is None else partial(progress, STAGE)
    batches = told(iter_batches(images, spec, size, threads), len(images), shown)
    found = {
        f"{number}/{name}": tensor.cpu().contiguous()
        for number, part in enumerate(estimate_statistics(passes, batches, device))
        for name, tensor in part.items()
    }
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, save(found))
    return found


def use_statistics(model: TwoStreams, statistics: Mapping[str, Tensor]) -> None:
    """Let the second passes of a network use the result of `target_statistics`; both streams start alike."""
    for domain in DOMAINS:
        for number, part in enumerate(_passes(model, domain)):
            part.set_second({name: statistics[f"{number}/{name}"] for name in part.second()})


def _passes(model: TwoStreams, domain: str) -> list[TwoPasses]:
    return [*passes_of(model.trunk(domain), model.tails.of(domain))]


def _mixed(images: LabelledImages) -> LabelledImages:
    """Return at most so many images, in an order that mixes classes."""
    hashes = [hashlib.sha256(images.name(row).encode()).digest() for row in range(len(images))]
    return images.subset(sorted(range(len(hashes)), key=hashes.__getitem__)[:MOST_IMAGES])


def _read(file: Path) -> dict[str, Tensor] | None:
    try:
        return load_file(file)
    except (OSError, SafetensorError):
        return None
