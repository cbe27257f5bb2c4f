"""The pool of a run: target images without labels, where they come from, and what they are to the test."""

from collections.abc import Sequence
from pathlib import Path

from ..data.contents import new_rows
from ..data.labelled import LabelledImages
from ..data.pools import INDUCTIVE, SUPERVISED, TRANSDUCTIVE
from ..data.unlabelled import halve
from ..methods.options import REST
from .config import ANY_PROTOCOL, RunConfig
from .description import is_head
from .feature_extraction import digests
from .image_search import ImageSearch
from .split_file import SOURCE, TARGET, read_listed, read_pool


def find_pool(search: ImageSearch, rest: LabelledImages | None) -> tuple[LabelledImages | None, LabelledImages | None]:
    """Find the unlabelled images that a configuration asks for.

    Args:
        search: The search for the images of the run.
        rest: The target images that --shots leaves over.

    Returns:
        The pool, None if none is asked for; and what is left to test on.

    Raises:
        ValueError: There are too few images.
    """
    config = search.config
    if config.unlabelled is None:
        return None, rest
    if config.unlabelled != REST:
        return search.unlabelled(), rest
    if rest is None:
        raise ValueError(f"--unlabelled {REST}: --shots {config.shots} leaves no target image over; take fewer shots")
    if config.protocol != INDUCTIVE or config.target_test is not None:
        return rest.without_labels(), rest
    pool, test = halve(rest, config.seed)
    if not len(test):
        raise ValueError(
            f"--protocol {INDUCTIVE} needs two different target images that --shots leaves over, one for the pool and "
            "one for the test; take fewer shots"
        )
    return pool.without_labels(), test


def fit_to_test(run: Path, images: LabelledImages, notes: list[str]) -> tuple[LabelledImages, str]:
    """Leave out of a test what a finished run trained on, and tell what its unlabelled images are to the rest.

    Args:
        run: The run's folder, or a head.
        images: The images to test on.
        notes: Receives how many of them the run has seen.

    Raises:
        ValueError: The run trained on all of them.
    """
    rows, gone = untrained_rows(run, images)
    if not rows:
        raise ValueError(
            f"all {len(images)} images in {images.origin} are byte-identical to training images of the run, so they "
            "cannot test it: give others"
        )
    among = "images of the run can no longer be found: test images might be among them"
    if gone:
        notes.append(f"{gone} training {among}")
    _tell_copies(len(images) - len(rows), "", notes)
    tested = images.subset(rows)
    if (pool := read_pool(run)) is None:
        return tested, SUPERVISED
    there = still_there(pool)
    if gone := len(pool) - len(there):
        notes.append(f"{gone} unlabelled {among}")
    return tested, _judge(there, tested, notes)


def untrained_rows(run: Path, images: LabelledImages) -> tuple[list[int], int | None]:
    """Return the rows whose images are byte-identical to none with a label that a run or a head trained on.

    Returns:
        The rows, and how many training images can no longer be found; None for a head that does not list its images.
    """
    if is_head(run):
        from .stored_head import labelled_contents  # what only a head needs takes a moment to import

        if (known := labelled_contents(run)) is None:
            return [*range(len(images))], None
        return [row for row, digest in enumerate(digests(images)) if digest not in known], 0
    listed = read_listed(run)
    trained = [listed[side] for side in (SOURCE, TARGET) if side in listed]
    there = [still_there(side) for side in trained]
    return new_rows(images, there), sum(map(len, trained)) - sum(map(len, there))


def still_there(images: LabelledImages) -> LabelledImages:
    """Keep the images whose files exist."""
    return images.subset([row for row, file in enumerate(images.files) if file.is_file()])


def unseen(test: LabelledImages | None, trained: Sequence[LabelledImages], notes: list[str]) -> LabelledImages | None:
    """Leave out test images that are byte-identical to a training image: recognizing them proves nothing."""
    if test is None:
        return None
    rows = new_rows(test, trained)
    _tell_copies(len(test) - len(rows), "" if rows else "; none are left to test on", notes)
    return test.subset(rows) if rows else None


def _tell_copies(number: int, rest: str, notes: list[str]) -> None:
    if number:
        notes.append(f"left out of the test: {number} images byte-identical to training images{rest}")


def _judge(pool: LabelledImages, test: LabelledImages | None, notes: list[str]) -> str:
    shared = 0 if test is None else len(test) - len(new_rows(test, [pool]))
    if test is None or not shared:
        return INDUCTIVE
    notes.append(f"{shared} of {len(test)} test images are among the unlabelled images: the accuracy is transductive")
    return TRANSDUCTIVE


def unlike_known(pool: LabelledImages, trained: Sequence[LabelledImages], notes: list[str]) -> LabelledImages:
    """Leave out of the pool what is byte-identical to a labelled training image: its label is known.

    Raises:
        ValueError: Nothing is left.
    """
    rows = new_rows(pool, trained)
    if not rows:
        raise ValueError(
            f"all {len(pool)} unlabelled images are byte-identical to labelled training images: give others"
        )
    if copies := len(pool) - len(rows):
        notes.append(f"left out of the unlabelled images: {copies} byte-identical to labelled training images")
    return pool.subset(rows)


def protocol_of(config: RunConfig, pool: LabelledImages | None, test: LabelledImages | None, notes: list[str]) -> str:
    """Tell what the unlabelled images of a run are to its test.

    Args:
        config: The protocol that is asked for.
        pool: The unlabelled images; None if there are none.
        test: The images to test on; None if there are none.
        notes: Receives how many test images are in the pool.

    Raises:
        ValueError: Another protocol is asked for.
    """
    asked = config.protocol
    if pool is None:
        if asked != ANY_PROTOCOL:
            raise ValueError(f"--protocol {asked} is about unlabelled images, but --split {config.split} lists none")
        return SUPERVISED
    said: list[str] = []
    found = _judge(pool, test, said)
    if asked == INDUCTIVE and found != asked:
        raise ValueError(
            f"--protocol {INDUCTIVE}, but {said[0]}; remove them from the pool or the test, or leave out --protocol"
        )
    if asked == TRANSDUCTIVE and found != asked:
        raise ValueError(
            f"--protocol {TRANSDUCTIVE}, but no test image is among the unlabelled images; leave out --protocol, or "
            f"test on the pool with --unlabelled {REST}"
        )
    notes += said
    return found
