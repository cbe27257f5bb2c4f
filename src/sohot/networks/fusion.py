"""A copy of a network for inference on a CPU: each convolution is one call with the layers around it.

Padding before a convolution becomes its own, batch normalisation after it is folded into its weights, and its
activation is computed while the result is still in the cache. The results differ by rounding only.
"""

from copy import deepcopy
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

_TOLERANCE = 1e-3
"""Largest difference to the original, relative to its largest output: far above rounding, far below a mistake."""

_CONVOLUTION = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")


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
    if not _can_fuse(network, example):
        return network
    try:
        fused = _fuse(deepcopy(network))
        with torch.no_grad():
            expected, found = network(example), fused(arranged(example))
        off = (found - expected).abs().max() / expected.abs().max().clamp_min(1e-30)
    except Exception:  # a network may do anything with its layers
        return network
    return fused if bool(off <= _TOLERANCE) else network


def arranged(rows: Tensor) -> Tensor:
    """Put the channels of a pixel side by side, as fused layers expect them."""
    return rows.contiguous(memory_format=torch.channels_last) if rows.dim() == 4 else rows


def _can_fuse(network: nn.Module, example: Tensor) -> bool:
    numbers = [value for value in (*network.parameters(), *network.buffers()) if value.is_floating_point()]
    plain = all(value.dtype == torch.float32 and value.device.type == "cpu" for value in (*numbers, example))
    return plain and example.dim() in (4, 5) and _convolves(network) and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


def _convolves(network: nn.Module) -> bool:
    return any(isinstance(module, nn.Conv2d) for module in network.modules())


class FusedConvolution(nn.Module):
    """A convolution with the activation that follows it."""

    def __init__(self, layer: "Layer", activation: "_Activation") -> None:
        super().__init__()
        self.geometry = [*layer.padding], [*layer.stride], [*layer.dilation], layer.groups
        weight = layer.weight.detach().contiguous(memory_format=torch.channels_last)
        self.weight = torch.ops.mkldnn._reorder_convolution_weight(weight, *self.geometry)
        self.bias = None if layer.bias is None else layer.bias.detach()
        self.activation = activation

    def forward(self, rows: Tensor) -> Tensor:
        """Convolve and activate."""
        outputs: Tensor = torch.ops.mkldnn._convolution_pointwise(
            rows, self.weight, self.bias, *self.geometry, *self.activation, ""
        )
        return outputs


class _Activation(NamedTuple):
    """What oneDNN calls it, and its numbers."""

    name: str = "none"
    numbers: tuple[float, ...] = ()


_ACTIVATIONS: dict[type, _Activation] = {
    nn.ReLU: _Activation("relu"),
    nn.ReLU6: _Activation("hardtanh", (0.0, 6.0)),
    nn.SiLU: _Activation("swish"),
}


class Layer(NamedTuple):
    """A convolution: `nn.Conv2d` or a call of `F.conv2d`."""

    weight: Tensor
    bias: Tensor | None
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    def padded(self, left: int, right: int, top: int, bottom: int) -> "Layer | None":
        """Pad its input with zeros. Where one side gets more, the kernel grows by zeros on the other one."""
        more_right, more_bottom = right - left, bottom - top
        if more_right < 0 or more_bottom < 0 or (self.dilation != (1, 1) and more_right + more_bottom):
            return None
        weight = F.pad(self.weight, (more_right, 0, more_bottom, 0))
        return self._replace(weight=weight, padding=(self.padding[0] + bottom, self.padding[1] + right))

    def normalised(self, norm: nn.BatchNorm2d) -> "Layer":
        """Fold batch normalisation with fixed statistics."""
        fixed = norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        weight, bias = fuse_conv_bn_weights(self.weight, self.bias, *fixed)  # type: ignore[arg-type]
        return self._replace(weight=weight, bias=bias)


def _fuse(module: nn.Module) -> nn.Module:
    """Let a module compute with fused layers; if its steps depend on the input, let its parts do so."""
    if not _convolves(module):
        return module
    try:
        graph = fx.Tracer().trace(module)
    except Exception:  # its own Python runs on stand-ins for tensors, and may raise anything
        for part in module.children():
            _fuse(part)
        return module
    # The module itself stays, because what contains it may use more of it than its forward pass.
    module.forward = Rewriting(fx.GraphModule(module, graph)).done().forward
    return module


class Rewriting:
    """Replaces convolutions in a graph, each with the layers before and after that only it uses."""

    def __init__(self, graph: fx.GraphModule) -> None:
        self.graph, self.modules = graph, dict(graph.named_modules())

    def done(self) -> nn.Module:
        """Replace every convolution that can be, and return the module of the graph."""
        for number, node in enumerate(list(self.graph.graph.nodes)):
            if (layer := self._layer(node)) is not None:
                self._replace(node, layer, f"fused_{number}")
        self.graph.delete_all_unused_submodules()
        self.graph.recompile()
        return self.graph

    def _replace(self, node: fx.Node, layer: Layer, name: str) -> None:
        given, chain, activation = node.all_input_nodes[0], [node], _Activation()
        padding = self._module(given)
        if isinstance(padding, nn.ConstantPad2d) and padding.value == 0 and len(given.users) == 1:
            padded = layer.padded(*padding.padding)
            if padded is not None:
                chain.insert(0, given)
                layer, given = padded, given.all_input_nodes[0]
        after, module = self._after(node)
        if after is not None and isinstance(module, nn.BatchNorm2d) and module.track_running_stats:
            layer = layer.normalised(module)
            chain.append(after)
            after, module = self._after(after)
        if after is not None and type(module) in _ACTIVATIONS:
            activation = _ACTIVATIONS[type(module)]
            chain.append(after)
        self._put(chain, given, FusedConvolution(layer, activation), name)

    def _put(self, chain: list[fx.Node], given: fx.Node, module: nn.Module, name: str) -> None:
        """Put a module in the place of a chain of nodes."""
        self.graph.add_submodule(name, module)
        with self.graph.graph.inserting_after(chain[-1]):
            fused = self.graph.graph.call_module(name, (given,))
        chain[-1].replace_all_uses_with(fused)
        for old in reversed(chain):
            self.graph.graph.erase_node(old)

    def _after(self, node: fx.Node) -> tuple[fx.Node | None, nn.Module | None]:
        """Return the only user of a node's result, and its module."""
        user = next(iter(node.users)) if len(node.users) == 1 else None
        return user, self._module(user)

    def _module(self, node: fx.Node | None) -> nn.Module | None:
        return self.modules.get(str(node.target)) if node is not None and node.op == "call_module" else None

    def _layer(self, node: fx.Node) -> Layer | None:
        """Return the convolution that a node stands for; None if it is none that can be fused."""
        module = self._module(node)
        if type(module) is nn.Conv2d and module.padding_mode == "zeros" and not isinstance(module.padding, str):
            found = {name: getattr(module, name) for name in Layer._fields}
        elif node.op == "call_function" and node.target is F.conv2d:
            given = {**dict(zip(_CONVOLUTION, node.args, strict=False)), **node.kwargs}
            found = {name: self._value(given.get(name)) for name in Layer._fields}
        else:
            return None
        if not isinstance(found["weight"], Tensor) or any(found[name] is None for name in Layer._fields[2:]):
            return None
        pairs = {name: tuple(found[name]) for name in ("stride", "padding", "dilation")}
        return Layer(found["weight"], found["bias"], **pairs, groups=found["groups"])

    def _value(self, given: object) -> object:
        if not isinstance(given, fx.Node):
            return given
        if given.op != "get_attr":
            return None
        value: object = self.graph
        for name in str(given.target).split("."):
            value = getattr(value, name)
        return value
