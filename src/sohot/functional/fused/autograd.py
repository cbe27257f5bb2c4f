"""The alignment loss on the GPU kernels as one differentiable operation.

Forward saves the small Gram matrices; backward turns them into the gradient, multiplied by the upstream gradient, in
one pass over the features. A compiler sees two opaque operators. The host does little: three kernels (four for many
rows), three allocations forward and one per domain backward.
"""

from typing import Any

import torch
from torch import Tensor

from ..autograd import check_distances, refuse_second_derivative
from ..checks import check_numbers, check_rows
from ..grouping import largest_class
from ..settings import Labelled, Settings
from .layout import are_aligned, choose_layout, columns_each, few_columns, power_of_two

DENSE = torch.contiguous_format
LABELS_AT_ONCE = 256


class FusedResult:
    """The fields of `functional.alignment.Alignment`, each made when it is asked for."""

    def __init__(self, loss: Tensor, results: Tensor, terms: int, classes: int) -> None:
        self.loss, self._results, self._shape = loss, results, (terms, classes)

    @property
    def terms(self) -> Tensor:
        """Contributions of the means and of each order to the loss (1 + orders,)."""
        terms, classes = self._shape
        return self._results[terms * classes : terms * (classes + 1)]

    @property
    def distances(self) -> Tensor:
        """Squared distances (1 + orders, C)."""
        terms, classes = self._shape
        return self._results[: terms * classes].view(terms, classes)

    @property
    def spread(self) -> Tensor:
        """Root of the mean squared distance of a row from the centre of its class."""
        terms, classes = self._shape
        return self._results[terms * (classes + 1)]


def fused_alignment(
    data: Labelled, settings: Settings, scale: Tensor | None, most_rows: int, weights: Tensor | None
) -> FusedResult:
    """Align on the kernels, which hold `most_rows` rows of a class; a class that has more makes the loss NaN.

    Args:
        data: Features and labels.
        settings: The settings; classes are weighed, and the scale is moved, by the caller.
        scale: What the features are divided by, a scalar; None for 1.
        most_rows: Most rows of a class, at most `LARGEST_CAPACITY`.
        weights: Weights of terms and classes; None for 1.
    """
    source, source_labels, target, target_labels = data
    if source.stride(1) != 1:
        source = source.contiguous()
    if target.stride(1) != 1:
        target = target.contiguous()
    if weights is not None and weights.device != source.device:
        weights = weights.to(source.device)
    if scale is not None and scale.device != source.device:
        scale = scale.to(source.device)
    num_classes, orders, sigmas = settings.num_classes, settings.orders, settings.sigmas
    rest = source_labels.contiguous(), target_labels.contiguous(), scale
    how = list(orders), list(sigmas or (1.0,) * (1 + len(orders))), settings.unbiased, most_rows, settings.check_values
    loss, results = _FusedAlignment.apply(source, target, weights, (*rest, num_classes, *how))  # type: ignore[no-untyped-call]
    return FusedResult(loss, results, 1 + len(orders), num_classes)


class _FusedAlignment(torch.autograd.Function):
    """Takes what has a gradient, and the other arguments of `_forward` in one: more arguments take longer to call.

    The second result, without gradient, holds all but the loss.
    """

    @staticmethod
    def forward(
        ctx: Any, source: Tensor, target: Tensor, weights: Tensor | None, rest: tuple[Any, ...]
    ) -> tuple[Tensor, Tensor]:
        source_labels, target_labels, scale, num_classes, orders, sigmas, unbiased, most_rows, check_values = rest
        operator = torch.ops.sohot.fused_alignment if torch.compiler.is_compiling() else _forward
        data = source, source_labels, target, target_labels, weights, scale
        loss, results, kept = operator(*data, num_classes, orders, sigmas, unbiased, most_rows, check_values)
        ctx.save_for_backward(source, target, results, kept)
        ctx.constants = num_classes, orders, unbiased, most_rows
        ctx.of_weights = None if weights is None else (weights.shape, weights.dtype)
        ctx.mark_non_differentiable(results)
        ctx.set_materialize_grads(False)  # a gradient of zeros for the results would be one more kernel
        return loss, results

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        refuse_second_derivative()
        if upstream is None:
            return (None,) * 4
        source, target, results, kept = ctx.saved_tensors
        wants_source, wants_target, wants_weights, _ = ctx.needs_input_grad
        by_source = by_target = by_weights = None
        if wants_source or wants_target:
            is_compiling = torch.compiler.is_compiling()
            is_batched = not is_compiling and torch._C._functorch.is_legacy_batchedtensor(upstream)  # is_grads_batched
            factor = torch.ones_like(results[0]) if is_batched else upstream
            operator: Any = torch.ops.sohot.fused_alignment_backward if is_compiling else _backward
            found = operator(source, target, kept, factor, *ctx.constants, wants_source, wants_target)
            if is_batched:
                found = [gradient * upstream for gradient in found]
            by_source, by_target = found[0] if wants_source else None, found[1] if wants_target else None
        if wants_weights:
            (shape, dtype), terms = ctx.of_weights, 1 + len(ctx.constants[1])
            by_weights = results[-terms * ctx.constants[0] :].view(terms, -1) * upstream
            by_weights = by_weights.sum_to_size(shape).to(dtype)
        return by_source, by_target, by_weights, None


def _forward(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    weights: Tensor | None,
    scale: Tensor | None,
    num_classes: int,
    orders: list[int],
    sigmas: list[float],
    unbiased: bool,
    most_rows: int,
    check_values: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the loss, the other results (see `distances.weigh`) and what the gradient needs (`rows.sections`)."""
    if check_values:
        check_rows(source, source_labels, target, target_labels, num_classes=num_classes)
        check_numbers(weights, scale)
        if (largest := largest_class(source_labels, target_labels, num_classes)) > most_rows:
            raise ValueError(f"most_rows is {most_rows}, but a class has {largest} rows")
    if source.is_cuda and source.get_device() != torch.cuda.current_device():  # Triton launches on the current one
        with torch.cuda.device(source.device):
            return _forward(
                source, source_labels, target, target_labels, weights, scale, num_classes, orders, sigmas, unbiased,
                most_rows, check_values
            )  # fmt: skip
    from . import distances, passes, rows

    (n, size), m, terms, is_half = source.shape, target.shape[0], 1 + len(orders), source.element_size() < 4
    layout = choose_layout(n + m, most_rows, num_classes, size, source.device, is_half)
    loss = source.new_empty((), dtype=torch.float32)
    results = loss.new_empty(_results(num_classes, terms, weights is not None))
    kept = loss.new_empty(layout.kept_numbers(num_classes, terms))
    capacity, parts = layout.capacity, layout.parts
    if not layout.scan:
        first = layout.filled(num_classes)
        kept[first : first + num_classes].zero_()
        rows.place_rows[(-(-(n + m) // LABELS_AT_ONCE),)](
            source_labels, target_labels, kept, n, m, num_classes, CAPACITY=capacity, PARTS=parts, BLOCK=LABELS_AT_ONCE
        )
    passes.gram[num_classes, parts](
        source,
        target,
        source_labels,
        target_labels,
        kept,
        n,
        m,
        size,
        source.stride(0),
        target.stride(0),
        1.0,
        columns_each(size, layout.block, parts),
        CAPACITY=capacity,
        PARTS=parts,
        BLOCK=layout.block,
        LABELS=layout.scan,
        AT_ONCE=n + m <= layout.scan,
        RELATIVE=not is_half,
        EVEN=size % layout.block == 0,
        ALIGNED=are_aligned(source, target),
        FEW_COLUMNS=few_columns(size),
        AHEAD=layout.stages == 1,
        num_warps=layout.warps,
        num_stages=layout.stages,
        maxnreg=layout.registers,
    )
    strides = (0, 0) if weights is None else (weights.stride(0), weights.stride(1) if weights.shape[1] > 1 else 0)
    distances.finish_classes[num_classes,](
        kept,
        loss,
        results,
        tuple(sigmas),
        weights,
        *strides,
        scale,
        n,
        n + m,
        CAPACITY=capacity,
        PARTS=parts,
        ORDERS=tuple(orders),
        UNBIASED=unbiased,
        RELATIVE=not is_half,
        BLOCK=min(1024, max(32, power_of_two(num_classes))),
        AT_ONCE=num_classes <= 1024,
        num_warps=layout.finish_warps,
        num_stages=1,
        maxnreg=layout.finish_registers,
    )
    if check_values:
        check_distances(FusedResult(loss, results, terms, num_classes).distances, orders)
    return loss, results, kept


def _backward(
    source: Tensor,
    target: Tensor,
    kept: Tensor,
    upstream: Tensor,
    num_classes: int,
    orders: list[int],
    unbiased: bool,
    most_rows: int,
    wants_source: bool,
    wants_target: bool,
) -> tuple[Tensor, Tensor]:
    """The gradient in the features of the wanted domains; empty for the other."""
    if source.is_cuda and source.get_device() != torch.cuda.current_device():
        with torch.cuda.device(source.device):
            return _backward(
                source, target, kept, upstream, num_classes, orders, unbiased, most_rows, wants_source, wants_target
            )
    from . import passes

    (n, size), is_half = source.shape, source.element_size() < 4
    layout = choose_layout(n + target.shape[0], most_rows, num_classes, size, source.device, is_half)
    by_source = torch.empty_like(source, memory_format=DENSE) if wants_source else source.new_empty(0)
    by_target = torch.empty_like(target, memory_format=DENSE) if wants_target else target.new_empty(0)
    passes.gradient[num_classes, layout.gradient_parts](
        source,
        target,
        kept,
        upstream,
        by_source,
        by_target,
        n,
        size,
        source.stride(0),
        target.stride(0),
        columns_each(size, layout.gradient_block, layout.gradient_parts),
        CAPACITY=layout.capacity,
        PARTS=layout.parts,
        BLOCK=layout.gradient_block,
        ORDERS=tuple(orders),
        UNBIASED=unbiased,
        RELATIVE=not is_half,
        EVEN=size % layout.gradient_block == 0,
        ALIGNED=are_aligned(source, target) and size * source.element_size() % 16 == 0,
        WANTED=wants_source + 2 * wants_target,
        num_warps=layout.gradient_warps,
        num_stages=layout.gradient_stages,
        maxnreg=layout.gradient_registers,
    )
    return by_source, by_target


def _results(classes: int, terms: int, has_weights: bool) -> int:
    """How many numbers the results are."""
    return terms * classes * (1 + has_weights) + terms + 1


_forward_operator = torch.library.custom_op("sohot::fused_alignment", _forward, mutates_args=())
_backward_operator = torch.library.custom_op("sohot::fused_alignment_backward", _backward, mutates_args=())


@_forward_operator.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Shapes and types of the operator's results, for compilers. The rows may be symbols, and decide none of them."""
    source, _, _, _, weights, _, num_classes, orders, _, _, most_rows, _ = arguments
    terms, is_half = 1 + len(orders), source.element_size() < 4
    layout = choose_layout(0, most_rows, num_classes, int(source.shape[1]), source.device, is_half)
    loss = source.new_empty((), dtype=torch.float32)
    results = loss.new_empty(_results(num_classes, terms, weights is not None))
    return loss, results, loss.new_empty(layout.kept_numbers(num_classes, terms))


@_backward_operator.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor]:
    source, target, *_, wants_source, wants_target = arguments
    by_source = source.new_empty(source.shape if wants_source else 0)
    return by_source, target.new_empty(target.shape if wants_target else 0)
