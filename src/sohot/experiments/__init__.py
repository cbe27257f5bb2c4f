"""Experiments: grids of trainings, what computes and keeps them, and the demo."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .demo import METHODS, DemoProgress, describe, run_demo
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "demo": ("DemoProgress", "METHODS", "describe", "run_demo"),
        },
    )

__all__ = [
    "METHODS",
    "DemoProgress",
    "describe",
    "run_demo",
]
