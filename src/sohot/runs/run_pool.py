"""The pool of a run: target images without labels, where they come from, and what they are to the test."""

from collections.abc import Sequence

from ..data.contents import new_rows
from ..data.labelled import LabelledImages
from ..data.unlabelled import halve
from ..methods.choices import INDUCTIVE, SUPERVISED, TRANSDUCTIVE
from ..methods.options import REST
from .config import ANY_PROTOCOL, RunConfig
from .image_search import ImageSearch


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
    shared = 0 if test is None else len(test) - len(new_rows(test, [pool]))
    if asked == INDUCTIVE and test is not None and shared:
        raise ValueError(
            f"--protocol {INDUCTIVE}: {shared} of {len(test)} test images are byte-identical to unlabelled images; "
            f"remove these from the pool or the test, or call the accuracy what it is with --protocol {TRANSDUCTIVE}"
        )
    if asked == TRANSDUCTIVE and not shared:
        raise ValueError(
            f"--protocol {TRANSDUCTIVE}: no test image is among the unlabelled images; leave out --protocol, or test "
            f"on the pool with --unlabelled {REST}"
        )
    if test is None or not shared:
        return INDUCTIVE
    notes.append(f"{shared} of {len(test)} test images are among the unlabelled images: the accuracy is transductive")
    return TRANSDUCTIVE
