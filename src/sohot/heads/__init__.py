"""Classifiers on features: many small fits at once, and their scikit-learn interface."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .baselines import Baseline as Baseline
    from .baselines import baseline as baseline
    from .baselines import baseline_names as baseline_names
    from .classifier import SoHoTClassifier as SoHoTClassifier
    from .cv import SoHoTClassifierCV as SoHoTClassifierCV
    from .fit import fit_stack as fit_stack
    from .problem import FeatureProblem as FeatureProblem
    from .result import StackedFit as StackedFit
    from .target_split import TargetSplit as TargetSplit
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
