"""What `sohot predict` and `sohot features` do on many machines."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..data.folders import LeftOut
from ..data.labelled import LabelledImages
from ..runs.block_job import BlockJob
from ..runs.feature_blocks import Extracting, ImageBlock, blocks_of, readable_in, require_classes, write_npz
from ..runs.label_blocks import Labelling, count_refused, write_csv
from ..runs.predictions import BATCH
from ..runs.ray_blocks import RayBlocks
from ..runs.shards import Shards, digest_of, rows_per_shard
from .output import bar, say, say_left_out


def label_on_cluster(
    cluster: RayBlocks, work: Labelling, files: Sequence[Path], views: int, out: Path, quiet: bool
) -> tuple[int, int, list[LeftOut]]:
    """Label images on a cluster, into a folder of shards or a CSV file.

    Args:
        cluster: The cluster.
        work: What labels them.
        files: The images.
        views: Views of each image that the model looks at.
        out: The file or the folder.
        quiet: Show no progress.

    Returns:
        How many images were labelled, how many of them `unknown`, and which could not be read.
    """
    rows = rows_per_shard(len(files), max(BATCH // views, 1))
    firsts = range(0, len(files), rows)
    about = {
        "command": "predict",
        "model": work.stamp,
        "images": len(files),
        "list": digest_of([*map(os.fspath, files), *map(os.path.abspath, files[:1])]),
        "top": work.top,
        "unknown_below": work.below,
        "rows": rows,
    }
    sizes = [min(rows, len(files) - first) for first in firsts]
    job = BlockJob("labelling images", about, sizes, lambda number: files[firsts[number] :][:rows], work)
    with job.shards(out, ".csv") as (shards, file):
        _complete(job, shards, cluster, quiet)
        unreadable, labelled, unknown = shards.left_out(), shards.rows(), count_refused(shards)
        say_left_out(unreadable)
        if not labelled:
            raise ValueError(f"none of the {len(files)} files can be read")
        if file is not None:
            write_csv(shards, file, work.top)
    return labelled, unknown, unreadable


def extract_on_cluster(
    cluster: RayBlocks,
    work: Extracting,
    domains: Mapping[str, LabelledImages],
    out: Path,
    *,
    each_class: bool,
    quiet: bool,
) -> tuple[dict[str, LabelledImages], list[LeftOut]]:
    """Extract features on a cluster, into a folder of shards or a feature file.

    Args:
        cluster: The cluster.
        work: What extracts them.
        domains: The images of each domain; whether they can be read is not known yet.
        out: The file or the folder.
        each_class: Require that some image of each class can be read.
        quiet: Show no progress.

    Returns:
        The images of each domain that have features, and those that could not be read.
    """
    blocks = blocks_of(domains, work.views)
    about = {
        "command": "features",
        "network": dict(work.network),
        "images": sum(map(len, domains.values())),
        "list": digest_of(
            text
            for name, images in domains.items()
            for row, label in enumerate(images.labels)
            for text in (name, os.path.abspath(images.files[row]), images.name(row), images.classes[label])
        ),
        "labelled": work.labelled,
        "rows": max(len(rows) for _, rows in blocks),
    }

    def block(number: int) -> ImageBlock:
        name, rows = blocks[number]
        return ImageBlock(name, domains[name].subset(rows))

    job = BlockJob("features", about, [len(rows) for _, rows in blocks], block, work)
    with job.shards(out, ".npz") as (shards, file):
        _complete(job, shards, cluster, quiet)
        unreadable, readable = shards.left_out(), readable_in(shards, domains)
        say_left_out(unreadable)
        for name, images in domains.items() if each_class else ():
            require_classes(images, readable[name], unreadable)
        if file is not None:
            write_npz(shards, file, readable, work.network, labelled=work.labelled)
    return readable, unreadable


def _complete(job: BlockJob, shards: Shards, cluster: RayBlocks, quiet: bool) -> None:
    """Compute what is missing, and tell what was there and what was lost on the way."""
    if (there := shards.count - len(shards.missing())) and not quiet:
        say(f"{there} of {shards.count} shards are there already in {shards.folder}")
    with bar(quiet) as progress:
        again = job.complete(shards, cluster, progress)
    if again:
        say(f"note: workers were lost; {again} of {shards.count} blocks were begun again")
