"""Adapt a classifier from a domain with many labels to one with a handful per class, by aligning class scatters."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from . import functional, losses
from .functional import scatter_distance, scatter_tensor
from .losses import ScatterAlignment

if TYPE_CHECKING:
    from .estimators import SoHoTClassifier, SoHoTClassifierCV

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

_LAZY = {"SoHoTClassifier": ".estimators", "SoHoTClassifierCV": ".estimators"}
"""Names that need more than torch and numpy: imported when they are first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
