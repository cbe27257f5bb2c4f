"""The loss between the domains that a method calls for."""

from collections.abc import Callable

from ..losses.alignment import ScatterAlignment
from ..losses.ccsa import ContrastiveSemanticAlignment
from ..losses.dage import GraphEmbeddingAlignment
from ..losses.domain_loss import RivalLoss
from ..losses.dsne import StochasticNeighborhoodAlignment
from ..losses.supcon import SupervisedContrastive
from ..losses.variance import VariancePenalty
from ..methods.registry import Method
from ..methods.settings import FitSettings


def make_alignment(method: Method, num_classes: int, settings: FitSettings) -> ScatterAlignment | RivalLoss | None:
    """Build the loss on the features of both domains; None for a method that has none.

    Args:
        method: The method.
        num_classes: Number of classes.
        settings: σ1, σ2 and the rest.

    Example:
        >>> from ..methods.registry import method
        >>> make_alignment(method("ccsa"), 5, FitSettings(rival_weight=0.2))
        ContrastiveSemanticAlignment(num_classes=5, weight=0.2, feature_scale='initial')
        >>> make_alignment(method("s+t"), 5, FitSettings()) is None
        True
    """
    if method.mean_scope is not None:
        return _scatters(method, method.mean_scope, num_classes, settings)
    if method.rival is None or method.rival not in _RIVALS:
        return None
    kind, taken = _RIVALS[method.rival]
    offered = {
        "weight": settings.rival_weight,
        "margin": settings.margin,
        "temperature": settings.temperature,
        "feature_scale": "none" if settings.feature_scale == "none" else "initial",
    }
    chosen = {name: offered[name] for name in taken if offered[name] is not None}
    return kind(num_classes, check_values=False, **chosen)


def _scatters(method: Method, scope: str, num_classes: int, settings: FitSettings) -> ScatterAlignment:
    """Align scatters, or with σ1 = 0 the means alone."""
    return ScatterAlignment(
        num_classes,
        method.orders or (2,),
        sigma1=0.0 if method.rival == "means" else settings.sigma1,
        sigma2=settings.sigma2,
        class_weights=method.class_weights,
        alpha1=settings.alpha1,
        alpha2=settings.alpha2,
        scope=scope,
        estimator=settings.estimator,
        feature_scale=settings.feature_scale,
        check_values=False,  # labels are looked at once before training, NaN shows in the loss
    )


_RIVALS: dict[str, tuple[Callable[..., RivalLoss], tuple[str, ...]]] = {
    "ccsa": (ContrastiveSemanticAlignment, ("weight", "margin", "feature_scale")),
    "dsne": (StochasticNeighborhoodAlignment, ("weight", "margin", "feature_scale")),
    "dage": (GraphEmbeddingAlignment, ("weight",)),
    "supcon": (SupervisedContrastive, ("weight", "temperature")),
    "variance": (VariancePenalty, ("weight", "feature_scale")),
}
"""The losses of other papers, and the settings that each of them takes."""
