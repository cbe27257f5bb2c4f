"""The alignment loss on the GPU kernels as one differentiable operation.

Forward saves the small Gram matrices; backward turns them into the gradient, multiplied by the upstream gradient, in
one pass over the features. A compiler sees two opaque operators.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from ..autograd import weighted_sum
from ..recomputed import differentiable_gradients, each_example
from ..row_weights import row_weights
from ..settings import Settings
from ..terms import RowsNeeded, constant_weights, term_shares
from . import operators
from .launch import results
from .operators import evaluate
from .plan import Plan
from .store import Store

Optional = Tensor | None
Given = tuple[Tensor, Tensor, Tensor, Tensor, Optional, Optional, Optional, Optional, Optional]
"""Source, its labels, target, its labels, weights of terms and classes, ζ̄, scale, and weights of the rows of both.

If ζ̄ is given, both it and the weights, then of the scatters alone, are learned, and raised to 0 in place. With a
momentum, so is the scale moved.
"""
Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]
"""Those in the source, the target, and the weights of all terms and classes."""


class FusedResult:
    """The fields of `functional.alignment.Alignment`, each made when it is asked for."""

    def __init__(self, loss: Tensor, numbers: Tensor, store: Store) -> None:
        self.loss, self._numbers, self._store = loss, numbers, store

    @property
    def terms(self) -> Tensor:
        """Contributions of the means and of each order to the loss (1 + orders,)."""
        return self._store.view(self._numbers, "terms")[:-1]

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The terms and the penalty on the weights of classes: they add up to the loss."""
        return self._store.view(self._numbers, "terms").unbind()

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
    source, source_labels, target, target_labels, weights, zeta_bar, scale, *of_rows = given
    source, target = (x if x.stride(1) == 1 else x.contiguous() for x in (source, target))
    source_labels, target_labels = source_labels.contiguous(), target_labels.contiguous()
    weights, scale = (x if x is None or x.device == source.device else x.to(source.device) for x in (weights, scale))
    of_source, of_target = (x if x is None else x.contiguous() for x in of_rows)
    return source, source_labels, target, target_labels, weights, zeta_bar, scale, of_source, of_target


def planned_alignment(plan: Plan, given: Given) -> FusedResult:
    """Compute an alignment by a plan made for `given`; not for compilers and `torch.func`."""
    found: list[Tensor] = []
    source, _, target, _, weights, zeta_bar, *_ = given
    loss: Tensor = _PlannedAlignment.apply(source, target, weights, zeta_bar, (plan, given, found))  # type: ignore[no-untyped-call]
    return FusedResult(loss, found[0], plan.results)


def fused_alignment(given: Given, settings: Settings) -> FusedResult:
    """Compute an alignment in a form that compilers and `torch.func` can take apart."""
    loss, numbers, *_ = _FusedAlignment.apply(  # type: ignore[no-untyped-call]
        *given[:5],
        *given[6:],
        settings.num_classes,
        list(settings.orders),
        list(settings.sigmas or (1.0,) * (1 + len(settings.orders))),
        settings.unbiased,
        list(settings.needed),
        settings.check_values,
    )
    return FusedResult(loss, numbers, Store(results(settings, given[4] is not None)))


class _PlannedAlignment(torch.autograd.Function):
    """Takes what has a gradient, and a plan, `Given` and a list, to which it adds the results besides the loss.

    A function with `setup_context`, which `torch.func` needs, takes several times as long to call, as do arguments that
    are not to be differentiated.
    """

    @staticmethod
    def forward(
        ctx: Any, _source: Tensor, _target: Tensor, weights: Optional, zeta_bar: Optional, call: tuple[Any, ...]
    ) -> Tensor:
        ctx.plan, given, found = call
        loss, *kept = evaluate(ctx.plan, *given)
        ctx.learned = None
        if zeta_bar is not None:  # not saved: the next call may raise them to 0 once more
            ctx.learned, weights = (zeta_bar, weights), None
            increment_version(zeta_bar)
            increment_version(ctx.learned[1])
        if ctx.plan.settings.momentum is not None:
            increment_version(given[6])
        ctx.save_for_backward(*given[:4], weights, *given[7:], *kept)
        found.append(kept[0])
        ctx.by_weights = None if given[4] is None else ctx.plan.results.view(kept[0], "by_weights")
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        wants_source, wants_target, *of_weights, _ = ctx.needs_input_grad
        wanted = wants_source, wants_target, any(of_weights)
        by_source, by_target, by_weights = _gradients(ctx, upstream, wanted, ctx.plan.settings, ctx.plan)
        if by_weights is None or ctx.learned is None:
            return by_source, by_target, by_weights, None, None
        return by_source, by_target, by_weights[1:], by_weights[0], None


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
        ctx.save_for_backward(*inputs[:5], *inputs[6:8], *output[1:])
        ctx.learned, ctx.by_weights, ctx.settings = None, None, inputs[8:]
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
    source, _, target, _, weights, source_weights, target_weights, numbers, kept = ctx.saved_tensors
    by_source = by_target = by_weights = None
    if wanted[0] or wanted[1]:
        is_compiling = torch.compiler.is_compiling()
        is_batched = not is_compiling and torch._C._functorch.is_legacy_batchedtensor(upstream)  # is_grads_batched
        factor = torch.ones_like(numbers[0]) if is_batched else upstream
        data = source, target, kept, source_weights, target_weights, factor
        if is_compiling or plan is None:
            backward = torch.ops.sohot.fused_alignment_backward if is_compiling else operators.backward
            constants = settings.num_classes, list(settings.orders), settings.unbiased
            by_source, by_target = backward(*data, *constants, *wanted[:2])
        else:
            by_source, by_target = plan.backward(*data, wanted[:2])
        if is_batched:
            by_source, by_target = by_source * upstream, by_target * upstream
    if wanted[2]:
        by_weights = ctx.by_weights
        if by_weights is None:
            by_weights = Store(results(settings, has_weights=True)).view(numbers, "by_weights")
        by_weights = by_weights * upstream
        if weights is not None:
            by_weights = (by_weights.sum(1, keepdim=True) if weights.shape[1] == 1 else by_weights).to(weights.dtype)
    return by_source if wanted[0] else None, by_target if wanted[1] else None, by_weights


def _differentiable_gradients(ctx: Any, upstream: Tensor, settings: Settings) -> Gradients:
    """The gradients in plain operations that can be differentiated again."""
    source, source_labels, target, target_labels, weights, *of_rows = ctx.saved_tensors[:7]
    both = row_weights(source, target, *of_rows)
    store = Store(results(settings, weights is not None or ctx.learned is not None))
    found = store.views(ctx.saved_tensors[7])
    if ctx.learned is not None:  # the values that were used, with the derivative of the parameters as they are now
        now = torch.cat([ctx.learned[0].unsqueeze(0), ctx.learned[1]])
        weights = found["used_weights"] + (now - now.detach())
    elif settings.weighting is not None:
        weights = found["used_weights"]
    shares = term_shares(
        source_labels,
        target_labels,
        settings.num_classes,
        settings.orders,
        settings.estimator,
        row_weights=both,
        needed=settings.needed,
    )
    if settings.sigmas is not None:
        shares = shares * constant_weights(settings.sigmas, shares)
    by_source, by_target, by_shared = differentiable_gradients(
        partial(weighted_sum, orders=list(settings.orders), unbiased=settings.unbiased),
        (source, target, shares if weights is None else weights * shares),
        (source_labels, target_labels, found["divisor"], *(both or ())),
        (upstream,),
    )
    if weights is None:
        return by_source, by_target, None
    by_weights = (by_shared * shares).sum_to_size(weights.shape)
    if ctx.learned is not None:
        assert settings.weighting is not None
        by_weights = by_weights + 2 * upstream * constant_weights(settings.weighting.alphas, shares) * (weights - 1)
    return by_source, by_target, by_weights
