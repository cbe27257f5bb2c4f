"""Images that may be suggested for labelling: those of a folder, a list or a run's pool that have no label yet."""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ..data.contents import content_keys
from ..data.folders import LeftOut, unreadable
from ..data.labelled import LabelledImages, Progress
from .feature_extraction import find_unlabelled
from .run_pool import untrained_rows
from .split_file import read_pool


@dataclass(frozen=True)
class Found:
    """Images that may be suggested.

    Attributes:
        images: The images, without labels.
        left_out: Files that cannot be read, with the reason.
        notes: What else the user should know, one sentence each.
    """

    images: LabelledImages
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find_candidates(
    run: Path, folder: Path | None = None, workers: int | None = None, progress: Progress | None = None
) -> Found:
    """Find the images that may be suggested: those of a folder or a list, or of the run's pool, that have no label yet.

    Args:
        run: The run's folder, or the head's.
        folder: Any folder of images, or a list; None for the run's pool.
        workers: Threads that read images.
        progress: Receives the number of images checked.

    Raises:
        FileNotFoundError: There is no such folder or list.
        ValueError: The run has no pool, no image can be read, or every image is labelled already.
    """
    if folder is None:
        found = _pool_of(run, workers, progress)
    else:
        domain, left_out = find_unlabelled(folder, workers, progress, partly=True)
        found = Found(next(iter(domain.values())), left_out)
    return _without_copies(_without_labelled(found, run))


def _pool_of(run: Path, workers: int | None, progress: Progress | None) -> Found:
    if (pool := read_pool(run)) is None:
        raise ValueError(
            f"{run} has no unlabelled images of its own: give a folder, as in `sohot suggest {run} new_images`"
        )
    told = None if progress is None else partial(progress, "checking images")
    broken = unreadable(pool, on_progress=told, workers=workers)
    if len(broken) == len(pool):
        raise ValueError(
            f"none of the {len(pool)} unlabelled images of {run} can be read; the first, {pool.name(0)}: {broken[0]}"
        )
    readable = pool.subset([row for row in range(len(pool)) if row not in broken])
    return Found(readable, [LeftOut(pool.files[row], broken[row]) for row in sorted(broken)])


def _without_labelled(found: Found, run: Path) -> Found:
    """Leave out images that are byte-identical to one that the run trained on with its label."""
    new, gone = untrained_rows(run, found.images)
    if gone is None:
        return replace(found, notes=[*found.notes, f"{run} does not say which images trained it"])
    if gone:
        found.notes.append(f"{gone} images that trained can no longer be found: copies of them may be suggested")
    if not new:
        raise ValueError(f"all {len(found.images)} images in {found.images.origin} trained with a label already")
    if same := len(found.images) - len(new):
        found.notes.append(f"left out {same} images that are byte-identical to labelled training images")
    return replace(found, images=found.images.subset(new))


def _without_copies(found: Found) -> Found:
    """Keep one of byte-identical images: labelling both would be wasted."""
    first = list({key: row for row, key in reversed([*enumerate(content_keys([found.images])[0])])}.values())
    if copies := len(found.images) - len(first):
        found.notes.append(f"left out {copies} images that are byte-identical to another one")
    return replace(found, images=found.images.subset(sorted(first)))
