"""A copy of a network for inference on a CPU: each convolution is one call with the layers around it.

Padding before a convolution becomes its own, batch normalisation after it is folded into its weights, and its
activation is computed while the result is still in the cache. The results differ by rounding only.
"""

from copy import deepcopy
from operator import attrgetter
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

_TOLERANCE = 1e-3
"""Largest difference to the original, relative to its largest output: far above rounding, far below a mistake."""
_ACTIVATIONS: dict[type[Any], tuple[str, tuple[float, ...]]] = {
    nn.ReLU: ("relu", ()),
    nn.ReLU6: ("hardtanh", (0.0, 6.0)),
    nn.SiLU: ("swish", ()),
}
"""What oneDNN calls them, and their numbers."""


def fuse_layers(network: nn.Module, example: Tensor) -> nn.Module:
    """Copy a network in evaluation mode, with its convolutions fused with the layers around them.

    Args:
        network: Any network. What cannot be fused stays as it is.
        example: A few inputs, with which the copy is compared.

    Returns:
        The copy; the network itself if nothing can be fused, or if the copy computes something else.

    Example:
        >>> network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
        >>> images = torch.randn(1, 3, 8, 8)
        >>> torch.allclose(fuse_layers(network, images)(images), network(images), atol=1e-5)
        True
    """
    network.eval()
    numbers = [value for value in (*network.parameters(), *network.buffers(), example) if value.is_floating_point()]
    plain = all(value.dtype == torch.float32 and value.device.type == "cpu" for value in numbers)
    convolves = any(isinstance(module, nn.Conv2d) for module in network.modules())
    if not (plain and convolves and torch.backends.mkldnn.is_available()):  # type: ignore[no-untyped-call]
        return network
    try:
        fused = deepcopy(network)
        _fuse(fused)
        with torch.no_grad():
            expected, outputs = network(example), fused(arranged(example))
        off = (outputs - expected).abs().max() / expected.abs().max().clamp_min(1e-30)
    except Exception:  # a network may do anything with its layers
        return network
    return fused if bool(off <= _TOLERANCE) else network


def arranged(rows: Tensor) -> Tensor:
    """Put the channels of a pixel side by side, as fused layers expect them."""
    return rows.contiguous(memory_format=torch.channels_last) if rows.dim() == 4 else rows


class _Tracer(fx.Tracer):
    """Sees convolutions and their padding as calls, also where a network has classes of its own for them."""

    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        return not isinstance(module, (nn.Conv2d, nn.ConstantPad2d)) and super().is_leaf_module(module, name)


def _fuse(module: nn.Module) -> None:
    """Let a module compute with fused layers; if its steps depend on the input, let its parts do so."""
    try:
        graph = fx.GraphModule(module, _Tracer().trace(module))
    except Exception:  # its own Python runs on stand-ins for tensors, and may raise anything
        for part in module.children():
            _fuse(part)
        return
    for node in list(graph.graph.nodes):
        _replace(graph, node)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    module.forward = graph.forward  # the module stays, because what contains it may use more of it


def _replace(graph: fx.GraphModule, node: fx.Node) -> None:
    """Put one call in the place of a convolution and the layers around it."""
    arguments: Any = node.args
    match arguments:
        case (rows, weight, bias, [*stride], [*padding], [*dilation], int(groups)) if node.target is F.conv2d:
            if any(x is not None and x.op != "get_attr" for x in (weight, bias)):
                return
            weight, bias = (None if x is None else attrgetter(x.target)(graph).detach() for x in (weight, bias))
        case _:
            return
    if rows.target is F.pad and rows.kwargs in ({"mode": "constant", "value": fill} for fill in (0, None)):
        left, right, top, bottom = rows.args[1]
        if (left, top) == (right, bottom) or (left <= right and top <= bottom and dilation == [1, 1]):
            # Where one side gets more zeros, the kernel grows by zeros on the other one.
            weight = F.pad(weight, (right - left, 0, bottom - top, 0))
            rows, padding = rows.args[0], [padding[0] + bottom, padding[1] + right]
    last, (after, layer) = node, _after(graph, node)
    if isinstance(layer, nn.BatchNorm2d) and layer.track_running_stats:
        statistics: Any = layer.running_mean, layer.running_var, layer.eps, layer.weight, layer.bias
        weight, bias = (x.detach() for x in fuse_conv_bn_weights(weight, bias, *statistics))
        last, (after, layer) = after, _after(graph, after)
    activation = _ACTIVATIONS.get(type(layer), ("none", ()))
    last = after if type(layer) in _ACTIVATIONS else last
    weight = weight.contiguous(memory_format=torch.channels_last)
    weight = torch.ops.mkldnn._reorder_convolution_weight(weight, padding, stride, dilation, groups)
    tensors = {f"{node}_{name}": x for name, x in (("weight", weight), ("bias", bias))}
    with graph.graph.inserting_before(last.next):
        for name, tensor in tensors.items():
            graph.register_buffer(name, tensor)
        constants = [None if x is None else graph.graph.get_attr(name) for name, x in tensors.items()]
        geometry = padding, stride, dilation, groups, *activation, ""
        call = torch.ops.mkldnn._convolution_pointwise.default
        fused = graph.graph.call_function(call, (rows, *constants, *geometry))
    last.replace_all_uses_with(fused)


def _after(graph: fx.GraphModule, node: fx.Node) -> tuple[fx.Node, nn.Module | None]:
    """Return the only user of a node's result, and its module; the node itself if there is none."""
    user = next(iter(node.users)) if len(node.users) == 1 else node
    return user, graph.get_submodule(str(user.target)) if user is not node and user.op == "call_module" else None
