"""The labelled images of the paper's protocol by themselves: to choose settings once for a whole study, test unseen."""

from dataclasses import replace

from ..datasets import DataSet
from .checks import check_count
from .cross_validation import few_shot_folds
from .paper import paper_numbers, paper_split
from .split import Split


def folds_split(
    dataset: DataSet,
    shift: str | None = None,
    split: int = 1,
    *,
    target_shots: int | None = None,
    leave_out: bool = False,
) -> Split:
    """Draw a split of the paper's protocol, and of its labelled target images leave one fold out to test on.

    Where the paper has n target images per class there are n folds, so the splits 1 to n are the folds of its first
    split, the next n those of its second, and so on. The images that the paper tests on are on no side: compare
    settings here, fix them, and run the study with the protocol "paper".

    Args:
        dataset: The data set.
        shift: From which domain to which; None where there is one shift.
        split: (number of the paper's split − 1) · n + number of the fold, both from 1.
        target_shots: Target images per class, where the paper has a choice; None for the fewest.
        leave_out: Leave out classes that only one domain has.

    Raises:
        ValueError: The paper has no protocol for this data set or shift, no such split or no such number.
    """
    numbers = paper_numbers(dataset)
    shots = numbers.target[0] if target_shots is None else target_shots
    check_count(split, "split", 1, numbers.splits * shots)
    number, fold = (split - 1) // shots + 1, (split - 1) % shots
    whole = paper_split(dataset, shift, number, target_shots=target_shots, leave_out=leave_out)
    folds = few_shot_folds(whole.sides["target_train"], seed=number)
    if fold >= len(folds):
        raise ValueError(f"split {split} would be fold {fold + 1}, and no class has more than {len(folds)} pictures")
    train, held = folds[fold]
    return replace(
        whole,
        protocol="paper-folds",
        number=split,
        settings={**whole.settings, "target_shots": shots, "paper_split": number, "fold": fold + 1},
        sides={"source_train": whole.sides["source_train"], "target_train": train, "target_test": held},
        dropped=tuple(one for one in whole.dropped if one.side != "target_test"),
        notes=(
            *(note for note in whole.notes if note.startswith(("source_train", "target_train"))),
            f"target_test is fold {fold + 1} of {shots} of the target images that train in the paper's split {number}",
        ),
    )
