"""Who trains, who selects, who tests: the same lists of files on every machine, free of leaks."""

from .cross_validation import TooFewShots, few_shot_folds, few_shot_rows
from .paper import PAPER, PaperNumbers, folds_split, k_shot_split, paper_split
from .rectified import rectified_split
from .registry import PROTOCOLS, make_split
from .split import RULE, SIDES, Dropped, LeakError, Split, check_leaks, read_split, split_bytes, write_split

__all__ = [
    "PAPER",
    "PROTOCOLS",
    "RULE",
    "SIDES",
    "Dropped",
    "LeakError",
    "PaperNumbers",
    "Split",
    "TooFewShots",
    "check_leaks",
    "few_shot_folds",
    "few_shot_rows",
    "folds_split",
    "k_shot_split",
    "make_split",
    "paper_split",
    "read_split",
    "rectified_split",
    "split_bytes",
    "write_split",
]
