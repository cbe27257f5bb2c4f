"""The signed Gram form as one differentiable operation with the closed-form gradient.

The losses call `weighted_distances`. Forward computes distances and gradient together; backward only multiplies by the
upstream gradient. A compiler sees one opaque operator, because the padded layout depends on the labels.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .checks import check_rows
from .gram import signed_gram, used_scale


def weighted_distances(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    weights: Tensor,
    orders: tuple[int, ...],
    *,
    unbiased: bool = False,
    scale: Tensor | None = None,
    check_values: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sum weighted mean and scatter distances over terms and classes.

    Args:
        source: Source rows, shape (n, d).
        source_labels: Their classes, integers in 0 … C − 1.
        target: Target rows, shape (m, d).
        target_labels: Their classes.
        weights: Weight of each distance, shape (1 + orders, C), the means first; differentiable.
        orders: Orders of the scatters, each at least 2.
        unbiased: U-statistics instead of the paper's plug-in estimate.
        scale: Number that divides the features; 0 for the root of this batch's energy; None for 1.
        check_values: Check for labels out of range and NaN or infinite features.

    Returns:
        The sum (differentiable any number of times in the features and the weights), the distances of shape
        (1 + orders, C), and the mean energy of a row; the last two carry no gradient.
    """
    if scale is None:
        scale = torch.ones((), device=source.device)
    with_gradient = torch.is_grad_enabled() and (source.requires_grad or target.requires_grad)
    tensors = source, source_labels, target, target_labels, weights, scale
    result: tuple[Tensor, Tensor, Tensor] = _WeightedDistances.apply(  # type: ignore[no-untyped-call]
        *tensors, list(orders), unbiased, check_values, with_gradient
    )
    return result


class _WeightedDistances(torch.autograd.Function):
    """Takes the arguments of `_signed_gram`, in its order."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        *tensors, orders, unbiased, _, _ = arguments
        # Called directly if nothing is traced: the dispatcher costs more than a small problem.
        operator = torch.ops.sohot.signed_gram if torch.compiler.is_compiling() else _signed_gram
        distances, energy, source_gradient, target_gradient = operator(*arguments)
        ctx.save_for_backward(*tensors, distances, energy, source_gradient, target_gradient)
        ctx.orders, ctx.unbiased = orders, unbiased
        ctx.mark_non_differentiable(distances, energy)
        ctx.set_materialize_grads(False)
        weights = tensors[4]
        return (weights * distances).sum().to(distances.dtype), distances, energy

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        if upstream is None:
            return (None,) * 10
        source, source_labels, target, target_labels, weights, scale, distances, energy, *gradients = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: a second derivative is needed
            fixed_scale = used_scale(scale, energy).detach()
            result = signed_gram(
                source, source_labels, target, target_labels, weights, ctx.orders, ctx.unbiased, fixed_scale
            )
            by_source, by_target, by_weights = gradients_to_differentiate(
                (weights * result.distances).sum(), (source, target, weights), upstream
            )
        else:
            by_source = gradients[0] * upstream if ctx.needs_input_grad[0] else None
            by_target = gradients[1] * upstream if ctx.needs_input_grad[2] else None
            by_weights = distances * upstream if ctx.needs_input_grad[4] else None
        return by_source, None, by_target, None, by_weights, None, None, None, None, None


def gradients_to_differentiate(
    loss: Tensor, inputs: Sequence[Tensor | None], upstream: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients of the inputs that need one, with their own graph."""
    wanted = [x for x in inputs if x is not None and x.requires_grad]
    found = iter(torch.autograd.grad(loss, wanted, upstream, create_graph=True))
    return tuple(next(found) if x is not None and x.requires_grad else None for x in inputs)


def check_distances(distances: Tensor, orders: Sequence[int]) -> None:
    """Require distances within the range of their type (reads the values)."""
    if not torch.isfinite(distances).all():
        raise ValueError(
            f"the scatters of order {max(orders)} exceed the range of {distances.dtype}: "
            "scale the features down (feature_scale='initial'), use lower orders, or pass float64 features"
        )


def _signed_gram(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    weights: Tensor,
    scale: Tensor,
    orders: list[int],
    unbiased: bool,
    check_values: bool,
    with_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if check_values:
        check_rows(source, source_labels, target, target_labels, weights.shape[1])
    with torch.no_grad(), torch.autocast(source.device.type, enabled=False):
        result = signed_gram(
            source, source_labels, target, target_labels, weights, orders, unbiased, scale, with_gradient
        )
    if check_values:
        check_distances(result.distances, orders)
    return result.distances, result.energy, result.source_gradient, result.target_gradient


_operator = torch.library.custom_op("sohot::signed_gram", _signed_gram, mutates_args=())


@_operator.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Shapes and types of the operator's results, for compilers."""
    source, _, target, _, weights, *_, with_gradient = arguments
    compute = torch.promote_types(torch.promote_types(source.dtype, target.dtype), torch.float32)
    distances = torch.empty_like(weights, dtype=compute)
    gradients = [torch.empty_like(x) if with_gradient else x.new_empty(0) for x in (source, target)]
    return distances, distances.new_empty(()), gradients[0], gradients[1]
