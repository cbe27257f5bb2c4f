"""The alignment loss as a module: one object for a training loop."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from ..functional.class_weighting import ClassWeighting
from ..functional.composed import align
from ..functional.plain_checks import ESTIMATORS, check_choice, check_count, check_not_negative, check_orders
from ..functional.settings import Settings
from ..functional.terms import term_weights
from ..methods.choices import CLASS_WEIGHTS, FEATURE_SCALES, SCOPES
from .class_weights import ClassWeights
from .sources import domain_pair

Parts = dict[str, Tensor]


class ScatterAlignment(nn.Module):
    """Align the class scatters of a labelled source and a labelled target domain.

    For the classes present in both domains (C of them) the loss is

        1/C Σ_c [ σ2 ζ̄_c ‖μ_c − μ*_c‖² + σ1/R Σ_r ζ_cr ‖X_c⁽ʳ⁾ − X*_c⁽ʳ⁾‖²_F ] + α1/R Σ_r ‖ζ_r − 1‖² + α2 ‖ζ̄ − 1‖²

    over the R orders r. Without class weights all ζ are 1 and the last two terms are absent. A scatter with too few
    rows to be meaningful (one row; two rows for odd orders) is left out; its class keeps the mean term. If the domains
    share no class in a batch, the loss is 0 with a zero gradient.

    Args:
        num_classes: Number of classes; labels are integers in 0 … num_classes − 1.
        orders: Orders of the scatter tensors: (2,) aligns covariances, (2, 3, 4) also skewness and tails.
        sigma1: Weight of the scatter terms; one number, or one for each order.
        sigma2: Weight of the mean term.
        class_weights: None, "learned" (parameters ζ and ζ̄ of this module: pass them to the optimiser) or "closed-form"
            (the best ζ for the current distances, recomputed in each call).
        alpha1: Strength of the pull of ζ towards 1. Not divided by the number of classes, as in the paper.
        alpha2: The same for ζ̄.
        scope: "class", or "marginal" to align all rows of a domain as if they were one class (labels are ignored).
        estimator: "plugin" (the paper), or "unbiased": zero on average if both domains follow one distribution.
            Its value can be negative, so the features need a bound.
        feature_scale: "none" (the paper), "initial" (divide features by one constant: the root mean squared distance of
            a row from its class centre, in the first call) or "unit" (the same as a running average). Without scaling,
            σ1 depends on the size of the features to the power of twice the order.
        num_sources: Number of source domains; each is aligned with the target.
        check_values: Check in each call for labels out of range, and NaN or infinite features.
        most_rows: Most rows that a class has in a batch, of both domains together, if this is known. On a GPU, classes
            of up to 64 rows are aligned by fused kernels; without this number labels are counted in each call, which
            waits for the GPU. A class with more rows than this makes the loss NaN there.

    Example:
        >>> import torch
        >>> from sohot import ScatterAlignment
        >>> align = ScatterAlignment(num_classes=3, orders=(2, 3), sigma1=0.1, sigma2=0.1)
        >>> source, target = torch.randn(60, 8, requires_grad=True), torch.randn(9, 8)
        >>> loss = align(source, torch.arange(60) % 3, target, torch.arange(9) % 3)
        >>> loss.backward()
    """

    momentum = 0.1
    """Share of the newest batch in the running scale of feature_scale="unit"."""

    scale: Tensor

    def __init__(
        self,
        num_classes: int,
        orders: Iterable[int] = (2,),
        sigma1: float | Sequence[float] = 1.0,
        sigma2: float = 1.0,
        class_weights: str | None = None,
        alpha1: float = 0.1,
        alpha2: float = 0.1,
        scope: str = "class",
        estimator: str = "plugin",
        feature_scale: str = "none",
        num_sources: int = 1,
        check_values: bool = True,
        most_rows: int | None = None,
    ) -> None:
        super().__init__()
        self.num_classes = check_count(num_classes, "num_classes")
        self.num_sources = check_count(num_sources, "num_sources")
        self.orders = check_orders(orders)
        self.sigma1 = _one_per_order(sigma1, self.orders)
        self.sigma2 = check_not_negative(sigma2, "sigma2")
        self.alpha1 = check_not_negative(alpha1, "alpha1")
        self.alpha2 = check_not_negative(alpha2, "alpha2")
        self.scope = check_choice(scope, SCOPES, "scope")
        self.estimator = check_choice(estimator, ESTIMATORS, "estimator")
        self.feature_scale = check_choice(feature_scale, FEATURE_SCALES, "feature_scale")
        self.check_values = check_values
        self.most_rows = None if most_rows is None else check_count(most_rows, "most_rows")
        if class_weights is not None:
            check_choice(class_weights, CLASS_WEIGHTS, "class_weights, if given,")
        self.class_weights = class_weights
        self.weights = ClassWeights(len(self.orders), self._num_groups) if class_weights == "learned" else None
        self.register_buffer("scale", torch.zeros(()))  # 0: not known yet

    @property
    def _num_groups(self) -> int:
        """Number of pairs of a class and a source domain, each aligned separately."""
        return (self.num_classes if self.scope == "class" else 1) * self.num_sources

    @property
    def zeta(self) -> Tensor:
        """ζ, the learned weights of the scatters, for inspection: shape (orders, classes × sources), at least 0."""
        return self._learned().zeta

    @property
    def zeta_bar(self) -> Tensor:
        """ζ̄, the learned weights of the means, for inspection: shape (classes × sources,), at least 0."""
        return self._learned().zeta_bar

    def _learned(self) -> ClassWeights:
        if self.weights is None:
            raise ValueError("this ScatterAlignment has no learned weights: build it with class_weights='learned'")
        return self.weights

    def forward(
        self,
        source: Tensor | Sequence[Tensor],
        source_labels: Tensor | Sequence[Tensor] | None,
        target: Tensor,
        target_labels: Tensor | None,
        *,
        source_domains: Tensor | None = None,
        return_parts: bool = False,
    ) -> Tensor | tuple[Tensor, Parts]:
        """Compute the loss of one batch.

        Args:
            source: Source features (n, d), rows in any order; for several sources a list of such tensors, or one
                tensor together with `source_domains`.
            source_labels: Classes of the source rows (n,), or a list of them. May be None if `scope` is "marginal".
            target: Target features (m, d).
            target_labels: Classes of the target rows (m,). May be None if `scope` is "marginal".
            source_domains: For several sources in one tensor: the domain 0 … num_sources − 1 of each source row.
            return_parts: Also return the parts of the loss, for logging.

        Returns:
            The loss, a scalar; with `return_parts` a pair of the loss and a dict with the keys "means", "order2", … and
            "weight_penalty", whose values carry no gradient and add up to the loss.
        """
        batch = domain_pair(
            source,
            source_labels,
            target,
            target_labels,
            source_domains,
            num_classes=self.num_classes if self.scope == "class" else None,
            num_sources=self.num_sources,
            check_values=self.check_values,
        )
        learned = self.weights
        result = align(
            batch.source,
            batch.source_groups,
            batch.target,
            batch.target_groups,
            self._settings(),
            weights=None if learned is None else learned.raw_zeta,
            zeta_bar=None if learned is None else learned.raw_zeta_bar,
            scale=None if self.feature_scale == "none" else self.scale,
            most_rows=self.most_rows if self.scope == "class" else None,
        )
        if not return_parts:
            return result.loss
        names = ["means", *(f"order{order}" for order in self.orders), "weight_penalty"]
        return result.loss, dict(zip(names, result.parts, strict=True))

    def _settings(self) -> Settings:
        momentum = weighting = None
        if self.feature_scale == "initial":
            momentum = 0.0  # keep the first
        elif self.feature_scale == "unit" and self.training:
            momentum = self.momentum
        if self.class_weights is not None:
            weighting = ClassWeighting(self.sigma1, self.sigma2, self.alpha1, self.alpha2)
        return Settings(
            self._num_groups,
            self.orders,
            term_weights(self.sigma2, self.sigma1),
            self.estimator == "unbiased",
            check_values=self.check_values,
            weighting=weighting,
            momentum=momentum,
        )

    def extra_repr(self) -> str:
        """Show the settings when the module is printed."""
        return (
            f"num_classes={self.num_classes}, orders={self.orders}, sigma1={self.sigma1}, sigma2={self.sigma2}, "
            f"class_weights={self.class_weights!r}, scope={self.scope!r}, estimator={self.estimator!r}, "
            f"feature_scale={self.feature_scale!r}"
        )


def _one_per_order(sigma1: float | Sequence[float], orders: tuple[int, ...]) -> tuple[float, ...]:
    if isinstance(sigma1, Sequence) and not isinstance(sigma1, str):
        if len(sigma1) != len(orders):
            raise ValueError(f"sigma1 must hold one number for each of the orders {orders}, got {len(sigma1)}")
        return tuple(check_not_negative(sigma, "each of sigma1") for sigma in sigma1)
    return (check_not_negative(sigma1, "sigma1"),) * len(orders)
