"""Methods by name, and every option that shapes a training: one table for images, features and the command line."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .registry import METHOD_NAMES, OTHER_NAMES, Method, method
    from .settings import FitSettings, HeadSettings
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "registry": ("METHOD_NAMES", "Method", "OTHER_NAMES", "method"),
            "settings": ("FitSettings", "HeadSettings"),
        },
    )

__all__ = [
    "METHOD_NAMES",
    "OTHER_NAMES",
    "FitSettings",
    "HeadSettings",
    "Method",
    "method",
]
