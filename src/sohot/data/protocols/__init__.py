"""Which images train, select and test: the same lists of files on every machine, without leaks."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from ...functional.plain_checks import check_choice
from ..datasets.dataset import DataSet
from ..pools import INDUCTIVE, POOL, POOLS, SUPERVISED, TRANSDUCTIVE
from .cross_validation import TooFewShots, few_shot_folds, few_shot_rows, hold_out
from .paper import PAPER, PaperNumbers, folds_split, k_shot_split, paper_split
from .rectified import rectified_split
from .split import RULE, SIDES, Dropped, LeakError, Split, check_leaks, read_split, split_bytes, write_split

__all__ = [
    "INDUCTIVE",
    "PAPER",
    "POOL",
    "POOLS",
    "PROTOCOLS",
    "RULE",
    "SIDES",
    "SUPERVISED",
    "TRANSDUCTIVE",
    "Dropped",
    "LeakError",
    "PaperNumbers",
    "Split",
    "TooFewShots",
    "check_leaks",
    "check_protocol",
    "draw_names",
    "few_shot_folds",
    "few_shot_rows",
    "folds_split",
    "hold_out",
    "k_shot_split",
    "make_split",
    "paper_split",
    "read_split",
    "rectified_split",
    "split_bytes",
    "write_split",
]


PROTOCOLS: Mapping[str, Callable[..., Split]] = {
    "paper": paper_split,
    "paper-folds": folds_split,
    "rectified": rectified_split,
    "k-shot": k_shot_split,
}


def check_protocol(name: str) -> None:
    """Require the name of a protocol, and explain the names of pools, which are something else.

    >>> check_protocol("inductive")
    Traceback (most recent call last):
    ...
    ValueError: protocol says how images are drawn: paper, paper-folds, rectified, k-shot; give 'inductive' as pool
    """
    if name in POOLS:
        raise ValueError(f"protocol says how images are drawn: {', '.join(PROTOCOLS)}; give {name!r} as pool")
    check_choice(name, tuple(PROTOCOLS), "protocol")


def draw_names(protocol: str) -> list[str]:
    """Return the names of the numbers that a protocol takes.

    >>> draw_names("paper")
    ['target_shots', 'leave_out']
    """
    return [name for name in list(signature(PROTOCOLS[protocol]).parameters)[3:] if name != "pool"]


def make_split(
    protocol: str,
    dataset: DataSet,
    shift: str | None = None,
    split: int = 1,
    *,
    pool: str = SUPERVISED,
    **settings: Any,
) -> Split:
    """Draw a split.

    Args:
        protocol: "paper", "paper-folds", "rectified" or "k-shot".
        dataset: The data set.
        shift: Source and target domain, as `A-W`; None where there is only one shift.
        split: The split number.
        pool: What the unlabelled target images are: "supervised" (there are none), "transductive" (the images that
            test) or "inductive" (half of those that would test, drawn without reading a label; the others test).
        settings: Numbers that the protocol takes: `target_shots`, `source_shots`, `validation_shots`, `leave_out`.

    Raises:
        ValueError: A name or number is wrong, or a leak was found.
    """
    check_protocol(protocol)
    taken = draw_names(protocol)
    for name in settings:
        if name not in taken:
            raise ValueError(f"the protocol {protocol} takes no {name}; it takes {', '.join(taken)}")
    return PROTOCOLS[protocol](dataset, shift, split, pool=pool, **settings)
