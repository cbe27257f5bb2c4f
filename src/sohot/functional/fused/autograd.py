"""The alignment loss on the GPU kernels as one differentiable operation.

Forward saves the small Gram matrices; backward turns them into the gradient, multiplied by the upstream gradient, in
one pass over the features. A compiler sees two opaque operators.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..autograd import weighted_sum
from ..recomputed import differentiable_gradients, each_example
from ..row_weights import RowWeights
from ..settings import Settings
from ..terms import RowsNeeded, constant_weights, term_shares
from . import operators
from .launch import results
from .operators import evaluate
from .plan import Plan
from .store import Store

Given = tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor | None]
"""Source, its labels, target, its labels, weights of terms and classes, scale, and weights of the rows of both."""
Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]
"""Those in the source, the target, and the weights of terms and classes."""


class FusedResult:
    """The fields of `functional.alignment.Alignment`, each made when it is asked for."""

    def __init__(self, loss: Tensor, store: Store, numbers: Tensor) -> None:
        self.loss, self._store, self._numbers = loss, store, numbers

    @property
    def terms(self) -> Tensor:
        """Contributions of the means and of each order to the loss (1 + orders,)."""
        return self._store.view(self._numbers, "terms")

    @property
    def distances(self) -> Tensor:
        """Squared distances (1 + orders, C)."""
        return self._store.view(self._numbers, "distances")

    @property
    def spread(self) -> Tensor:
        """Root of the mean squared distance of a row from the centre of its class."""
        return self._store.view(self._numbers, "spread")


def conformed(given: Given) -> Given:
    """Bring tensors into the form that the kernels take: columns without gaps, on one device."""
    source, source_labels, target, target_labels, weights, scale, *of_rows = given
    source, target = (x if x.stride(1) == 1 else x.contiguous() for x in (source, target))
    source_labels, target_labels = source_labels.contiguous(), target_labels.contiguous()
    weights, scale = (x if x is None or x.device == source.device else x.to(source.device) for x in (weights, scale))
    return source, source_labels, target, target_labels, weights, scale, of_rows[0], of_rows[1]


def planned_alignment(plan: Plan, given: Given) -> FusedResult:
    """Compute an alignment by a plan made for `given`; not for compilers and `torch.func`."""
    found: list[Tensor] = []
    loss: Tensor = _PlannedAlignment.apply(given[0], given[2], given[4], (plan, given, found))  # type: ignore[no-untyped-call]
    return FusedResult(loss, plan.results, found[0])


def fused_alignment(given: Given, settings: Settings) -> FusedResult:
    """Compute an alignment in a form that compilers and `torch.func` can take apart."""
    terms = 1 + len(settings.orders)
    loss, numbers, *_ = _FusedAlignment.apply(  # type: ignore[no-untyped-call]
        *given,
        settings.num_classes,
        list(settings.orders),
        list(settings.sigmas or (1.0,) * terms),
        settings.unbiased,
        list(settings.needed),
        settings.check_values,
    )
    return FusedResult(loss, Store(results(terms, settings.num_classes, given[4] is not None)), numbers)


class _PlannedAlignment(torch.autograd.Function):
    """Takes what has a gradient, and a plan, `Given` and a list, to which it adds the results besides the loss.

    A function with `setup_context`, which `torch.func` needs, takes several times as long to call, as do arguments that
    are not to be differentiated.
    """

    @staticmethod
    def forward(ctx: Any, _source: Tensor, _target: Tensor, _weights: Tensor | None, call: Any) -> Tensor:
        ctx.plan, given, found = call
        loss, *kept = evaluate(ctx.plan, *given)
        ctx.save_for_backward(*given, *kept)
        found.append(kept[0])
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return *_gradients(ctx, upstream, ctx.needs_input_grad[:3], ctx.plan.settings, ctx.plan), None


class _FusedAlignment(torch.autograd.Function):
    """Takes the arguments of `operators.forward`, in its order, and returns its results; the first has a gradient."""

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
        num_classes: int,
        orders: list[int],
        sigmas: list[float],
        unbiased: bool,
        needed: list[float],
        check_values: bool,
    ) -> tuple[Tensor, ...]:
        operator = torch.ops.sohot.fused_alignment if torch.compiler.is_compiling() else operators.forward
        tensors = source, source_labels, target, target_labels, weights, scale, source_weights, target_weights
        result: tuple[Tensor, ...] = operator(*tensors, num_classes, orders, sigmas, unbiased, needed, check_values)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:8], *output[1:])
        ctx.settings = inputs[8:]
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        if upstream is None:
            return (None,) * 14
        num_classes, orders, sigmas, unbiased, needed, _ = ctx.settings
        settings = Settings(num_classes, tuple(orders), tuple(sigmas), unbiased, RowsNeeded(*needed))
        wanted = ctx.needs_input_grad[:5:2]
        by_source, by_target, by_weights = _gradients(ctx, upstream, wanted, settings)
        return by_source, None, by_target, None, by_weights, *(None,) * 9

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        return each_example(info, in_dims, _FusedAlignment.apply, *arguments)


def _gradients(
    ctx: Any, upstream: Tensor, wanted: tuple[bool, bool, bool], settings: Settings, plan: Plan | None = None
) -> Gradients:
    """The gradients that autograd wants."""
    if torch.is_grad_enabled():  # create_graph=True: a second derivative is needed
        found = _differentiable_gradients(ctx, upstream, settings)
        return found[0] if wanted[0] else None, found[1] if wanted[1] else None, found[2] if wanted[2] else None
    source, _, target, _, weights, _, _, _, numbers, kept, row_weights = ctx.saved_tensors
    by_source = by_target = by_weights = None
    if wanted[0] or wanted[1]:
        if row_weights is not None and not row_weights.numel():
            row_weights = None
        data = source, target, kept, row_weights, upstream
        if torch.compiler.is_compiling() or plan is None:
            backward = torch.ops.sohot.fused_alignment_backward if torch.compiler.is_compiling() else operators.backward
            constants = settings.num_classes, list(settings.orders), settings.unbiased
            by_source, by_target = backward(*data, *constants, *wanted[:2])
        else:
            by_source, by_target = plan.backward(*data, wanted[:2])
    if wanted[2]:
        store = Store(results(1 + len(settings.orders), settings.num_classes, has_weights=True))
        by_weights = store.view(numbers, "by_weights") * upstream
        by_weights = (by_weights.sum(1, keepdim=True) if weights.shape[1] == 1 else by_weights).to(weights.dtype)
    return by_source if wanted[0] else None, by_target if wanted[1] else None, by_weights


def _differentiable_gradients(ctx: Any, upstream: Tensor, settings: Settings) -> Gradients:
    """The gradients in plain operations that can be differentiated again."""
    source, source_labels, target, target_labels, weights, scale, *row_weights = ctx.saved_tensors[:8]
    numbers, orders, given = ctx.saved_tensors[8], settings.orders, None
    if row_weights[0] is not None:
        given = RowWeights(*row_weights)
    shares = term_shares(
        source_labels,
        target_labels,
        settings.num_classes,
        orders,
        settings.estimator,
        row_weights=given,
        needed=settings.needed,
    )
    if settings.sigmas is not None:
        shares = shares * constant_weights(settings.sigmas, shares)
    store = Store(results(1 + len(orders), settings.num_classes, weights is not None))
    spread = store.view(numbers, "spread")
    divisor = torch.ones_like(spread)
    if scale is not None:
        divisor = torch.where(scale > 0, scale, torch.where(spread > 0, spread, 1.0))
    shared_weights = shares if weights is None else weights * shares
    by_source, by_target, by_shared = differentiable_gradients(
        partial(weighted_sum, orders=list(orders), unbiased=settings.unbiased),
        (source, target, shared_weights),
        (source_labels, target_labels, divisor, *(given or ())),
        (upstream,),
    )
    return by_source, by_target, None if weights is None else (by_shared * shares).sum_to_size(weights.shape)
