"""The objective of every fit of a stack: cross-entropy, penalties, the loss between the domains, that of the pool."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..methods.settings import HeadSettings
from . import network
from .alignment import StackedAlignment
from .domain_loss import column, make_loss
from .layout import StackLayout
from .logistic import POOL_TOLERANCE, fit_logistic
from .network import Parameters, Shape, of_network
from .optimizer import FlatParameters
from .pool import Pool, class_prior


class StackedStart:
    """`sohot.losses.StartingPoint` for a stack: α/2 ‖w − w⁰‖² of each fit's networks, not its classifiers.

    `weight_decay` is similar and pulls the same way in a linear network, which starts at D = 0. But it shrinks only
    matrices, by a share that the optimiser does not rescale; this penalty is part of the objective, also holds the
    offsets, and holds a hidden layer at its initial draw instead of 0. If both are set, this one applies.

    Args:
        settings: Settings of each fit.
        parameters: Initial values of the fits; copied now.
    """

    def __init__(self, settings: Sequence[HeadSettings], parameters: Parameters) -> None:
        self.start = {name: x.detach().clone() for name, x in parameters.items() if of_network(name)}
        pulls = torch.tensor([of_fit.start_pull() for of_fit in settings], dtype=torch.float64)
        self.pulls = pulls.to(next(iter(self.start.values())))

    def __call__(self, parameters: Parameters) -> Tensor:
        """Compute the penalty of each fit: (F,)."""
        moved = [(parameters[name] - start).square().flatten(1).sum(1) for name, start in self.start.items()]
        return self.pulls / 2 * torch.stack(moved).sum(0)


ZETA = "zeta"
_NEWEST = 0.1  # share of the newest features in the running scale of feature_scale="unit", as in ScatterAlignment


class Losses(NamedTuple):
    """Each (F,); the parts carry no gradient and, with the penalties and the pool's term, add up to the loss."""

    loss: Tensor
    cross_entropy: Tensor
    alignment: Tensor  # or the loss of another paper


class StackedObjective:
    """`sohot.training.Objective` for all fits of a stack at once.

    Args:
        settings: Settings of each fit; they differ only in numbers.
        shape: Shapes of the networks.
        layout: The layout of the rows.
        rows: Prepared features, (F, slots, k).
        pool: Prepared features of unlabelled target rows.
    """

    def __init__(
        self,
        settings: Sequence[HeadSettings],
        shape: Shape,
        layout: StackLayout,
        rows: Tensor,
        pool: Pool | None = None,
    ) -> None:
        first = settings[0]
        method = first.resolved_method()
        self.settings = settings
        self.shape, self.rows, self.source_slots = shape, rows, layout.sizes[0]
        self.pool = pool
        self.classes = layout.classes().to(rows.device).view(1, -1, 1).expand(len(settings), -1, 1)
        self.row_weights = _row_weights(settings, layout).to(rows)
        self.head_decay = column([s.head_decay for s in settings], rows)
        self.coupling = column([s.coupling for s in settings], rows)
        self.norm_bound = None
        if first.norm_bound is not None:
            self.norm_bound = column([s.norm_bound for s in settings], rows)
        self.alignment: StackedAlignment | None = None
        self.feature_scale = first.feature_scale
        self.scale = torch.ones(len(settings), dtype=rows.dtype, device=rows.device)
        self.domain_loss = make_loss(settings, layout, rows)
        self.start_point: StackedStart | None = None
        if method.scope is None:
            return
        self.alignment = StackedAlignment(layout, method.orders, method.scope, first.estimator, shape.size, rows)
        sigmas = [[s.sigma2, *(sigma / len(method.orders) for sigma in s.sigmas())] for s in settings]
        self.weights = torch.tensor(sigmas, dtype=torch.float64).unsqueeze(2).to(rows) * self.alignment.shares
        self.learns_zeta = method.class_weights == "learned"
        alphas = [[s.alpha2, *(s.alpha1 / len(method.orders) for _ in method.orders)] for s in settings]
        self.alphas = torch.tensor(alphas, dtype=torch.float64).to(rows)

    @torch.no_grad()
    def start(self, parameters: Parameters) -> None:
        """Record the initial state: the weights to hold there, and the spread to divide features by."""
        if any(of_fit.start_pull() for of_fit in self.settings):
            self.start_point = StackedStart(self.settings, parameters)
        is_scaled = self.alignment is not None or (self.domain_loss is not None and self.domain_loss.loss.is_scaled)
        if is_scaled and self.feature_scale != "none":
            start = network.both_features(parameters, self.shape, self.rows, self.source_slots, self.norm_bound)
            spread = self._spread(start)
            self.scale = torch.where(spread > 0, spread, 1.0)

    @torch.no_grad()
    def start_classifiers(self, parameters: FlatParameters) -> None:
        """Set the classifiers to the minimum of their objective while the networks rest: a logistic regression."""
        rest = network.both_features(parameters.named, self.shape, self.rows, self.source_slots, self.norm_bound)
        problem = rest, self.classes.squeeze(2), self.row_weights, self.head_decay, self.shape.num_classes
        tolerance = None if self.pool is None else POOL_TOLERANCE
        heads = fit_logistic(*problem, tolerance=tolerance)
        if self.pool is not None:
            rows = network.features(parameters.named, "target", self.pool.rows, self.norm_bound)
            if self.settings[0].used_prior() == "estimated":
                logits = torch.baddbmm(heads.bias.unsqueeze(1), rows, heads.weight)
                self.pool = self.pool._replace(prior=class_prior(logits, self.pool.weights))
            heads = fit_logistic(*problem, pool=self.pool._replace(rows=rows), start=heads, tolerance=tolerance)
        for domain in dict.fromkeys(map(self.shape.head, network.DOMAINS)):
            parameters.flat[:, parameters.ranges[f"{domain}.classifier"]] = heads.weight.flatten(1)
            parameters.flat[:, parameters.ranges[f"{domain}.bias"]] = heads.bias

    def _spread(self, features: Tensor) -> Tensor:
        """Measure the spread as the loss does: the alignment uses only classes in both domains, others use all."""
        if self.alignment is not None:
            return self.alignment(features, self.scale).energy.sqrt()
        return self.scale if self.domain_loss is None else self.domain_loss.spread(features)

    def __call__(self, parameters: Parameters) -> Losses:
        """Compute the losses of all fits."""
        rows = network.both_features(parameters, self.shape, self.rows, self.source_slots, self.norm_bound)
        scores = network.both_logits(parameters, self.shape, rows, self.source_slots)
        # Only each slot's own class matters, so log-sum-exp minus one entry is less work than a log-softmax.
        of_rows = scores.logsumexp(2) - scores.gather(2, self.classes).squeeze(2)
        cross_entropy = (of_rows * self.row_weights).sum(1)
        loss = cross_entropy + network.head_penalty(parameters, self.shape, self.head_decay, self.coupling)
        if self.start_point is not None:
            loss = loss + self.start_point(parameters)
        if self.pool is not None:
            unlabelled = network.features(parameters, "target", self.pool.rows, self.norm_bound)
            loss = loss + self.pool.term(network.logits(parameters, "target", unlabelled))
        if self.alignment is not None:
            aligned = self._align(parameters, rows, self.alignment)
        elif self.domain_loss is not None:
            aligned = self.domain_loss(rows, self.scale)
        else:
            return Losses(loss, cross_entropy.detach(), torch.zeros_like(cross_entropy))
        return Losses(loss + aligned, cross_entropy.detach(), aligned.detach())

    def _align(self, parameters: Parameters, rows: Tensor, alignment: StackedAlignment) -> Tensor:
        found = alignment(rows, self.scale)
        weights, penalty = self.weights, None
        if self.learns_zeta:
            zeta = parameters[ZETA]
            penalty = ((zeta - 1).square().sum(2) * self.alphas).sum(1)
            weights = weights * (zeta if alignment.classes is None else zeta.index_select(2, alignment.classes))
        total = (weights * found.distances).sum((1, 2))
        if self.feature_scale == "unit":
            spread = found.energy.sqrt()
            moved = torch.lerp(self.scale, spread, _NEWEST)
            self.scale.copy_(torch.where(spread > 0, moved, self.scale))
        return total if penalty is None else total + penalty


def zeta_shape(settings: HeadSettings, num_classes: int) -> tuple[int, int] | None:
    """Shape of the learned class weights of one fit, the means first; None if there are none."""
    method = settings.resolved_method()
    if method.class_weights != "learned":
        return None
    return 1 + len(method.orders), num_classes


def _row_weights(settings: Sequence[HeadSettings], layout: StackLayout) -> Tensor:
    """Weight of each slot in the cross-entropy: (F, slots)."""
    weights = layout.taken().double()
    counts = layout.source_counts.sum(1), layout.target_counts.sum(1)
    for own, of_fit, source, target in zip(weights, settings, *(c.tolist() for c in counts), strict=True):
        if of_fit.target_weight is None or source == 0:
            own /= source + target
        else:
            own[: layout.sizes[0]] *= (1 - of_fit.target_weight) / source
            own[layout.sizes[0] :] *= of_fit.target_weight / target
    return weights
