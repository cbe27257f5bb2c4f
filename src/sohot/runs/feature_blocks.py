"""Features of many images, block by block: what a worker does with a block, and the file that is made of its shards."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._device import choose_device
from ..data.folders import LeftOut, check_no_class_lost, unreadable
from ..data.labelled import LabelledImages
from .feature_extraction import BATCH, as_set, extract
from .feature_network import FeatureNetwork, create_feature_backbone
from .feature_set import FeatureSet, write_features
from .label_blocks import require_seen
from .shards import Shards, encode, rows_per_shard


class ImageBlock(NamedTuple):
    """Some images of one domain."""

    domain: str
    images: LabelledImages


@dataclass(frozen=True)
class Extracting:
    """Passes blocks of images through a network; a `BlockWork`.

    Attributes:
        backbone: Name of the network.
        network: What it must be, as `FeatureNetwork.as_json` describes it.
        weights: File of its weights, if it needs one.
        tap: Where its features are taken.
        size: Side of the images.
        channels: 3 (colour) or 1.
        views: Average the features over so many views of each image.
        labelled: Keep the classes.
    """

    backbone: str
    network: Mapping[str, Any]
    weights: Path | None
    tap: str | None
    size: int | None
    channels: int
    views: int
    labelled: bool

    def open(self, device: str, read_threads: int) -> Callable[[ImageBlock], bytes]:
        """Build the network; return what makes a shard of a block."""
        built = create_feature_backbone(
            self.backbone, weights=self.weights, channels=self.channels, tap=self.tap, size=self.size
        )
        if FeatureNetwork.of(built, self.views).as_json() != self.network:
            raise ValueError(f"{self.backbone} has other weights or layers here than where the command runs")
        place = choose_device(device)

        def features(block: ImageBlock) -> bytes:
            images = block.images
            broken = unreadable(images, workers=read_threads)
            left_out = [LeftOut(images.files[row], broken[row]) for row in sorted(broken)]
            require_seen(images.files, left_out)
            readable = images.subset([row for row in range(len(images)) if row not in broken])
            if not len(readable):
                return encode(as_columns(None, block.domain, built.feature_size), left_out)
            found = extract(
                {block.domain: readable},
                built,
                views=self.views,
                labelled=self.labelled,
                device=place,
                workers=read_threads,
            )
            return encode(as_columns(found, block.domain, built.feature_size), left_out)

        return features


def blocks_of(domains: Mapping[str, LabelledImages], views: int) -> list[tuple[str, range]]:
    """Cut the images of each domain into blocks: the domain, and the rows in it."""
    total = sum(map(len, domains.values()))
    rows = rows_per_shard(total, max(BATCH // views, 1))
    return [
        (name, range(first, min(first + rows, len(images))))
        for name, images in domains.items()
        for first in range(0, len(images), rows)
    ]


def as_columns(found: FeatureSet | None, domain: str, width: int) -> dict[str, Any]:
    """Arrange features in columns; None for a block of which no image can be read."""
    import pyarrow as arrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

    files, contents = (found.files, found.contents) if found is not None else ((), ())
    labels = [name or None for name in found.names().tolist()] if found is not None else []
    values = found.features.ravel() if found is not None else np.empty(0, np.float32)
    return {
        "file": arrow.array(files, arrow.string()),
        "domain": arrow.array([domain] * len(files), arrow.string()),
        "label": arrow.array(labels, arrow.string()),
        "content": arrow.array(contents, arrow.string()),
        "features": arrow.FixedSizeListArray.from_arrays(arrow.array(values, arrow.float32()), width),
    }


def readable_in(shards: Shards, domains: Mapping[str, LabelledImages]) -> dict[str, LabelledImages]:
    """Return the images of each domain that have a row in the shards."""
    there: dict[str, set[str]] = {name: set() for name in domains}
    for table in shards.tables(["domain", "file"]):
        for domain, file in zip(*(column.to_pylist() for column in table.columns), strict=True):
            there[domain].add(file)
    return {
        name: images.subset([row for row in range(len(images)) if images.name(row) in there[name]])
        for name, images in domains.items()
    }


def require_classes(images: LabelledImages, readable: LabelledImages, left_out: Sequence[LeftOut]) -> None:
    """Require that some image of each class could be read, as `sohot.data.folders.keep_readable` does."""
    reasons = {one.path: one.reason for one in left_out}
    broken = {row: reasons[file] for row, file in enumerate(images.files) if file in reasons}
    check_no_class_lost(images, readable, broken)


def write_npz(
    shards: Shards, out: Path, readable: Mapping[str, LabelledImages], network: Mapping[str, Any], *, labelled: bool
) -> None:
    """Write the feature file that one process would have written; the features themselves stay on disk.

    Args:
        shards: The shards, all of them.
        out: The file.
        readable: The images of each domain, see `readable_in`.
        network: What made the features.
        labelled: Store the classes.
    """
    contents: list[str] = []
    raw = shards.folder / "_features.tmp"
    try:
        with open(raw, "wb") as stream:
            for table in shards.tables(["content", "features"]):
                contents += table.column("content").to_pylist()
                for chunk in table.column("features").chunks:
                    stream.write(chunk.flatten().to_numpy().tobytes())
        features = np.memmap(raw, np.float32, "r").reshape(len(contents), -1)
        write_features(out, as_set(readable, features, contents, dict(network), labelled=labelled))
    finally:
        raw.unlink(missing_ok=True)
