"""Where an alignment is computed: on the GPU kernels or in plain operations.

Tensors of the types, shapes and strides of an earlier call need no more checks, and go the same way: checks and choices
would take longer than a small problem.
"""

import os
from collections.abc import Hashable
from typing import NamedTuple

import torch
from torch import Tensor

from .autograd import weighted_distances
from .checks import check_alignment_input, check_scale
from .fused import is_usable
from .fused.autograd import FusedResult, Given, conformed, fused_alignment, planned_alignment
from .fused.plan import Plan, find_plan, forget_plans, kind_of
from .row_weights import RowWeights, row_weights
from .settings import Settings
from .terms import check_weights, constant_weights, term_shares

MOST_ROUTES = 1024
ORDINARY = (Tensor, torch.nn.Parameter)


class Alignment(NamedTuple):
    """What `scatter_alignment` returns; only `loss` carries a gradient."""

    loss: Tensor  # scalar
    terms: Tensor  # (1 + orders,) contributions of the means and of each order to the loss
    distances: Tensor  # (1 + orders, C) squared distances, the means first; 0 where a term is left out
    spread: Tensor  # scalar: root of the (weighted) mean squared distance of a row from the centre of its class


class _Route(NamedTuple):
    """Where calls of one kind go."""

    to_kernels: bool
    conforms: bool = True  # the kernels can take the tensors as they are
    plan: Plan | None = None  # None where a compiler or `torch.func` looks on


_routes: dict[Hashable, _Route] = {}


def align(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    settings: Settings,
    *,
    weights: Tensor | None = None,
    scale: Tensor | None = None,
    source_weights: Tensor | None = None,
    target_weights: Tensor | None = None,
) -> Alignment | FusedResult:
    """Compute `scatter_alignment`; terms are weighed by `settings.sigmas` and, if given, by `weights`."""
    given = source, source_labels, target, target_labels, weights, scale, source_weights, target_weights
    key = _key(given, settings)
    route = None if key is None else _routes.get(key)
    if route is None:
        route = _route(given, settings, key)
    of_rows = row_weights(source, target, source_weights, target_weights)
    if scale is not None:
        scale = scale.reshape(())
    if not route.to_kernels:
        return _plain_alignment(source, source_labels, target, target_labels, weights, scale, of_rows, settings)
    given = source, source_labels, target, target_labels, weights, scale, *(of_rows or (None, None))
    if not route.conforms:
        given = conformed(given)
    return fused_alignment(given, settings) if route.plan is None else planned_alignment(route.plan, given)


def _key(given: Given, settings: Settings) -> Hashable:
    """Everything that decides where a call goes and whether it is in order; None where tensors may stand for others."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return None
    kinds: list[Hashable] = [os.environ.get("SOHOT_KERNEL"), settings]
    for x in given:
        if x is not None and (type(x) not in ORDINARY or x.layout is not torch.strided):
            return None
        kinds.append(None if x is None else kind_of(x))
    return tuple(kinds)


def _route(given: Given, settings: Settings, key: Hashable) -> _Route:
    """Check the types and shapes of a call and find where it goes; kept under the key, if there is one."""
    source, source_labels, target, target_labels, weights, scale, source_weights, target_weights = given
    check_alignment_input(source, source_labels, target, target_labels)
    if weights is not None:
        check_weights(weights, settings.orders, settings.num_classes)
    check_scale(scale)
    of_rows = row_weights(source, target, source_weights, target_weights)
    route = _Route(is_usable(source, target, settings.num_classes), conforms=False)
    if key is None:
        return route
    if route.to_kernels:
        tensors = conformed(given)
        plan = find_plan(*tensors[:6], of_rows is not None, settings)
        route = _Route(True, all(x is y for x, y in zip(tensors, given, strict=True)), plan)
    if len(_routes) >= MOST_ROUTES:  # ever-changing batch sizes: start over
        _routes.clear()
    _routes[key] = route
    return route


def forget_routes() -> None:
    """Find the way of each call, and plan it, anew: for tests that change how kernels are laid out."""
    forget_plans()
    _routes.clear()


def _plain_alignment(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    weights: Tensor | None,
    scale: Tensor | None,
    of_rows: RowWeights | None,
    settings: Settings,
) -> Alignment:
    if weights is None or settings.sigmas is not None:
        constants = constant_weights(settings.sigmas or (1.0,) * (1 + len(settings.orders)), source)
        weights = constants if weights is None else constants * weights.to(constants.dtype)
    weights = weights.to(source.device, torch.promote_types(weights.dtype, source.dtype))
    shares = term_shares(
        source_labels,
        target_labels,
        settings.num_classes,
        settings.orders,
        settings.estimator,
        weights.dtype,
        of_rows,
        settings.needed,
    )
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
