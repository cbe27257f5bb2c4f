"""Select settings on held-out labels: folds, candidates, search, and the choice with its reason."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .candidates import Candidate as Candidate
    from .choice import AllFailed as AllFailed
    from .choice import Choice as Choice
    from .choice import choose as choose
    from .folds import Fold as Fold
    from .folds import TooFewShots as TooFewShots
    from .folds import deal as deal
    from .search import select as select
    from .search_space import parse_space as parse_space
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
