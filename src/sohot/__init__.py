"""Adapt a classifier from a domain with many labels to one with a handful per class, by aligning class scatters."""

from typing import TYPE_CHECKING

from ._lazy import lazy_parts

if TYPE_CHECKING:
    from . import functional as functional
    from . import losses as losses
    from ._version import __version__ as __version__
    from .api import Run as Run
    from .api import fit as fit
    from .api import load as load
    from .functional import scatter_distance as scatter_distance
    from .functional import scatter_tensor as scatter_tensor
    from .heads import SoHoTClassifier as SoHoTClassifier
    from .heads import SoHoTClassifierCV as SoHoTClassifierCV
    from .heads import TargetSplit as TargetSplit
    from .losses import ScatterAlignment as ScatterAlignment
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
