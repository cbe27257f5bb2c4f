"""The signed Gram form as one differentiable operation with the closed-form gradient.

The losses call `weighted_distances`. Forward computes distances and gradient together; backward only multiplies by the
upstream gradient. A compiler sees one opaque operator, because the padded layout depends on the labels.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .checks import check_numbers, check_rows
from .gram import signed_gram, used_scale
from .recomputed import differentiable_gradients, each_example
from .row_weights import RowWeights


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
    row_weights: RowWeights | None = None,
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
        row_weights: Weights of the rows; None for equal weights.
        check_values: Check for labels out of range, NaN or infinite features, and row weights below 0.

    Returns:
        The sum (differentiable any number of times in the features and the weights), the distances of shape
        (1 + orders, C), and the mean energy of a row; the last two carry no gradient.
    """
    if scale is None:
        scale = torch.ones((), device=source.device)
    with_gradient = torch.is_grad_enabled() and (source.requires_grad or target.requires_grad)
    tensors = source, source_labels, target, target_labels, weights, scale, *(row_weights or (None, None))
    loss, distances, energy, *_ = _WeightedDistances.apply(  # type: ignore[no-untyped-call]
        *tensors, list(orders), unbiased, check_values, with_gradient
    )
    return loss, distances, energy


class _WeightedDistances(torch.autograd.Function):
    """Takes the arguments of `_signed_gram`, in its order; also returns the gradient, which has none itself."""

    @staticmethod
    def forward(  # spelled out: torch.compile counts the arguments
        source: Tensor,
        source_labels: Tensor,
        target: Tensor,
        target_labels: Tensor,
        weights: Tensor,
        scale: Tensor,
        source_weights: Tensor | None,
        target_weights: Tensor | None,
        orders: list[int],
        unbiased: bool,
        check_values: bool,
        with_gradient: bool,
    ) -> tuple[Tensor, ...]:
        # Called directly if nothing is traced: the dispatcher costs more than a small problem.
        operator = torch.ops.sohot.signed_gram if torch.compiler.is_compiling() else _signed_gram
        tensors = source, source_labels, target, target_labels, weights, scale, source_weights, target_weights
        distances, energy, *gradients = operator(*tensors, orders, unbiased, check_values, with_gradient)
        total = (weights * distances).sum()
        if total.dtype != distances.dtype:  # torch 2.11 compiles a conversion that changes nothing to a gradient of 0
            total = total.to(distances.dtype)
        return total, distances, energy, *gradients

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.orders, ctx.unbiased, _, _ = inputs
        ctx.save_for_backward(*tensors, *output[1:])
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        if upstream is None:
            return (None,) * 12
        source, source_labels, target, target_labels, weights, scale, *row_weights = ctx.saved_tensors[:8]
        distances, energy, *gradients = ctx.saved_tensors[8:]
        by_source: Tensor | None
        by_target: Tensor | None
        by_weights: Tensor | None
        if torch.is_grad_enabled():  # create_graph=True: the gradient must be differentiable too
            fixed_scale = used_scale(scale, energy).detach()
            by_source, by_target, by_weights = differentiable_gradients(
                partial(weighted_sum, orders=ctx.orders, unbiased=ctx.unbiased),
                (source, target, weights),
                (source_labels, target_labels, fixed_scale, *(w for w in row_weights if w is not None)),
                (upstream,),
            )
        else:
            by_source = gradients[0] * upstream if ctx.needs_input_grad[0] else None
            by_target = gradients[1] * upstream if ctx.needs_input_grad[2] else None
            by_weights = distances * upstream if ctx.needs_input_grad[4] else None
        return by_source, None, by_target, None, by_weights, *(None,) * 7

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        return each_example(info, in_dims, _WeightedDistances.apply, *arguments)


def weighted_sum(
    source: Tensor,
    target: Tensor,
    weights: Tensor,
    source_labels: Tensor,
    target_labels: Tensor,
    scale: Tensor,
    *row_weights: Tensor,
    orders: list[int],
    unbiased: bool,
) -> tuple[Tensor]:
    """The sum in plain operations, with the tensors to differentiate first."""
    given = RowWeights(*row_weights) if row_weights else None
    with torch.autocast(source.device.type, enabled=False):
        result = signed_gram(
            source, source_labels, target, target_labels, weights, orders, unbiased, scale, row_weights=given
        )
    return ((weights * result.distances).sum(),)


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
    source_weights: Tensor | None,
    target_weights: Tensor | None,
    orders: list[int],
    unbiased: bool,
    check_values: bool,
    with_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    given = None
    if source_weights is not None and target_weights is not None:
        given = RowWeights(source_weights, target_weights)
    data = source, source_labels, target, target_labels
    if check_values:
        check_rows(*data, *(given or ()), num_classes=weights.shape[1])
        check_numbers(weights, scale)
    with torch.no_grad(), torch.autocast(source.device.type, enabled=False):
        result = signed_gram(*data, weights, orders, unbiased, scale, with_gradient, given)
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
