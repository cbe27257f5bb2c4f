"""Experiments: the demo, its task and its pictures."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .demo import METHODS, DemoProgress, describe, run_demo
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "demo": ("METHODS", "DemoProgress", "describe", "run_demo"),
        },
    )

__all__ = ["METHODS", "DemoProgress", "describe", "run_demo"]
