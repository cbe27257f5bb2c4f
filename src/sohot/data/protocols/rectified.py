"""The rectified protocol (Hedegaard et al., IEEE TIP 2021): a fixed test set, and a validation set outside it."""

from collections.abc import Sequence

from ..datasets.dataset import DataSet
from ..labelled import LabelledImages
from ..pools import POOL, SUPERVISED
from .drawing import Drawing, Pictures, check_count, seed_of
from .paper import PAPER
from .split import Split

TEST_SEED = 42
SEEDS = 5
TENTHS = 3
"""Tenths of the target that test."""


def rectified_split(
    dataset: DataSet,
    shift: str | None = None,
    split: int = 1,
    *,
    target_shots: int = 3,
    source_shots: int | None = None,
    leave_out: bool = False,
    pool: str = SUPERVISED,
) -> Split:
    """Draw a split of the rectified protocol.

    30 % of the target is the test set, the same for every shift to it and every split; of the rest 3 images per class
    train and all others validate. The test set takes its share of every class, at least one image, and copies of one
    picture go to the same side. The source is as in the paper's protocol. With a pool, the test set is what it is made
    of, and its halves are the same for every split too.

    Args:
        dataset: The data set.
        shift: Source and target domain; None where there is only one shift.
        split: The split number, 1 … 5.
        target_shots: Target images per class that train.
        source_shots: Source images per class that train; None for what the paper draws.
        leave_out: Leave out classes that only one domain has.
        pool: What the unlabelled target images are: one of `POOLS`.

    Raises:
        ValueError: The paper does not use this data set and `source_shots` was not given, or a number is out of range.
    """
    check_count(split, "split", 1, SEEDS)
    check_count(target_shots, "target_shots", 1)
    _, source, _ = dataset.parse_shift(shift)
    if source_shots is None:
        known = PAPER.get(dataset.name)
        if known is None or source not in known.source:
            raise ValueError(f"give source_shots: the paper draws no source images from {source!r} of {dataset.name}")
        source_shots = known.source[source]
    check_count(source_shots, "source_shots", 1)
    drawing = Drawing("rectified", dataset, shift, split, leave_out, pool)
    drawing.draw_source(source_shots)
    fixed = ("rectified", dataset.name, drawing.target_domain, TEST_SEED)
    test = draw_test(drawing.target, seed_of(*fixed))
    tested = set(test)
    rest = [row for row in range(len(drawing.target.images)) if row not in tested]
    validation = drawing.draw_target("target_train", target_shots, rest, "validation")
    drawing.fill_rest("validation", validation)
    drawing.fill_test(test, seed_of(*fixed, POOL))
    return drawing.finish({"source_shots": source_shots, "target_shots": target_shots, "test_seed": TEST_SEED})


def draw_test(pictures: Pictures, seed: int) -> list[int]:
    """Draw the test rows: whole clusters of related images, in hash order, as far as each class has room."""
    images = pictures.images
    room = share_out(images.counts())
    clusters = sorted(pictures.clusters(), key=lambda rows: _order(images, rows, seed))
    chosen: set[int] = set()
    for rows in clusters:
        if all(room[label] >= count for label, count in _per_class(images, rows).items()):
            _accept(images, rows, room, chosen)
    for label in {images.labels[row] for row in range(len(images))} - {images.labels[row] for row in chosen}:
        # Every cluster is larger than the room (many views of few objects): the smallest, if one is left to train.
        own = [rows for rows in clusters if any(images.labels[row] == label for row in rows)]
        if len(own) > 1:
            _accept(images, min(own, key=len), room, chosen)
    return sorted(chosen)


def share_out(counts: Sequence[int]) -> list[int]:
    """Divide 30 % of all images among the classes: whole numbers, the largest remainders first, none empty.

    >>> share_out([7, 10, 23]), share_out([2, 1])
    ([2, 3, 7], [1, 0])
    """
    sizes = [max(count * TENTHS // 10, min(1, count - 1), 0) for count in counts]
    left = sum(counts) * TENTHS // 10 - sum(sizes)
    by_remainder = sorted(range(len(counts)), key=lambda label: (-(counts[label] * TENTHS % 10), label))
    may_grow = [label for label in by_remainder if counts[label] > 1 and counts[label] * TENTHS // 10 == sizes[label]]
    for label in may_grow[: max(left, 0)]:
        sizes[label] += 1
    return sizes


def _order(images: LabelledImages, rows: Sequence[int], seed: int) -> int:
    return seed_of(seed, min(images.name(row) for row in rows))


def _per_class(images: LabelledImages, rows: Sequence[int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for row in rows:
        counts[images.labels[row]] = counts.get(images.labels[row], 0) + 1
    return counts


def _accept(images: LabelledImages, rows: Sequence[int], room: list[int], chosen: set[int]) -> None:
    chosen.update(rows)
    for label, count in _per_class(images, rows).items():
        room[label] -= count
