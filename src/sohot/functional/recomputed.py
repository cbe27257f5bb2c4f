"""A function whose derivatives, of any order, compute it again instead of keeping its steps.

`torch.utils.checkpoint` saves memory in the same way, but not in second derivatives and not under `torch.func`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., tuple[Tensor, ...]]


def recomputed(function: Function, floats: tuple[Tensor, ...], others: tuple[Tensor, ...] = ()) -> tuple[Tensor, ...]:
    """Call `function(*floats, *others)`, keeping only the arguments for derivatives.

    Under `torch.func.vmap` it is called once for each example, so it may look at values, as labels need.

    Args:
        function: Returns a tuple of floating-point tensors; everything it differentiates must be among its arguments.
        floats: The arguments to differentiate.
        others: The rest.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (cubes,) = recomputed(lambda x: (x.pow(3).sum(),), (x,))
        >>> (slope,) = torch.autograd.grad(cubes, x, create_graph=True)
        >>> torch.autograd.grad(slope.sum(), x)
        (tensor([ 6., 12.]),)
    """
    result: tuple[Tensor, ...] = _Recomputed.apply(function, len(floats), *floats, *others)  # type: ignore[no-untyped-call]
    return result


def look(check: Callable[..., None], *tensors: Tensor) -> None:
    """Call a check that reads values; under `torch.func.vmap`, once for each example."""
    if torch.compiler.is_compiling():
        check(*tensors)
    else:
        recomputed(partial(_look, check), (), tensors)


def _look(check: Callable[..., None], *tensors: Tensor) -> tuple[Tensor]:
    check(*tensors)
    return (tensors[0].new_empty(0),)


def differentiable_gradients(
    function: Function, floats: tuple[Tensor, ...], others: tuple[Tensor, ...], upstream: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Multiply `upstream` by the derivatives of `function` in each of `floats`; they are `recomputed` in their turn."""
    of_function = partial(_gradients, function, len(floats), len(upstream))
    return recomputed(of_function, (*floats, *upstream), others)


def _gradients(function: Function, floats: int, outputs: int, *arguments: Tensor) -> tuple[Tensor, ...]:
    own, upstream, others = arguments[:floats], arguments[floats : floats + outputs], arguments[floats + outputs :]
    back: Function = torch.func.vjp(lambda *x: function(*x, *others), *own)[1]
    return back(upstream)


def each_example(info: Any, in_dims: tuple[Any, ...], call: Function, *arguments: Any) -> tuple[Any, Any]:
    """The rule of `torch.func.vmap` for a function that has none: call it for one example after the other."""
    results = []
    for number in range(info.batch_size):
        chosen = [
            x.select(dim, number) if isinstance(dim, int) else x for x, dim in zip(arguments, in_dims, strict=True)
        ]
        results.append(call(*chosen))
    stacked = tuple(torch.stack(parts) for parts in zip(*results, strict=True))
    return stacked, (0,) * len(stacked)


class _Recomputed(torch.autograd.Function):
    """Takes the function, the number of arguments to differentiate, and the arguments."""

    @staticmethod
    def forward(function: Function, _: int, *arguments: Tensor) -> tuple[Tensor, ...]:
        return function(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG004
        ctx.function, ctx.floats, *arguments = inputs
        ctx.save_for_backward(*arguments)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        floats, others = ctx.saved_tensors[: ctx.floats], ctx.saved_tensors[ctx.floats :]
        return None, None, *differentiable_gradients(ctx.function, floats, others, upstream), *(None,) * len(others)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        return each_example(info, in_dims, _Recomputed.apply, *arguments)
