"""Experiments: grids of trainings, what computes and keeps them, and the demo."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .demo import METHODS as METHODS
    from .demo import DemoProgress as DemoProgress
    from .demo import describe as describe
    from .demo import run_demo as run_demo
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
