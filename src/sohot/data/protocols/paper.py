"""The paper's protocols, and variants with other numbers: a handful of target images train, the others test."""

from dataclasses import dataclass, replace

from ..datasets.dataset import DataSet
from ..pools import SUPERVISED
from .cross_validation import few_shot_folds, hold_out
from .drawing import Drawing, check_count
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
    pool: str = SUPERVISED,
) -> Split:
    """Draw a split as the paper does.

    Office-31: 20 images per class from Amazon or 8 from DSLR or Webcam, 3 from the target, 10 splits. RGB-D to
    Caltech256: 50 and 3, 5, 10, 15 or 20, 5 splits. VOC to sketches: 50 and 3, 5 splits. A class that has fewer gives
    all it has, and a note says so.

    Args:
        dataset: The data set.
        shift: Source and target domain; None where there is only one shift.
        split: The split number, from 1.
        target_shots: Target images per class, where the paper has a choice; None for the fewest. For the same split
            number, fewer are a subset of more.
        leave_out: Leave out classes that only one domain has.
        pool: What the unlabelled target images are: one of `POOLS`.

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
    drawing = Drawing("paper", dataset, shift, split, leave_out, pool)
    drawing.draw_source(numbers.source[source])
    rest = drawing.draw_target("target_train", shots, range(len(drawing.target.images)), "target_test")
    drawing.fill_test(rest)
    return drawing.finish({"source_shots": numbers.source[source], "target_shots": shots})


def paper_numbers(dataset: DataSet) -> PaperNumbers:
    """Look up what the paper draws from a data set.

    Raises:
        ValueError: The paper does not use it.
    """
    if dataset.name not in PAPER:
        raise ValueError(f"the paper does not use {dataset.name}; use the protocol k-shot")
    return PAPER[dataset.name]


def k_shot_split(
    dataset: DataSet,
    shift: str | None = None,
    split: int = 1,
    *,
    target_shots: int = 3,
    source_shots: int | None = None,
    validation_shots: int = 0,
    leave_out: bool = False,
    pool: str = SUPERVISED,
) -> Split:
    """Draw a split with any numbers; target images that neither train nor validate are the test set.

    Args:
        dataset: The data set.
        shift: Source and target domain; None where there is only one shift.
        split: Any split number from 0.
        target_shots: Target images per class that train; 0 for none.
        source_shots: Source images per class that train; None for all.
        validation_shots: Target images per class that validate; 0 for no such side.
        leave_out: Leave out classes that only one domain has.
        pool: What the unlabelled target images are: one of `POOLS`.
    """
    check_count(split, "split", 0)
    check_count(target_shots, "target_shots", 0)
    check_count(validation_shots, "validation_shots", 0)
    if source_shots is not None:
        check_count(source_shots, "source_shots", 1)
    drawing = Drawing("k-shot", dataset, shift, split, leave_out, pool)
    drawing.draw_source(source_shots)
    later = "validation" if validation_shots else "target_test"
    rest = drawing.draw_target("target_train", target_shots, range(len(drawing.target.images)), later)
    if validation_shots:
        rest = drawing.draw_target("validation", validation_shots, rest, "target_test")
    drawing.fill_test(rest)
    return drawing.finish(
        {"source_shots": source_shots, "target_shots": target_shots, "validation_shots": validation_shots}
    )


def folds_split(
    dataset: DataSet,
    shift: str | None = None,
    split: int = 1,
    *,
    target_shots: int | None = None,
    leave_out: bool = False,
    pool: str = SUPERVISED,
) -> Split:
    """Draw a split of the paper's protocol and hold out one fold of its labelled target images to test on.

    Where the paper has n target images per class there are n folds, so the splits 1 to n are the folds of its first
    split, the next n those of its second, and so on. The images that the paper tests on are on no side: compare
    settings here, fix them, and run the study with the protocol "paper". With a pool, they are seen without labels as
    in that study: a transductive fold adds the images it tests on, an inductive one has the half that is seen there.

    Args:
        dataset: The data set.
        shift: Source and target domain; None where there is only one shift.
        split: (number of the paper's split − 1) · n + number of the fold, both from 1.
        target_shots: Target images per class, where the paper has a choice; None for the fewest.
        leave_out: Leave out classes that only one domain has.
        pool: What the unlabelled target images are: one of `POOLS`.

    Raises:
        ValueError: The paper has no protocol for this data set or shift, no such split or no such number.
    """
    numbers = paper_numbers(dataset)
    shots = numbers.target[0] if target_shots is None else target_shots
    check_count(split, "split", 1, numbers.splits * shots)
    number, fold = (split - 1) // shots + 1, (split - 1) % shots
    whole = paper_split(dataset, shift, number, target_shots=target_shots, leave_out=leave_out, pool=pool)
    folds = few_shot_folds(whole.sides["target_train"], seed=number)
    if fold >= len(folds):
        raise ValueError(f"split {split} would be fold {fold + 1}, but no class has more than {len(folds)} pictures")
    train, held = folds[fold]
    sides = hold_out(whole, train, held)
    sides["target_test"] = sides.pop("validation")
    return replace(
        whole,
        protocol="paper-folds",
        number=split,
        settings={**whole.settings, "target_shots": shots, "paper_split": number, "fold": fold + 1},
        sides=sides,
        dropped=tuple(drop for drop in whole.dropped if drop.side != "target_test"),
        notes=(
            *(note for note in whole.notes if note.startswith(("source_train", "target_train"))),
            f"target_test is fold {fold + 1} of {shots} of the target images that train in the paper's split {number}",
        ),
    )
