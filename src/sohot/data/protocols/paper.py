"""The protocols of the paper: a handful of target images per class train, all other target images test."""

from dataclasses import dataclass

from ..datasets import DataSet
from .checks import check_count
from .drawing import Drawing
from .split import Split


@dataclass(frozen=True)
class PaperNumbers:
    """What the paper draws: images per class of each source domain, of the target (choices), and how many splits."""

    source: dict[str, int]
    target: tuple[int, ...]
    splits: int


PAPER = {
    "office31": PaperNumbers({"amazon": 20, "dslr": 8, "webcam": 8}, (3,), 10),
    "rgbd-caltech": PaperNumbers({"depth": 50}, (3, 5, 10, 15, 20), 5),
    "voc-sketches": PaperNumbers({"voc": 50}, (3,), 5),
}


def paper_split(
    dataset: DataSet,
    shift: str | None = None,
    split: int = 1,
    *,
    target_shots: int | None = None,
    leave_out: bool = False,
) -> Split:
    """Draw a split as the paper does.

    Office-31: 20 images per class from Amazon or 8 from DSLR or Webcam, 3 from the target, 10 splits. RGB-D to
    Caltech256: 50 and 3, 5, 10, 15 or 20, 5 splits. VOC to sketches: 50 and 3, 5 splits. A class that has fewer gives
    what it has, and a note says so.

    Args:
        dataset: The data set.
        shift: From which domain to which; None where there is one shift.
        split: The number of the split, from 1.
        target_shots: Target images per class, where the paper has a choice; None for the fewest. With the same number
            of the split, fewer are a part of more.
        leave_out: Leave out classes that only one domain has.

    Raises:
        ValueError: The paper has no protocol for this data set or shift, no such split or no such number.
    """
    numbers = paper_numbers(dataset)
    _, source, _ = dataset.parse_shift(shift)
    if source not in numbers.source:
        raise ValueError(f"the paper has no shift from {source!r} in {dataset.name}; use the protocol k-shot")
    check_count(split, "split", 1, numbers.splits)
    shots = numbers.target[0] if target_shots is None else target_shots
    if shots not in numbers.target:
        choice = ", ".join(map(str, numbers.target))
        raise ValueError(
            f"target_shots must be one of {choice} in the paper's protocol for {dataset.name}, got {shots}"
        )
    drawing = Drawing("paper", dataset, shift, split, leave_out)
    drawing.draw_source(numbers.source[source])
    rest = drawing.draw_target("target_train", shots, range(len(drawing.target.images)), "target_test")
    drawing.fill_rest("target_test", rest)
    return drawing.finish({"source_shots": numbers.source[source], "target_shots": shots})


def paper_numbers(dataset: DataSet) -> PaperNumbers:
    """Look up what the paper draws from a data set.

    Raises:
        ValueError: The paper does not use it.
    """
    if dataset.name not in PAPER:
        raise ValueError(f"the paper does not use {dataset.name}; use the protocol k-shot")
    return PAPER[dataset.name]
