"""The alignment from plain operations: for CPUs, and around the kernels where compilers and `torch.func` look on."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .autograd import weighted_distances
from .class_weighting import ClassWeighting, closed_form_weight, weight_penalty
from .fused.autograd import FusedResult, Given
from .row_weights import RowWeights
from .settings import Settings
from .terms import constant_weights, term_shares


class Alignment(NamedTuple):
    """What `scatter_alignment` returns; only `loss` carries a gradient."""

    loss: Tensor  # scalar
    terms: Tensor  # (1 + orders,) contributions of the means and of each order to the loss
    distances: Tensor  # (1 + orders, C) squared distances, the means first; 0 where a term is left out
    spread: Tensor  # scalar: root of the (weighted) mean squared distance of a row from the centre of its class


class Composed(NamedTuple):
    """An alignment with weights of classes and a running scale; the same fields as `FusedResult`."""

    loss: Tensor
    terms: Tensor
    distances: Tensor
    spread: Tensor
    penalty: Tensor | None

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The terms and the penalty on the weights of classes: they add up to the loss."""
        penalty = torch.zeros_like(self.loss) if self.penalty is None else self.penalty
        return tuple(part.detach() for part in (*self.terms.unbind(), penalty))


Simple = Callable[[Given, Settings], Alignment | FusedResult]
"""Computes an alignment without weighing classes and without a running scale."""


def composed_alignment(given: Given, settings: Settings, simple: Simple) -> Composed:
    """Weigh the classes as settings ask for, align, and move the scale."""
    source, source_labels, target, target_labels, weights, zeta_bar, scale, *of_rows = given
    moving = scale
    if scale is not None and settings.momentum is not None:
        scale = scale.clone()  # what the gradient needs
    basic = settings._replace(weighting=None, momentum=None)
    penalty, weighting = None, settings.weighting

    def aligned(weights: Tensor | None) -> Alignment | FusedResult:
        data = source, source_labels, target, target_labels
        return simple((*data, weights, None, scale, of_rows[0], of_rows[1]), basic)

    if weighting is not None and zeta_bar is not None and weights is not None:
        with torch.no_grad():  # nothing below keeps these tensors for backward, so changing them in place is safe
            weights.clamp_(min=0)
            zeta_bar.clamp_(min=0)
        penalty = weight_penalty(weights, zeta_bar, weighting.alpha1, weighting.alpha2)
        weights = torch.cat([zeta_bar.unsqueeze(0), weights])
    elif weighting is not None:
        # The weights minimise the loss, so its derivative through them is zero: they are constants to autograd.
        with torch.no_grad():
            zeta_bar, weights = _best_weights(aligned(None).distances, given, weighting, basic)
        penalty = weight_penalty(weights, zeta_bar, weighting.alpha1, weighting.alpha2)
        weights = torch.cat([zeta_bar.unsqueeze(0), weights])
    found = aligned(weights)
    loss = found.loss if penalty is None else found.loss + penalty
    if moving is not None and settings.momentum is not None:
        _move(moving, found.spread, settings.momentum)
    return Composed(loss, found.terms, found.distances, found.spread, penalty)


def _best_weights(
    distances: Tensor, given: Given, weighting: ClassWeighting, settings: Settings
) -> tuple[Tensor, Tensor]:
    """Return ζ̄ and ζ that minimise the loss for fixed distances."""
    of_rows = None if given[7] is None or given[8] is None else RowWeights(given[7], given[8])
    shares = _shares(given, settings, distances.dtype, of_rows)
    zeta_bar = closed_form_weight(distances[0], shares[0], weighting.sigma2, weighting.alpha2)
    zeta = [
        closed_form_weight(distances[k], shares[k], sigma, weighting.alpha1)
        for k, sigma in enumerate(weighting.sigma1, start=1)
    ]
    return zeta_bar, torch.stack(zeta)


@torch.no_grad()
def _move(scale: Tensor, spread: Tensor, momentum: float) -> None:
    """Replace the scale by that of the next batch: a running average; with a momentum of 0, the first that is known."""
    known = scale > 0
    if momentum == 0:
        scale.copy_(torch.where(known, scale, spread))
    else:
        spread = spread.to(scale.dtype)
        moved = torch.where(known, torch.lerp(scale, spread, momentum), spread)
        scale.copy_(torch.where(spread > 0, moved, scale))


def _shares(given: Given, settings: Settings, dtype: torch.dtype, of_rows: RowWeights | None) -> Tensor:
    classes, orders = settings.num_classes, settings.orders
    return term_shares(given[1], given[3], classes, orders, settings.estimator, dtype, of_rows, settings.needed)


def plain_alignment(given: Given, settings: Settings) -> Alignment:
    """Align in plain operations."""
    source, source_labels, target, target_labels, weights, _, scale, source_weights, target_weights = given
    of_rows = None
    if source_weights is not None and target_weights is not None:
        of_rows = RowWeights(source_weights, target_weights)
    if weights is None or settings.sigmas is not None:
        constants = constant_weights(settings.sigmas or (1.0,) * (1 + len(settings.orders)), source)
        weights = constants if weights is None else constants * weights.to(constants.dtype)
    weights = weights.to(source.device, torch.promote_types(weights.dtype, source.dtype))
    shares = _shares(given, settings, weights.dtype, of_rows)
    shared_weights = weights * shares
    loss, distances, energy = weighted_distances(
        source,
        source_labels,
        target,
        target_labels,
        shared_weights,
        settings.orders,
        unbiased=settings.unbiased,
        scale=scale,
        row_weights=of_rows,
        check_values=settings.check_values,
    )
    terms = (shared_weights.detach() * distances).sum(1)
    return Alignment(loss, terms, distances * (shares > 0), energy.sqrt())
