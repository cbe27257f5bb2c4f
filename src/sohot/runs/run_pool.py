"""The pool of a run: target images without labels, where they come from, and what they are to the test."""

from collections.abc import Sequence
from pathlib import Path

from ..data.contents import new_rows
from ..data.labelled import LabelledImages
from ..data.pools import INDUCTIVE, SUPERVISED, TRANSDUCTIVE
from ..data.unlabelled import halve
from ..methods.options import REST
from ..training.run_files import read_description
from .config import ANY_PROTOCOL, RunConfig
from .description import DESCRIPTION
from .image_search import ImageSearch
from .split_file import read_pool


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
    if config.protocol != INDUCTIVE:
        return rest.without_labels(), rest
    pool, test = halve(rest, config.seed)
    if not len(test):
        raise ValueError(
            f"--protocol {INDUCTIVE} needs two different target images that --shots leaves over, one for the pool and "
            "one for the test; take fewer shots"
        )
    return pool.without_labels(), test


def protocol_on(run: Path, tested: LabelledImages, notes: list[str]) -> str:
    """Tell what the unlabelled images of a finished run are to images that it is tested on.

    Args:
        run: The run's folder, or a head, which has no such images.
        tested: The images.
        notes: Receives how many of them the run has seen.
    """
    pool = read_pool(run) if _had_pool(run) else None
    if pool is None:
        return SUPERVISED
    there = pool.subset([row for row, file in enumerate(pool.files) if file.is_file()])
    if gone := len(pool) - len(there):
        notes.append(f"{gone} unlabelled images of the run can no longer be found: test images might be among them")
    return _judge(there, tested, notes)


def _had_pool(run: Path) -> bool:
    """Tell by its description whether a run had unlabelled images; a run that had none needs no list of its images."""
    if not (run / DESCRIPTION).is_file():
        return False
    files = read_description(run / DESCRIPTION)["config"]["data"].get("files", {})
    return files.get("pool") is not None


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
