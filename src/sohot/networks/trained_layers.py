"""Convolution, batch normalisation with fixed statistics and activation as one layer, while a GPU trains them.

Normalising the outputs of a convolution is a convolution with scaled weights and another bias. The scaled weights are
small and made anew in each step, so gradients reach all parameters; saved are most passes over the large outputs,
forward and backward. Padding before the convolution becomes its own. Results differ by rounding only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, fx, nn
from torch.autograd.function import once_differentiable

from ..functional.fused.probe import kernels_work
from .fusion import Layer, Rewriting

Bounds = tuple[float, float]

_BOUNDS: dict[type, Bounds] = {nn.ReLU: (0.0, inf), nn.ReLU6: (0.0, 6.0)}
_TYPES = (torch.float32, torch.bfloat16, torch.float16)
_BLOCK = 1024
_ROWS, _COLUMNS, _ROWS_EACH = 16, 64, 256
_PIXELS = 64


@contextmanager
def trained_layers(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Let the layers of a model that train work together on a GPU; names, parameters and modules stay as they are.

    Args:
        model: The model. Batch normalisation that uses the statistics of a batch is left alone.
        device: The device that trains; without an NVIDIA GPU nothing changes.
    """
    changed = _rewrite(model) if kernels_work(device) else []
    try:
        yield
    finally:
        for module in changed:
            del module.forward


def _rewrite(model: nn.Module) -> list[nn.Module]:
    """Rewrite the forward passes of the largest parts that can be traced; returns these parts."""
    training = model.training
    model.train()
    try:
        return _rewritten(model)
    finally:
        model.train(training)


def _rewritten(module: nn.Module) -> list[nn.Module]:
    if not any(map(_is_fixed, module.modules())) or not any(x.requires_grad for x in module.parameters()):
        return []
    graph = _traced(module)
    if graph is None:
        return [part for child in module.children() for part in _rewritten(child)]
    # The module itself stays, because what contains it may use more of it than its forward pass.
    module.forward = _TrainedRewriting(fx.GraphModule(module, graph)).done().forward
    return [module]


def _traced(module: nn.Module) -> fx.Graph | None:
    """Trace what a module computes; None if that depends on its input, or on whether it trains."""
    modes = [(part, part.training) for part in module.modules()]  # some parts do not train, whatever it does
    graphs = []
    try:
        for training in (False, True):
            for part, mode in modes:
                part.training = mode and training
            graphs.append(fx.Tracer().trace(module))
    except Exception:  # its own Python runs on stand-ins for tensors, and may raise anything
        return None
    finally:
        for part, mode in modes:
            part.training = mode
    return graphs[1] if str(graphs[0]) == str(graphs[1]) else None


def _is_fixed(module: nn.Module | None) -> bool:
    return type(module) is nn.BatchNorm2d and not module.training and module.running_mean is not None


class _TrainedRewriting(Rewriting):
    """Replaces convolutions that a fixed batch normalisation follows."""

    def _replace(self, node: fx.Node, layer: Layer, name: str) -> None:
        given, chain, bounds = node.all_input_nodes[0], [node], (-inf, inf)
        after, norm = self._after(node)
        if after is None or not isinstance(norm, nn.BatchNorm2d) or not _is_fixed(norm):
            return
        chain.append(after)
        padding = self._module(given)
        if isinstance(padding, nn.ZeroPad2d) and len(given.users) == 1:
            left, right, top, bottom = padding.padding
            if left == right and top == bottom:
                layer = layer._replace(padding=(layer.padding[0] + top, layer.padding[1] + left))
                chain.insert(0, given)
                given = given.all_input_nodes[0]
        after, module = self._after(after)
        pools = False
        if after is not None and type(module) in _BOUNDS:
            bounds = _BOUNDS[type(module)]
            chain.append(after)
            after, pool = self._after(after)
            if after is not None and isinstance(pool, nn.AdaptiveAvgPool2d) and pool.output_size in (1, (1, 1)):
                pools = True
                chain.append(after)
        self._put(chain, given, TrainedConvolution(layer, norm, bounds, pools=pools), name)


class _Geometry(NamedTuple):
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int


class TrainedConvolution(nn.Module):
    """A convolution with fixed batch normalisation and bounds on its outputs; the parameters stay those of its parts.

    Args:
        layer: The convolution.
        norm: What follows it.
        bounds: Least and largest output.
        pools: Whether to average the outputs over all pixels.
    """

    def __init__(self, layer: Layer, norm: nn.BatchNorm2d, bounds: Bounds, *, pools: bool = False) -> None:
        super().__init__()
        # In tuples, so that nothing is registered twice. The norm itself: moving a model gives it new buffers.
        self.parts = (layer.weight, layer.bias)
        self.norm = (norm,)
        self.geometry = _Geometry(layer.stride, layer.padding, layer.dilation, layer.groups)
        self.bounds, self.pools = bounds, pools

    def forward(self, inputs: Tensor) -> Tensor:
        """Convolve, normalise and bound."""
        (weight, bias), (norm,) = self.parts, self.norm
        mean, variance = norm.running_mean, norm.running_var
        assert mean is not None
        assert variance is not None
        dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else inputs.dtype
        if dtype not in _TYPES:
            outputs = F.conv2d(inputs, weight, bias, *self.geometry)
            outputs = F.batch_norm(outputs, mean, variance, norm.weight, norm.bias, eps=norm.eps).clamp(*self.bounds)
            return outputs.mean((2, 3), keepdim=True) if self.pools else outputs
        how = self.geometry, self.bounds, self.pools
        given = inputs.to(dtype).contiguous(memory_format=torch.channels_last)
        outputs = _TrainedConvolution.apply(  # type: ignore[no-untyped-call]
            given, weight, bias, norm.weight, norm.bias, mean, torch.rsqrt(variance + norm.eps), *how
        )
        return cast(Tensor, outputs)


class _TrainedConvolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        gamma: Tensor | None,
        beta: Tensor | None,
        mean: Tensor,
        deviation: Tensor,
        geometry: _Geometry,
        bounds: Bounds,
        pools: bool,
    ) -> Tensor:
        from .layer_kernels import add_and_bound, fold

        channels, columns = len(weight), weight.numel() // len(weight)
        weight = weight.contiguous(memory_format=torch.channels_last)
        folded = torch.empty_like(weight, dtype=inputs.dtype)
        folded_bias = torch.empty_like(mean, dtype=torch.float32)
        fold[(channels,)](
            weight, bias, gamma, beta, mean, deviation, folded, folded_bias, columns, BLOCK=_block(columns)
        )
        kept = F.conv2d(inputs, folded, None, *geometry).contiguous(memory_format=torch.channels_last)
        if pools:
            outputs = _bounded_mean(kept, folded_bias, bounds)
        else:
            outputs = kept
            add_and_bound[(-(-outputs.numel() // _BLOCK),)](
                outputs, folded_bias, outputs.numel(), channels, *bounds, BLOCK=_BLOCK
            )
        needed = kept if pools or bounds != (-inf, inf) else None
        ctx.save_for_backward(inputs, weight, bias, gamma, mean, deviation, folded, folded_bias, needed)
        ctx.geometry, ctx.bounds, ctx.has_beta, ctx.pools = geometry, bounds, beta is not None, pools
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from .layer_kernels import unfold

        inputs, weight, bias, gamma, mean, deviation, folded, folded_bias, kept = ctx.saved_tensors
        if ctx.pools:
            gradient, by_parts = _mean_gradients(gradient, kept, folded_bias, ctx.bounds)
        else:
            gradient, by_parts = _stop_at_bounds(gradient, kept, ctx.bounds)
        wanted, geometry = ctx.needs_input_grad, ctx.geometry
        turns = wanted[0] and _is_depthwise(folded, geometry)
        by_inputs, by_folded, _ = torch.ops.aten.convolution_backward(
            gradient, inputs, folded, None, *geometry[:3], False, [0, 0], geometry.groups,
            [wanted[0] and not turns, True, False]
        )  # fmt: skip
        if turns:  # faster as a convolution of its own
            rest = [size - 1 - by for size, by in zip(folded.shape[2:], geometry.padding, strict=True)]
            by_inputs = F.conv2d(gradient, folded.flip(2, 3), padding=rest, groups=geometry.groups)
        by_folded = by_folded.contiguous(memory_format=torch.channels_last)
        by_weight = torch.empty_like(weight)
        by_bias, by_gamma = (None if x is None else torch.empty_like(x) for x in (bias, gamma))
        by_beta = torch.empty_like(mean) if ctx.has_beta else None
        channels, columns = len(weight), weight.numel() // len(weight)
        unfold[(channels,)](
            by_folded, by_parts, len(by_parts), weight, bias, gamma, mean, deviation, by_weight, by_bias, by_gamma,
            by_beta, channels, columns, BLOCK=_block(columns)
        )  # fmt: skip
        return by_inputs, by_weight, by_bias, by_gamma, by_beta, *(None,) * 5


def _stop_at_bounds(gradient: Tensor, outputs: Tensor | None, bounds: Bounds) -> tuple[Tensor, Tensor]:
    """Return the gradient before the bounds, and its sums over parts of the pixels: (parts, channels)."""
    from .layer_kernels import bound_gradient

    gradient = gradient.contiguous(memory_format=torch.channels_last)
    channels = gradient.shape[1]
    rows = gradient.numel() // channels
    parts = -(-rows // _ROWS_EACH)
    by_parts = torch.empty(parts, channels, dtype=torch.float32, device=gradient.device)
    result = gradient if outputs is None else torch.empty_like(gradient)
    bound_gradient[(parts, -(-channels // _COLUMNS))](
        gradient, outputs, result, by_parts, rows, channels, _ROWS_EACH, *bounds,
        BOUNDED=outputs is not None, ROWS=_ROWS, COLUMNS=_COLUMNS
    )  # fmt: skip
    return result, by_parts


def _bounded_mean(inputs: Tensor, bias: Tensor, bounds: Bounds) -> Tensor:
    """Add a bias, bound, and average over pixels: (images, channels, height, width) to (images, channels, 1, 1)."""
    from .layer_kernels import bounded_mean

    images, channels, height, width = inputs.shape
    outputs = inputs.new_empty(images, channels, 1, 1)
    bounded_mean[(-(-channels // _COLUMNS), images)](
        inputs, bias, outputs, height * width, channels, *bounds, ROWS=_PIXELS, COLUMNS=_COLUMNS
    )
    return outputs


def _mean_gradients(gradients: Tensor, inputs: Tensor, bias: Tensor, bounds: Bounds) -> tuple[Tensor, Tensor]:
    """Return the gradients of `_bounded_mean` by its inputs, and by its bias for each image: (images, channels)."""
    from .layer_kernels import mean_gradients

    images, channels, height, width = inputs.shape
    by_inputs, by_bias = torch.empty_like(inputs), bias.new_empty(images, channels)
    mean_gradients[(-(-channels // _COLUMNS), images)](
        *(gradients.contiguous(), inputs, bias, by_inputs, by_bias, height * width, channels, *bounds),
        ROWS=_PIXELS,
        COLUMNS=_COLUMNS,
    )
    return by_inputs, by_bias


def _is_depthwise(weight: Tensor, geometry: _Geometry) -> bool:
    """Whether each channel is convolved by itself, pixel by pixel."""
    alone = weight.shape[1] == 1 and geometry.groups == len(weight) > 1
    within = all(by < size for size, by in zip(weight.shape[2:], geometry.padding, strict=True))
    return alone and within and geometry.stride == (1, 1) and geometry.dilation == (1, 1)


def _block(columns: int) -> int:
    return min(1024, max(16, 1 << (columns - 1).bit_length()))
