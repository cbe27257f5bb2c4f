"""Experiments: grids of trainings, and the code that computes and stores them."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .grid import Grid as Grid
    from .grid import read_grid as read_grid
    from .grid_run import plan_grid as plan_grid
    from .grid_run import run_grid as run_grid
    from .store import Store as Store
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
