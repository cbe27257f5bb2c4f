"""Adapt a classifier from a domain with many labels to one with a handful per class, by aligning class scatters."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from ._lazy import lazy_parts

if TYPE_CHECKING:
    from . import functional as functional
    from . import losses as losses
    from .functional import scatter_distance as scatter_distance
    from .functional import scatter_tensor as scatter_tensor
    from .heads import SoHoTClassifier as SoHoTClassifier
    from .heads import SoHoTClassifierCV as SoHoTClassifierCV
    from .losses import ScatterAlignment as ScatterAlignment
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
    __all__ += ["__version__"]

try:
    __version__ = version("sohot")
except PackageNotFoundError:  # imported from a source tree that was never installed
    __version__ = "0+unknown"
