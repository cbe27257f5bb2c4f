"""Pure functions on tensors: scatter tensors, their distances and the alignment loss. No state, no input or output."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .alignment import Alignment, class_distances, scatter_alignment
    from .cost import explicit_cost, gram_cost, unique_coefficients
    from .distance import scatter_distance
    from .scatter import scatter_tensor
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "alignment": ("Alignment", "class_distances", "scatter_alignment"),
            "cost": ("explicit_cost", "gram_cost", "unique_coefficients"),
            "distance": ("scatter_distance",),
            "scatter": ("scatter_tensor",),
        },
    )

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
