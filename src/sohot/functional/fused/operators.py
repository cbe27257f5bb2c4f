"""The kernels as two opaque operators, for compilers, and as the functions behind them."""

from typing import Any

import torch
from torch import Tensor

from ..autograd import check_distances
from ..checks import check_numbers, check_rows
from ..settings import Settings
from ..terms import RowsNeeded
from .launch import results, workspace
from .plan import Plan, find_plan, problem_of
from .store import Store


def evaluate(
    plan: Plan,
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    weights: Tensor | None,
    zeta_bar: Tensor | None,
    scale: Tensor | None,
    source_weights: Tensor | None,
    target_weights: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the loss, the other results, and what the gradient needs."""
    data, settings = (source, source_labels, target, target_labels), plan.settings
    if settings.check_values:
        check_rows(*data, source_weights, target_weights, num_classes=settings.num_classes)
        check_numbers(weights, scale)
        check_numbers(zeta_bar, None)
    loss, found, kept = plan.forward(*data, weights, zeta_bar, scale, source_weights, target_weights)
    if settings.check_values:
        check_distances(plan.results.view(found, "distances"), settings.orders)
    return loss, found, kept


def forward(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    weights: Tensor | None,
    scale: Tensor | None,
    source_weights: Tensor | None,
    target_weights: Tensor | None,
    num_classes: int,
    orders: list[int],
    sigmas: list[float],
    unbiased: bool,
    needed: list[float],
    check_values: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """`evaluate` with a plan for these arguments."""
    settings = Settings(num_classes, tuple(orders), tuple(sigmas), unbiased, RowsNeeded(*needed), check_values)
    tensors = source, source_labels, target, target_labels, weights, None, scale, source_weights, target_weights
    return evaluate(find_plan(*tensors, settings), *tensors)


def backward(
    source: Tensor,
    target: Tensor,
    kept: Tensor,
    source_weights: Tensor | None,
    target_weights: Tensor | None,
    upstream: Tensor,
    num_classes: int,
    orders: list[int],
    unbiased: bool,
    wants_source: bool,
    wants_target: bool,
) -> tuple[Tensor, Tensor]:
    """The gradient in the features of the wanted domains."""
    settings = Settings(num_classes, tuple(orders), unbiased=unbiased)
    of_rows = source_weights, target_weights
    plan = find_plan(source, source, target, target, None, None, None, *of_rows, settings)  # without labels
    return plan.backward(source, target, kept, *of_rows, upstream, (wants_source, wants_target))


_forward_operator = torch.library.custom_op("sohot::fused_alignment", forward, mutates_args=())
_backward_operator = torch.library.custom_op("sohot::fused_alignment_backward", backward, mutates_args=())


@_forward_operator.register_fake
def _(*arguments: Any) -> tuple[Tensor, ...]:
    """Shapes and types of the operator's results, for compilers."""
    source, _, target, _, weights, _, source_weights, target_weights, num_classes, orders, *_ = arguments
    settings, are_weighted = Settings(num_classes, tuple(orders)), (source_weights, target_weights) != (None, None)
    if any(isinstance(size, torch.SymInt) for size in (*source.shape, *target.shape)):
        # The layout is chosen when the shapes are known.
        kept: int | torch.SymInt = torch.library.get_ctx().new_dynamic_size()
    else:
        kept = Store(workspace(problem_of(source, target, settings, are_weighted=are_weighted))).numbers
    loss = source.new_empty((), dtype=torch.float32)
    found = loss.new_empty(Store(results(settings, weights is not None)).numbers)
    return loss, found, loss.new_empty(kept)


@_backward_operator.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor]:
    source, target, *_, unbiased, wants_source, wants_target = arguments
    return (
        source.new_empty(source.shape if wants_source or unbiased else 0),
        target.new_empty(target.shape if wants_target or unbiased else 0),
    )
