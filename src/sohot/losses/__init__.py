"""Losses between two labelled domains as modules: the alignment of scatters, and those of other papers."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .alignment import ScatterAlignment
    from .ccsa import ContrastiveSemanticAlignment
    from .class_weights import ClassWeights
    from .dage import GraphEmbeddingAlignment
    from .dsne import StochasticNeighborhoodAlignment
    from .starting_point import StartingPoint
    from .supcon import SupervisedContrastive
    from .variance import VariancePenalty
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "alignment": ("ScatterAlignment",),
            "ccsa": ("ContrastiveSemanticAlignment",),
            "class_weights": ("ClassWeights",),
            "dage": ("GraphEmbeddingAlignment",),
            "dsne": ("StochasticNeighborhoodAlignment",),
            "starting_point": ("StartingPoint",),
            "supcon": ("SupervisedContrastive",),
            "variance": ("VariancePenalty",),
        },
    )

__all__ = [
    "ClassWeights",
    "ContrastiveSemanticAlignment",
    "GraphEmbeddingAlignment",
    "ScatterAlignment",
    "StartingPoint",
    "StochasticNeighborhoodAlignment",
    "SupervisedContrastive",
    "VariancePenalty",
]
