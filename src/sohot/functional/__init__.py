"""Pure functions on tensors: scatter tensors, their distances and the alignment loss. No state, no input or output."""

from .alignment import Alignment, class_distances, scatter_alignment
from .cost import explicit_cost, gram_cost, unique_coefficients
from .distance import scatter_distance
from .scatter import scatter_tensor

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
