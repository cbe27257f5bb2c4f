"""All that works on features: regressions, their average, honest probabilities."""

from .average import Average, AverageFit, AverageOptions, HeldOut, fit_average
from .regression import Heads, PoolTerm, fit_heads, weighted_targets
from .rows import Rows

__all__ = [
    "Average",
    "AverageFit",
    "AverageOptions",
    "Heads",
    "HeldOut",
    "PoolTerm",
    "Rows",
    "fit_average",
    "fit_heads",
    "weighted_targets",
]
