"""Losses of other papers for the same setting, so that methods can be compared in one harness."""

from .ccsa import ContrastiveSemanticAlignment
from .dage import GraphEmbeddingAlignment
from .dsne import StochasticNeighborhoodAlignment
from .supcon import SupervisedContrastive
from .variance import VariancePenalty

__all__ = [
    "ContrastiveSemanticAlignment",
    "GraphEmbeddingAlignment",
    "StochasticNeighborhoodAlignment",
    "SupervisedContrastive",
    "VariancePenalty",
]
