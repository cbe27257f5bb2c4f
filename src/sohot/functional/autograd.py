"""The signed Gram form as one differentiable operation with the closed-form gradient.

The losses call `weighted_distances`. Forward computes distances and gradient together; backward only multiplies by the
upstream gradient. A compiler sees one opaque operator, because the padded layout depends on the labels.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .checks import check_numbers, check_rows
from .gram import signed_gram


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
        check_values: Check for labels out of range, and NaN or infinite features.

    Returns:
        The sum (differentiable in the features and the weights), the distances of shape (1 + orders, C), and the mean
        energy of a row; the last two carry no gradient.
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
    """Takes the arguments of `_signed_gram`, in its order; backward only multiplies the gradient that forward found."""

    @staticmethod
    def forward(
        ctx: Any,
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
    ) -> tuple[Tensor, Tensor, Tensor]:
        # Called directly if nothing is traced: the dispatcher costs more than a small problem.
        operator = torch.ops.sohot.signed_gram if torch.compiler.is_compiling() else _signed_gram
        tensors = source, source_labels, target, target_labels, weights, scale
        distances, energy, *gradients = operator(*tensors, orders, unbiased, check_values, with_gradient)
        total = (weights * distances).sum()
        if total.dtype != distances.dtype:  # torch 2.11 compiles a conversion that changes nothing to a gradient of 0
            total = total.to(distances.dtype)
        ctx.save_for_backward(distances, *gradients)
        ctx.mark_non_differentiable(distances, energy)
        ctx.set_materialize_grads(False)
        return total, distances, energy

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        refuse_second_derivative()
        if upstream is None:
            return (None,) * 10
        distances, of_source, of_target = ctx.saved_tensors
        wants_source, _, wants_target, _, wants_weights, *_ = ctx.needs_input_grad
        by_source = of_source * upstream if wants_source else None
        by_target = of_target * upstream if wants_target else None
        by_weights = distances * upstream if wants_weights else None
        return by_source, None, by_target, None, by_weights, *(None,) * 5


def separate_distances(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    num_classes: int,
    orders: tuple[int, ...],
    unbiased: bool,
) -> Tensor:
    """The distances (1 + orders, C), each of them differentiable; backward computes them again."""
    data = source, source_labels, target, target_labels
    distances: Tensor = _Distances.apply(*data, num_classes, list(orders), unbiased)  # type: ignore[no-untyped-call]
    return distances


class _Distances(torch.autograd.Function):
    """The distances of all classes; their gradient is that of their sum, weighted by what comes from upstream."""

    @staticmethod
    def forward(
        ctx: Any,
        source: Tensor,
        source_labels: Tensor,
        target: Tensor,
        target_labels: Tensor,
        num_classes: int,
        orders: list[int],
        unbiased: bool,
    ) -> Tensor:
        ctx.save_for_backward(source, source_labels, target, target_labels)
        ctx.constants = orders, unbiased
        weights = torch.zeros(1 + len(orders), num_classes, device=source.device)
        data = source, source_labels, target, target_labels, weights, torch.ones((), device=source.device)
        return _signed_gram(*data, orders, unbiased, True, False)[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative()
        orders, unbiased = ctx.constants
        source, source_labels, target, target_labels = ctx.saved_tensors
        data = source, source_labels, target, target_labels, upstream, torch.ones((), device=upstream.device)
        _, _, by_source, by_target = _signed_gram(*data, orders, unbiased, False, True)
        return by_source, None, by_target, *(None,) * 4


def refuse_second_derivative() -> None:
    """Stop a backward pass with `create_graph=True`.

    Torch's `once_differentiable` would let a gradient penalty pass that has no gradient.
    """
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        raise RuntimeError("the alignment loss can be differentiated once: go backward without create_graph=True")


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
    data = source, source_labels, target, target_labels
    if check_values:
        check_rows(*data, num_classes=weights.shape[1])
        check_numbers(weights, scale)
    with torch.no_grad(), torch.autocast(source.device.type, enabled=False):
        result = signed_gram(*data, weights, orders, unbiased, scale, with_gradient)
    if check_values:
        check_distances(result.distances, orders)
    return result.distances, result.energy, result.source_gradient, result.target_gradient


# It reads labels, so that a graph cannot hold it. Versions of torch without this tag find that out when they record.
_UNSAFE = getattr(torch.Tag, "cudagraph_unsafe", None)
_TAGS: dict[str, Any] = {} if _UNSAFE is None else {"tags": (_UNSAFE,)}
_operator = torch.library.custom_op("sohot::signed_gram", _signed_gram, mutates_args=(), **_TAGS)


@_operator.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Shapes and types of the operator's results, for compilers."""
    source, _, target, _, weights, *_, with_gradient = arguments
    compute = torch.promote_types(torch.promote_types(source.dtype, target.dtype), torch.float32)
    distances = torch.empty_like(weights, dtype=compute)
    gradients = [torch.empty_like(x) if with_gradient else x.new_empty(0) for x in (source, target)]
    return distances, distances.new_empty(()), gradients[0], gradients[1]
