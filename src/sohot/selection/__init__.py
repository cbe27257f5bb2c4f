"""Choosing settings by held-out labels: folds, candidates, search, and the choice with its reason."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .choice import Choice, choose
    from .search import select
    from .search_space import parse_space
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "choice": ("Choice", "choose"),
            "search": ("select",),
            "search_space": ("parse_space",),
        },
    )

__all__ = [
    "Choice",
    "choose",
    "parse_space",
    "select",
]
