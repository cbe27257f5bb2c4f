"""Figures of experiments and of the demo, as PNG and SVG."""

from .demo import draw_pictures

__all__ = ["draw_pictures"]
