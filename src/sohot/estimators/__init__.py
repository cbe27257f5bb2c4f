"""The scikit-learn face: features in, classifier out."""

from .baselines import Baseline, baseline, baseline_names

__all__ = ["Baseline", "baseline", "baseline_names"]
