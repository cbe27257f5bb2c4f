"""Adapt a classifier from a domain with many labels to one with a handful per class, by aligning class scatters."""

from importlib.metadata import PackageNotFoundError, version

from . import functional, losses
from .functional import scatter_distance, scatter_tensor
from .losses import ScatterAlignment

try:
    __version__ = version("sohot")
except PackageNotFoundError:  # imported from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["ScatterAlignment", "__version__", "functional", "losses", "scatter_distance", "scatter_tensor"]
