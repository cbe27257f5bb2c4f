"""Classifiers on features: many small fits at once, and their scikit-learn face."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .baselines import Baseline, baseline, baseline_names
    from .classifier import SoHoTClassifier
    from .cv import SoHoTClassifierCV
    from .fit import fit_stack
    from .problem import FeatureProblem
    from .result import StackedFit
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "baselines": ("Baseline", "baseline", "baseline_names"),
            "classifier": ("SoHoTClassifier",),
            "cv": ("SoHoTClassifierCV",),
            "fit": ("fit_stack",),
            "problem": ("FeatureProblem",),
            "result": ("StackedFit",),
        },
    )

__all__ = [
    "Baseline",
    "FeatureProblem",
    "SoHoTClassifier",
    "SoHoTClassifierCV",
    "StackedFit",
    "baseline",
    "baseline_names",
    "fit_stack",
]
