"""The loss between the domains, by method."""

from typing import Any

from ..losses.alignment import ScatterAlignment
from ..losses.domain_loss import DomainLoss, loss_class
from ..methods.registry import Method
from ..methods.settings import FitSettings


def make_alignment(method: Method, num_classes: int, settings: FitSettings) -> ScatterAlignment | DomainLoss | None:
    """Build the loss on the features of both domains; None for a method that has none.

    Args:
        method: The method.
        num_classes: Number of classes.
        settings: σ1, σ2 and the rest.

    Example:
        >>> from ..methods.registry import method
        >>> make_alignment(method("ccsa"), 5, FitSettings(loss_weight=0.2))
        ContrastiveSemanticAlignment(num_classes=5, weight=0.2, feature_scale='initial')
        >>> make_alignment(method("s+t"), 5, FitSettings()) is None
        True
    """
    if method.scope is not None:
        return _scatters(method, method.scope, num_classes, settings)
    kind = loss_class(method.loss)
    if kind is None:
        return None
    options: dict[str, Any] = {name: getattr(settings, name) for name in kind.numbers}
    if kind.is_scaled:
        options["feature_scale"] = "none" if settings.feature_scale == "none" else "initial"
    return kind(num_classes, settings.loss_weight, check_values=False, **options)


def _scatters(method: Method, scope: str, num_classes: int, settings: FitSettings) -> ScatterAlignment:
    """Align scatters, or with σ1 = 0 only the means."""
    return ScatterAlignment(
        num_classes,
        method.orders or (2,),
        sigma1=settings.sigma1 if method.aligns else 0.0,
        sigma2=settings.sigma2,
        class_weights=method.class_weights,
        alpha1=settings.alpha1,
        alpha2=settings.alpha2,
        scope=scope,
        estimator=settings.estimator,
        feature_scale=settings.feature_scale,
        check_values=False,  # labels are checked once before training, and NaN shows in the loss
    )
