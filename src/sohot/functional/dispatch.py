"""Where an alignment is computed: on the GPU kernels or in plain operations.

Tensors of the types, shapes and strides of an earlier call need no more checks, and go the same way: checks and choices
would take longer than a small problem.
"""

import os
from collections.abc import Hashable
from typing import NamedTuple

import torch
from torch import Tensor

from .checks import check_alignment_input, check_scale
from .composed import Composed, composed_alignment, plain_alignment
from .fused import is_usable
from .fused.autograd import FusedResult, Given, conformed, fused_alignment, planned_alignment
from .fused.plan import Plan, find_plan, forget_plans, kind_of
from .row_weights import row_weights
from .settings import Settings
from .terms import check_weights

MOST_ROUTES = 1024
ORDINARY = (Tensor, torch.nn.Parameter)


class _Route(NamedTuple):
    """Where calls of one kind go."""

    to_kernels: bool
    conforms: bool = False  # the kernels can take the tensors as they are
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
    zeta_bar: Tensor | None = None,
    scale: Tensor | None = None,
    source_weights: Tensor | None = None,
    target_weights: Tensor | None = None,
) -> FusedResult | Composed:
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
        source_weights: See there.
        target_weights: See there.
    """
    given = source, source_labels, target, target_labels, weights, zeta_bar, scale, source_weights, target_weights
    key = _key(given, settings)
    route = None if key is None else _routes.get(key)
    if route is None:
        route = _route(given, settings, key)
    if route.plan is None and (source_weights is not None or target_weights is not None):
        of_rows = row_weights(source, target, source_weights, target_weights)
        assert of_rows is not None
        given = *given[:7], of_rows.source, of_rows.target
    if scale is not None and scale.dim():
        given = *given[:6], scale.reshape(()), *given[7:]
    if route.to_kernels and not route.conforms:
        given = conformed(given)
    if route.plan is not None:
        return planned_alignment(route.plan, given)
    return composed_alignment(given, settings, fused_alignment if route.to_kernels else plain_alignment)


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
    source, source_labels, target, target_labels, weights, zeta_bar, scale, source_weights, target_weights = given
    check_alignment_input(source, source_labels, target, target_labels)
    if weights is not None and zeta_bar is None:
        check_weights(weights, settings.orders, settings.num_classes)
    check_scale(scale)
    row_weights(source, target, source_weights, target_weights)  # checks them
    route = _Route(is_usable(source, target, settings.num_classes))
    if key is None:
        return route
    moving = None if settings.momentum is None else scale
    if route.to_kernels and _can_change(weights, zeta_bar, moving, source.device):
        tensors = conformed(given)
        plan = find_plan(*tensors, settings)
        route = _Route(True, all(x is y for x, y in zip(tensors, given, strict=True)), plan)
    if len(_routes) >= MOST_ROUTES:  # ever-changing batch sizes: start over
        _routes.clear()
    _routes[key] = route
    return route


def _can_change(zeta: Tensor | None, zeta_bar: Tensor | None, scale: Tensor | None, device: torch.device) -> bool:
    """Whether kernels can change these tensors in place; None for one that is missing or stays as it is."""
    changed = (x for x in (None if zeta_bar is None else zeta, zeta_bar, scale) if x is not None)
    return all(x.is_contiguous() and x.device == device for x in changed)


def forget_routes() -> None:
    """Find the way of each call, and plan it, anew: for tests that change how kernels are laid out."""
    forget_plans()
    _routes.clear()
