"""The scikit-learn face: features in, classifier out."""

from .baselines import Baseline, baseline, baseline_names
from .classifier import SoHoTClassifier
from .cv import SoHoTClassifierCV

__all__ = ["Baseline", "SoHoTClassifier", "SoHoTClassifierCV", "baseline", "baseline_names"]
