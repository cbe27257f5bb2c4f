"""Losses as modules, thin over `sohot.functional`."""

from . import rivals
from .alignment import ScatterAlignment
from .class_weights import ClassWeights
from .starting_point import StartingPoint

__all__ = ["ClassWeights", "ScatterAlignment", "StartingPoint", "rivals"]
