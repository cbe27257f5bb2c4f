"""Pure functions on tensors: scatter tensors, their distances and the alignment loss. No state, no input or output."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .alignment import Alignment, class_distances, scatter_alignment
    from .distance import explicit_cost, gram_cost, scatter_distance, unique_coefficients
    from .scatter import scatter_tensor
else:
    # Same as `sohot._lazy`, repeated here because this package imports nothing of sohot but its own modules.
    _PARTS = {
        "alignment": ("Alignment", "class_distances", "scatter_alignment"),
        "distance": ("explicit_cost", "gram_cost", "scatter_distance", "unique_coefficients"),
        "scatter": ("scatter_tensor",),
    }
    _HOMES = {name: module for module, names in _PARTS.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in _HOMES and name not in _PARTS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{_HOMES.get(name, name)}")
        return getattr(module, name) if name in _HOMES else module

    def __dir__() -> list[str]:
        return sorted({*globals(), *_PARTS, *_HOMES})


__all__ = [
    "Alignment",
    "class_distances",
    "explicit_cost",
    "gram_cost",
    "scatter_alignment",
    "scatter_distance",
    "scatter_tensor",
    "unique_coefficients",
]
