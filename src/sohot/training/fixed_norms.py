"""Batch normalisation with fixed statistics as part of the convolution before it, while a GPU trains.

Normalising the outputs of a convolution is a convolution with scaled weights and another bias. The scaled weights are
small and made anew in each step, so gradients reach all parameters as before; what is saved are several passes over the
large outputs, forward and backward.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call


class _Pair(NamedTuple):
    convolution: nn.Conv2d
    norm: nn.BatchNorm2d


@contextmanager
def norms_in_convolutions(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Let convolutions normalise their outputs during training on a GPU; names and parameters stay as they are.

    Args:
        model: The model. Batch normalisation that uses the statistics of a batch is left alone.
        device: The device that trains; on others nothing changes.
    """
    pairs = fixed_pairs(model) if device.type == "cuda" else []
    for convolution, norm in pairs:
        # Its own object, whose forward pass is the one of its class; both share the parameters.
        convolution.forward = partial(_normalised, copy(convolution), norm)  # type: ignore[method-assign]
        norm.forward = _unchanged  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        for layer in (layer for pair in pairs for layer in pair):
            del layer.forward


def _normalised(convolution: nn.Conv2d, norm: nn.BatchNorm2d, inputs: Tensor) -> Tensor:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = torch.rsqrt(norm.running_var + norm.eps)
    scale = scale if norm.weight is None else scale * norm.weight
    shift = -norm.running_mean if convolution.bias is None else convolution.bias - norm.running_mean
    bias = shift * scale if norm.bias is None else torch.addcmul(norm.bias, shift, scale)
    folded = {"weight": convolution.weight * scale.view(-1, 1, 1, 1), "bias": bias}
    outputs: Tensor = functional_call(convolution, folded, (inputs,))
    return outputs


def _unchanged(inputs: Tensor) -> Tensor:
    return inputs


def fixed_pairs(model: nn.Module) -> list[_Pair]:
    """Find the convolutions whose outputs only a batch normalisation with fixed statistics sees.

    >>> [pair.norm.num_features for pair in fixed_pairs(nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8).eval()))]
    [8]
    """
    training = model.training
    model.train()
    try:
        return _pairs(model)
    finally:
        model.train(training)


class _Tracer(fx.Tracer):
    """Takes convolutions of all kinds as they are, such as those that pad their inputs themselves."""

    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        return isinstance(module, nn.Conv2d) or super().is_leaf_module(module, name)


def _pairs(module: nn.Module) -> list[_Pair]:
    if not any(map(_is_fixed, module.modules())) or not any(x.requires_grad for x in module.parameters()):
        return []
    try:
        graph = _Tracer().trace(module)
    except Exception:  # its own Python runs on stand-ins for tensors, and may raise anything
        return [pair for part in module.children() for pair in _pairs(part)]
    modules, found = dict(module.named_modules()), []
    calls = [node for node in graph.nodes if node.op == "call_module"]
    for node in calls:
        user = next(iter(node.users)) if len(node.users) == 1 else None
        layer = modules[str(node.target)]
        norm = modules[str(user.target)] if user is not None and user.op == "call_module" else None
        alone = [other.target for other in calls].count(node.target) == 1  # layers may be used twice
        if isinstance(layer, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d) and _is_fixed(norm) and alone:
            found.append(_Pair(layer, norm))
    return found


def _is_fixed(module: nn.Module) -> bool:
    return type(module) is nn.BatchNorm2d and not module.training and module.running_mean is not None
