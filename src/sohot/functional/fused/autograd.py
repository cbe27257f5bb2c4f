"""The alignment loss on the GPU kernels as one differentiable operation.

Forward saves the small Gram matrices; backward turns them into the gradient, multiplied by the upstream gradient, in
one pass over the features. A compiler sees two opaque operators.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..autograd import check_distances, weighted_sum
from ..checks import check_numbers, check_rows
from ..recomputed import differentiable_gradients, each_example
from ..row_weights import RowWeights
from ..terms import RowsNeeded, term_shares
from .launch import Batch, Saved, launch_backward, launch_forward
from .layout import choose_layout, processors


def fused_alignment(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    weights: Tensor | None,
    sigmas: tuple[float, ...],
    num_classes: int,
    orders: tuple[int, ...],
    *,
    unbiased: bool,
    scale: Tensor | None,
    row_weights: RowWeights | None,
    needed: RowsNeeded,
    check_values: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute the result of `scatter_alignment`; each term is weighed by sigmas[k] and, if given, weights[k, c]."""
    source, target = (x if x.stride(1) == 1 else x.contiguous() for x in (source, target))
    source_labels, target_labels = source_labels.contiguous(), target_labels.contiguous()
    weights, scale = (x if x is None or x.device == source.device else x.to(source.device) for x in (weights, scale))
    loss, terms, distances, spread, *_ = _FusedAlignment.apply(  # type: ignore[no-untyped-call]
        source,
        source_labels,
        target,
        target_labels,
        weights,
        scale,
        *(row_weights or (None, None)),
        list(sigmas),
        list(orders),
        list(needed),
        unbiased,
        num_classes,
        check_values,
    )
    return loss, terms, distances, spread


class _FusedAlignment(torch.autograd.Function):
    """Takes the arguments of `_forward`, in its order, and returns its results; only the first has a gradient."""

    @staticmethod
    def forward(  # spelled out: torch.compile counts the arguments
        source: Tensor,
        source_labels: Tensor,
        target: Tensor,
        target_labels: Tensor,
        weights: Tensor | None,
        scale: Tensor | None,
        source_weights: Tensor | None,
        target_weights: Tensor | None,
        sigmas: list[float],
        orders: list[int],
        needed: list[float],
        unbiased: bool,
        num_classes: int,
        check_values: bool,
    ) -> tuple[Tensor, ...]:
        operator = torch.ops.sohot.fused_alignment if torch.compiler.is_compiling() else _forward
        tensors = source, source_labels, target, target_labels, weights, scale, source_weights, target_weights
        result: tuple[Tensor, ...] = operator(*tensors, sigmas, orders, needed, unbiased, num_classes, check_values)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:8], *output[3:])
        ctx.settings = inputs[8:]
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        if upstream is None:
            return (None,) * 14
        source, _, target, _, weights, _, _, _, _, *saved = ctx.saved_tensors
        wants_source, _, wants_target, _, wants_weights, *_ = ctx.needs_input_grad
        by_source: Tensor | None = None
        by_target: Tensor | None = None
        by_weights: Tensor | None = None
        if torch.is_grad_enabled():  # create_graph=True: a second derivative is needed
            by_source, by_target, by_weights = _differentiable_backward(ctx, upstream)
        else:
            if wants_source or wants_target:
                operator = torch.ops.sohot.fused_alignment_backward if torch.compiler.is_compiling() else _backward
                by_source, by_target = operator(  # type: ignore[call-arg]
                    source, target, *saved, upstream, ctx.settings[1], ctx.settings[3], wants_source, wants_target
                )
            if wants_weights:
                by_weights = saved[4] * upstream
                if weights.shape[1] == 1:
                    by_weights = by_weights.sum(1, keepdim=True)
                by_weights = by_weights.to(weights.dtype)
        by_source, by_target = by_source if wants_source else None, by_target if wants_target else None
        return by_source, None, by_target, None, by_weights, *(None,) * 9

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        return each_example(info, in_dims, _FusedAlignment.apply, *arguments)


def _differentiable_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    """The gradient in plain operations that can be differentiated again."""
    source, source_labels, target, target_labels, weights, scale, *row_weights = ctx.saved_tensors[:8]
    spread = ctx.saved_tensors[8]
    sigmas, orders, needed, unbiased, num_classes, _ = ctx.settings
    given = None if row_weights[0] is None else RowWeights(*row_weights)
    shares = term_shares(
        source_labels,
        target_labels,
        num_classes,
        tuple(orders),
        "unbiased" if unbiased else "plugin",
        row_weights=given,
        needed=RowsNeeded(*needed),
    )
    shares = shares * shares.new_tensor(sigmas).unsqueeze(1)
    divisor = torch.ones_like(spread)
    if scale is not None:
        divisor = torch.where(scale > 0, scale, torch.where(spread > 0, spread, 1.0))
    shared_weights = shares if weights is None else weights * shares
    by_source, by_target, by_shared = differentiable_gradients(
        partial(weighted_sum, orders=orders, unbiased=unbiased),
        (source, target, shared_weights),
        (source_labels, target_labels, divisor, *(given or ())),
        (upstream,),
    )
    return by_source, by_target, None if weights is None else (by_shared * shares).sum_to_size(weights.shape)


def _forward(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    weights: Tensor | None,
    scale: Tensor | None,
    source_weights: Tensor | None,
    target_weights: Tensor | None,
    sigmas: list[float],
    orders: list[int],
    needed: list[float],
    unbiased: bool,
    num_classes: int,
    check_values: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    data, row_weights = (source, source_labels, target, target_labels), None
    given = () if source_weights is None or target_weights is None else (source_weights, target_weights)
    if check_values:
        check_rows(*data, *given, num_classes=num_classes)
        check_numbers(weights, scale)
    with _device_of(source):
        if given:
            both = RowWeights(*given)
            kinds = both.within_classes(source_labels, target_labels, num_classes), both.overall()
            row_weights = torch.stack([torch.cat(kind) for kind in kinds]).float()
        loss, terms, distances, spread, saved = launch_forward(
            Batch(*data, row_weights), weights, scale, sigmas, orders, unbiased, num_classes, RowsNeeded(*needed)
        )
    if check_values:
        check_distances(distances, orders)
    return loss, terms, distances, spread, *saved


def _backward(
    source: Tensor,
    target: Tensor,
    slots: Tensor,
    grams: Tensor,
    means: Tensor,
    numbers: Tensor,
    by_weights: Tensor,
    row_weights: Tensor,
    row_numbers: Tensor,
    upstream: Tensor,
    orders: list[int],
    unbiased: bool,
    wants_source: bool,
    wants_target: bool,
) -> tuple[Tensor, Tensor]:
    saved = Saved(slots, grams, means, numbers, by_weights, row_weights, row_numbers)
    with _device_of(source):
        return launch_backward(source, target, saved, upstream, orders, unbiased, (wants_source, wants_target))


def _device_of(x: Tensor) -> AbstractContextManager[Any]:
    """Make the GPU of a tensor the current one: Triton launches there."""
    return torch.cuda.device_of(x) if x.is_cuda else nullcontext()  # type: ignore[no-untyped-call]


_forward_operator = torch.library.custom_op("sohot::fused_alignment", _forward, mutates_args=())
_backward_operator = torch.library.custom_op("sohot::fused_alignment_backward", _backward, mutates_args=())


@_forward_operator.register_fake
def _(*arguments: Any) -> tuple[Tensor, ...]:
    """Shapes and types of the operator's results, for compilers."""
    source, _, target, _, weights, _, source_weights, _, sigmas, _, _, _, classes, _ = arguments
    layout = choose_layout(source.shape[0] + target.shape[0], classes, source.shape[1], processors(source.device))
    rows, (_, size), terms = source.shape[0] + target.shape[0], source.shape, len(sigmas)
    table = source.new_empty(terms, classes, dtype=torch.float32)
    return (
        table.new_empty(()),
        table.new_empty(terms),
        table,
        table.new_empty(()),
        table.new_empty(classes * (2 * layout.capacity + 1) + rows, dtype=torch.int32),
        table.new_empty(layout.parts, classes, layout.capacity, layout.capacity),
        table.new_empty(2, classes, size),
        table.new_empty(2 * terms + 3 + layout.parts, classes, dtype=torch.float64),
        table.new_empty(0) if weights is None else torch.empty_like(table),
        table.new_empty(0 if source_weights is None else (2, rows)),
        table.new_empty((0, 0) if source_weights is None else (6, classes), dtype=torch.float64),
    )


@_backward_operator.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor]:
    source, target, *_, unbiased, wants_source, wants_target = arguments
    return (
        source.new_empty(source.shape if wants_source or unbiased else 0),
        target.new_empty(target.shape if wants_target or unbiased else 0),
    )
