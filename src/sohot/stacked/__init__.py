"""Many small networks on features, trained at once: splits, folds and settings stacked along a leading dimension."""

from .fit import fit_stack
from .problem import FeatureProblem
from .result import StackedFit
from .settings import HeadSettings

__all__ = ["FeatureProblem", "HeadSettings", "StackedFit", "fit_stack"]
