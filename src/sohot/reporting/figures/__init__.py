"""Figures of experiments and of the demo, as PNG and SVG."""

from .class_weights import weight_histograms
from .confusion import confusion_figure
from .curves import curve_figure, shots_figure, sigma_figure
from .demo import draw_pictures
from .features import DomainFeatures, ellipse_figure, point_figure, write_feature_figures
from .writing import write_figures

__all__ = [
    "DomainFeatures",
    "confusion_figure",
    "curve_figure",
    "draw_pictures",
    "ellipse_figure",
    "point_figure",
    "shots_figure",
    "sigma_figure",
    "weight_histograms",
    "write_feature_figures",
    "write_figures",
]
