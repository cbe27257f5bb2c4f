"""Adapt a classifier from a domain with many labels to one with a handful per class, by aligning class scatters."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from ._lazy import lazy_parts

if TYPE_CHECKING:
    from . import functional, losses
    from .functional import scatter_distance, scatter_tensor
    from .heads import SoHoTClassifier, SoHoTClassifierCV
    from .losses import ScatterAlignment
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "heads": ("SoHoTClassifier", "SoHoTClassifierCV"),
            "functional": ("scatter_distance", "scatter_tensor"),
            "losses": ("ScatterAlignment",),
        },
    )

try:
    __version__ = version("sohot")
except PackageNotFoundError:  # imported from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "ScatterAlignment",
    "SoHoTClassifier",
    "SoHoTClassifierCV",
    "__version__",
    "functional",
    "losses",
    "scatter_distance",
    "scatter_tensor",
]
