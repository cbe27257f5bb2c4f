"""The kernels as two opaque operators, for compilers, and as the functions behind them."""

from typing import Any

import torch
from torch import Tensor

from ..autograd import check_distances
from ..checks import check_numbers, check_rows
from ..row_weights import RowWeights
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
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Return the loss, the other results, and what the gradient needs: a workspace and the weights of rows, if any."""
    data, settings, row_weights = (source, source_labels, target, target_labels), plan.settings, None
    given = () if source_weights is None or target_weights is None else (source_weights, target_weights)
    if settings.check_values:
        check_rows(*data, *given, num_classes=settings.num_classes)
        check_numbers(weights, scale)
        check_numbers(zeta_bar, None)
    if given:
        both = RowWeights(*given)
        kinds = both.within_classes(source_labels, target_labels, settings.num_classes), both.overall()
        row_weights = torch.stack([torch.cat(kind) for kind in kinds]).float()
    loss, found, kept = plan.forward(*data, weights, zeta_bar, scale, row_weights)
    if settings.check_values:
        check_distances(plan.results.view(found, "distances"), settings.orders)
    return loss, found, kept, row_weights


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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`evaluate` with a plan for these arguments; the weights of rows are empty if there are none."""
    settings = Settings(num_classes, tuple(orders), tuple(sigmas), unbiased, RowsNeeded(*needed), check_values)
    tensors = source, source_labels, target, target_labels, weights, None, scale
    plan = find_plan(*tensors, source_weights is not None, settings)
    loss, found, kept, row_weights = evaluate(plan, *tensors, source_weights, target_weights)
    return loss, found, kept, loss.new_empty(0) if row_weights is None else row_weights


def backward(
    source: Tensor,
    target: Tensor,
    kept: Tensor,
    row_weights: Tensor | None,
    upstream: Tensor,
    num_classes: int,
    orders: list[int],
    unbiased: bool,
    wants_source: bool,
    wants_target: bool,
) -> tuple[Tensor, Tensor]:
    """The gradient in the features of the wanted domains."""
    settings = Settings(num_classes, tuple(orders), unbiased=unbiased)
    plan = find_plan(
        source, source, target, target, None, None, None, row_weights is not None, settings
    )  # without labels
    return plan.backward(source, target, kept, row_weights, upstream, (wants_source, wants_target))


_forward_operator = torch.library.custom_op("sohot::fused_alignment", forward, mutates_args=())
_backward_operator = torch.library.custom_op("sohot::fused_alignment_backward", backward, mutates_args=())


@_forward_operator.register_fake
def _(*arguments: Any) -> tuple[Tensor, ...]:
    """Shapes and types of the operator's results, for compilers."""
    source, _, target, _, weights, _, source_weights, _, num_classes, orders, *_ = arguments
    settings, rows = Settings(num_classes, tuple(orders)), source.shape[0] + target.shape[0]
    if any(isinstance(size, torch.SymInt) for size in (*source.shape, *target.shape)):
        # The layout is chosen when the shapes are known.
        kept: int | torch.SymInt = torch.library.get_ctx().new_dynamic_size()
    else:
        problem = problem_of(source, target, settings, are_weighted=source_weights is not None)
        kept = Store(workspace(problem)).numbers
    loss = source.new_empty((), dtype=torch.float32)
    found = loss.new_empty(Store(results(settings, weights is not None)).numbers)
    return loss, found, loss.new_empty(kept), loss.new_empty(0 if source_weights is None else (2, rows))


@_backward_operator.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor]:
    source, target, *_, unbiased, wants_source, wants_target = arguments
    return (
        source.new_empty(source.shape if wants_source or unbiased else 0),
        target.new_empty(target.shape if wants_target or unbiased else 0),
    )
