"""From images to features: each image passes through the network once."""

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..data.datasets import open_dataset
from ..data.decode import default_workers
from ..data.folders import LeftOut, Walk, unreadable
from ..data.image_batches import iter_batches
from ..data.image_places import scan_images
from ..data.image_shards import images_in, scan_shards, shards_at
from ..data.labelled import LabelledImages, Progress
from ..data.manifest_rows import is_manifest, read_rows
from ..data.names import natural_key, printable
from ..data.readers import find_reader
from ..data.shard_files import open_image
from ..networks.backbone import Backbone
from ..networks.inference import run_views
from .feature_network import FeatureNetwork
from .feature_set import NO_LABEL, FeatureSet

BATCH = 32
"""Most images, or views of them, that pass through the network together."""


def find_domains(
    root: Path,
    dataset: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    *,
    check: bool = True,
) -> tuple[dict[str, LabelledImages], list[LeftOut]]:
    """Find the images of a folder or a list: one folder per class, or a known data set with its domains.

    Args:
        root: The folder or the list.
        dataset: Name of a known data set in it; None for one domain, named after the folder or the list.
        workers: Threads that read images.
        progress: Receives the number of images checked.
        check: Decode every image, and leave out those that cannot be read.

    Returns:
        The images of each domain, and what was left out and why.
    """
    if dataset is None:
        report = None if progress is None else partial(progress, "checking images")
        scan = (scan_shards if shards_at(root) else scan_images)(root, check=check, on_progress=report, workers=workers)
        return {_name(root): scan.images}, scan.left_out
    opened = open_dataset(dataset, root)
    domains, left_out = {}, list(opened.left_out)
    for name, images in opened.domains.items():
        report = None if progress is None else partial(progress, f"checking images of {name}")
        broken = unreadable(images, on_progress=report, workers=workers) if check else {}
        left_out += [LeftOut(images.files[row], broken[row]) for row in sorted(broken)]
        domains[name] = images.subset([row for row in range(len(images)) if row not in broken])
    return domains, left_out


def is_flat(root: Path) -> bool:
    """Tell whether a folder holds images, but no folders, which would be classes; or a list has no label at all."""
    if shards := shards_at(root):
        return not any(image.label for shard in shards for image in images_in(shard))
    if is_manifest(root):
        return not any(row.label for row in read_rows(root))
    folders, files = Walk(root).entries(root)
    return bool(files) and not folders


def find_unlabelled(
    root: Path,
    workers: int | None = None,
    progress: Progress | None = None,
    *,
    partly: bool = False,
    check: bool = True,
) -> tuple[dict[str, LabelledImages], list[LeftOut]]:
    """Find all images of a folder or a list, whatever their classes, as those of one class; see `find_domains`.

    With `partly`, rows of a list that have a label are left out, if others have none.
    """
    report = None if progress is None else partial(progress, "checking images")
    if shards_at(root):
        scan = scan_shards(root, labelled=False, check=check, on_progress=report, workers=workers)
    else:
        scan = scan_images(root, labelled=False, partly=partly, check=check, on_progress=report, workers=workers)
    return {_name(root): scan.images}, scan.left_out


def _name(root: Path) -> str:
    return printable(root.stem if root.is_file() else root.resolve().name) or "images"


def extract(
    domains: Mapping[str, LabelledImages],
    backbone: Backbone,
    *,
    views: int = 1,
    labelled: bool = True,
    device: torch.device | str = "cpu",
    workers: int | None = None,
    progress: Progress | None = None,
) -> FeatureSet:
    """Pass all images of some domains through a network.

    Args:
        domains: The images of each domain. Classes of the same name are the same.
        backbone: The network; its features are those that `sohot fit` aligns.
        views: Average the features over so many views of each image, see `sohot.data.views`.
        labelled: Store the classes; False for images whose classes are unknown.
        device: Where to compute.
        workers: Threads that read images.
        progress: Receives the number of images done.
    """
    full = _with_images(domains)
    features = []
    for name, images in full.items():
        batches = iter_batches(images, backbone.input, max(BATCH // views, 1), workers, views=views)
        done = 0
        for outputs in run_views(backbone.to(device), batches, views, torch.device(device)):
            features.append(outputs.float().numpy())
            done += len(outputs)
            if progress is not None:
                progress(f"features of {name}", done, len(images))
    contents = [text for images in full.values() for text in digests(images)]
    network = FeatureNetwork.of(backbone, views).as_json()
    return as_set(full, np.concatenate(features), contents, network, labelled=labelled)


def as_set(
    domains: Mapping[str, LabelledImages],
    features: npt.NDArray[np.float32],
    contents: Sequence[str],
    network: dict[str, Any],
    *,
    labelled: bool,
) -> FeatureSet:
    """Put features beside the images that they are of, domain after domain.

    Args:
        domains: The images of each domain.
        features: A row for each image.
        contents: The digest of each image.
        network: What made the features.
        labelled: Store the classes.
    """
    full = _with_images(domains)
    place = {name: number for number, name in enumerate(classes_of(full))}
    labels = [place[images.classes[label]] for images in full.values() for label in images.labels]
    return FeatureSet(
        features=features,
        labels=np.asarray(labels if labelled else [NO_LABEL] * len(labels), dtype=np.int64),
        classes=tuple(place) if labelled else (),
        files=tuple(images.name(row) for images in full.values() for row in range(len(images))),
        contents=tuple(contents),
        domains=np.repeat(np.arange(len(full)), [len(images) for images in full.values()]),
        domain_names=tuple(full),
        network=network,
    )


def _with_images(domains: Mapping[str, LabelledImages]) -> dict[str, LabelledImages]:
    full = {name: images for name, images in domains.items() if len(images)}
    if not full:
        raise ValueError("there are no images to extract features from")
    return full


def classes_of(domains: Mapping[str, LabelledImages]) -> list[str]:
    """Return the classes of all domains that have images, in natural order."""
    return sorted({name for images in domains.values() if len(images) for name in images.classes}, key=natural_key)


def digests(images: LabelledImages) -> list[str]:
    """Return a digest of each image's bytes, to find copies across feature files."""
    many = find_reader(images.reader).content

    def digest(row: int) -> str:
        file, part = images.files[row], images.part(row)
        found = hashlib.sha256(_content(file) if many is None else many(file, part)).hexdigest()[:32]
        return f"{found}#{part}" if many is None and part else found

    with ThreadPoolExecutor(default_workers(), thread_name_prefix="sohot-hash") as pool:
        return list(pool.map(digest, range(len(images))))


def _content(file: Path) -> bytes:
    with open_image(file) as stream:
        return stream.read()
