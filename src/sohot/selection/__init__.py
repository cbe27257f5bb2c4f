"""Choosing settings by held-out labels: folds, candidates, search, and the choice with its reason."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .candidates import Candidate
    from .choice import AllFailed, Choice, choose
    from .folds import Fold, TooFewShots, deal
    from .search import select
    from .search_space import parse_space
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "candidates": ("Candidate",),
            "choice": ("AllFailed", "Choice", "choose"),
            "folds": ("Fold", "TooFewShots", "deal"),
            "search": ("select",),
            "search_space": ("parse_space",),
        },
    )

__all__ = [
    "AllFailed",
    "Candidate",
    "Choice",
    "Fold",
    "TooFewShots",
    "choose",
    "deal",
    "parse_space",
    "select",
]
