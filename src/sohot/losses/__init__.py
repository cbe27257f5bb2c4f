"""Losses as modules, thin over `sohot.functional`."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from . import rivals
    from .alignment import ScatterAlignment
    from .class_weights import ClassWeights
    from .starting_point import StartingPoint
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "rivals": (),
            "alignment": ("ScatterAlignment",),
            "class_weights": ("ClassWeights",),
            "starting_point": ("StartingPoint",),
        },
    )

__all__ = ["ClassWeights", "ScatterAlignment", "StartingPoint", "rivals"]
