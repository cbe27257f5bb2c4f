"""The alignment with weights of classes and a running scale, on the GPU kernels or in plain operations."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from .autograd import weighted_distances
from .checks import check_alignment_input, check_scale
from .class_weighting import ClassWeighting, closed_form_weight, weight_penalty
from .fused import rows_to_hold
from .fused.autograd import FusedResult, fused_alignment
from .settings import Labelled, Settings
from .terms import check_weights, constant_weights, term_shares


class Alignment(NamedTuple):
    """What `scatter_alignment` returns; only `loss` carries a gradient."""

    loss: Tensor  # scalar
    terms: Tensor  # (1 + orders,) contributions of the means and of each order to the loss
    distances: Tensor  # (1 + orders, C) squared distances, the means first; 0 where a term is left out
    spread: Tensor  # scalar: root of the mean squared distance of a row from the centre of its class


class Composed(NamedTuple):
    """An alignment with weights of classes and a running scale."""

    loss: Tensor
    alignment: Alignment | FusedResult  # without the penalty
    penalty: Tensor | None

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The terms and the penalty on the weights of classes: they add up to the loss."""
        penalty = torch.zeros_like(self.loss) if self.penalty is None else self.penalty
        return tuple(part.detach() for part in (*self.alignment.terms.unbind(), penalty))


def align(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    settings: Settings,
    *,
    weights: Tensor | None = None,
    zeta_bar: Tensor | None = None,
    scale: Tensor | None = None,
    most_rows: int | None = None,
) -> Composed:
    """Compute `scatter_alignment` with weights of classes and a running scale.

    Args:
        source: As all tensors that follow, see `scatter_alignment`.
        source_labels: See there.
        target: See there.
        target_labels: See there.
        settings: Everything else. With `settings.weighting`, classes are weighed by the best ζ or by learned ones; with
            `settings.momentum`, the scale is moved, in place, to that of the next batch.
        weights: Weights of terms and classes, by which `settings.sigmas` are multiplied; or, with `zeta_bar`, ζ.
        zeta_bar: ζ̄ (C,), if weights are learned. Both are raised to 0, in place, where they are below.
        scale: See there.
        most_rows: See there.
    """
    check_alignment_input(source, source_labels, target, target_labels)
    if weights is not None and zeta_bar is None:
        check_weights(weights, settings.orders, settings.num_classes)
    check_scale(scale)
    data = source, source_labels, target, target_labels
    divisor = scale.reshape(()) if scale is not None and scale.dim() else scale
    rows = rows_to_hold(*data, settings.num_classes, most_rows)
    aligned: Callable[[Tensor | None], Alignment | FusedResult]
    if rows is None:
        aligned = partial(_plain_alignment, data, settings, divisor)
    else:
        aligned = partial(fused_alignment, data, settings, divisor, rows)
    penalty, weighting = None, settings.weighting
    if weighting is not None:
        if zeta_bar is not None and weights is not None:
            with torch.no_grad():  # nothing below keeps these tensors for backward, so changing them in place is safe
                weights.clamp_(min=0)
                zeta_bar.clamp_(min=0)
        else:
            # The weights minimise the loss, so its derivative through them is zero: they are constants to autograd.
            with torch.no_grad():
                zeta_bar, weights = _best_weights(aligned(None).distances, data, weighting, settings)
        penalty = weight_penalty(weights, zeta_bar, weighting.alpha1, weighting.alpha2)
        weights = torch.cat([zeta_bar.unsqueeze(0), weights])
    alignment = aligned(weights)
    if scale is not None and settings.momentum is not None:
        _move(scale, alignment.spread, settings.momentum)
    return Composed(alignment.loss if penalty is None else alignment.loss + penalty, alignment, penalty)


def _best_weights(
    distances: Tensor, data: Labelled, weighting: ClassWeighting, settings: Settings
) -> tuple[Tensor, Tensor]:
    """Return ζ̄ and ζ that minimise the loss for fixed distances."""
    shares = _shares(data, settings, distances.dtype)
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


def _shares(data: Labelled, settings: Settings, dtype: torch.dtype) -> Tensor:
    _, source_labels, _, target_labels = data
    labels = source_labels, target_labels, settings.num_classes
    return term_shares(*labels, settings.orders, settings.estimator, dtype)


def _plain_alignment(data: Labelled, settings: Settings, scale: Tensor | None, weights: Tensor | None) -> Alignment:
    source = data[0]
    if weights is None or settings.sigmas is not None:
        constants = constant_weights(settings.sigmas or (1.0,) * (1 + len(settings.orders)), source)
        weights = constants if weights is None else constants * weights.to(constants.dtype)
    weights = weights.to(source.device, torch.promote_types(weights.dtype, source.dtype))
    shares = _shares(data, settings, weights.dtype)
    shared_weights = weights * shares
    loss, distances, energy = weighted_distances(
        *data,
        shared_weights,
        settings.orders,
        unbiased=settings.unbiased,
        scale=scale,
        check_values=settings.check_values,
    )
    terms = (shared_weights.detach() * distances).sum(1)
    return Alignment(loss, terms, distances * (shares > 0), energy.sqrt())
