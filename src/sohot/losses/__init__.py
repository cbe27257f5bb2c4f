"""Losses between two labelled domains as modules: scatter alignment, and the losses of other papers."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .alignment import ScatterAlignment as ScatterAlignment
    from .ccsa import ContrastiveSemanticAlignment as ContrastiveSemanticAlignment
    from .class_weights import ClassWeights as ClassWeights
    from .dage import GraphEmbeddingAlignment as GraphEmbeddingAlignment
    from .dsne import StochasticNeighborhoodAlignment as StochasticNeighborhoodAlignment
    from .starting_point import StartingPoint as StartingPoint
    from .supcon import SupervisedContrastive as SupervisedContrastive
    from .variance import VariancePenalty as VariancePenalty
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
