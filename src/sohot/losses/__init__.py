"""Losses as modules, thin over `sohot.functional`."""

from .alignment import ScatterAlignment
from .class_weights import ClassWeights

__all__ = ["ClassWeights", "ScatterAlignment"]
