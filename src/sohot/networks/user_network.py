"""Your own network, by `FILE.py:function`."""

import inspect
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..data.input_spec import InputSpec
from .any_network import from_network
from .backbone import Backbone, BackboneOptions
from .timm_models import timm_spec
from .torchvision_models import imagenet_spec
from .weights import fill, read_weights

CLASSIFIERS = ("fc", "classifier", "head", "heads", "_fc", "last_linear")


def build_own(options: BackboneOptions) -> Backbone:
    """Call the function and make a backbone from what it returns.

    A `Backbone` is used as it is. Any other module is treated as an ImageNet network: a last linear layer named fc,
    classifier, head, heads, _fc or last_linear is removed, and the rest is split into stages if possible. It declares
    its input format by an attribute `input_spec` (an `InputSpec`) or as timm does; otherwise the usual one is assumed.
    An argument `pretrained` of the function, if it has one, says whether trained weights are wanted.
    """
    network = _call(find_function(options.name), options)
    if isinstance(network, Backbone):
        return _as_it_is(network, options)
    if not isinstance(network, nn.Module):
        raise TypeError(
            f"backbone {options.name}: the function must return a torch.nn.Module, got {type(network).__name__}"
        )
    if options.weights is not None:
        classifier = tuple(f"{name}." for name in CLASSIFIERS)
        fill(network, read_weights(options.weights), str(options.weights), options.name, classifier)
    _remove_classifier(network)
    network.to(torch.float32)
    return from_network(
        options.name, network, _input_of(network, options.size), options, pretrained=_looks_trained(network)
    )


def find_function(name: str) -> Callable[..., Any]:
    """Import the file of FILE.py:function and return the function."""
    path, _, function = name.rpartition(":")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"backbone {name}: there is no file {file}")
    key = f"sohot_own_{file.stem}"
    spec = spec_from_file_location(key, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"backbone {name}: {file} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[key] = module  # dataclasses and type hints in the file look up their module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"backbone {name}: {file} cannot be imported: {type(error).__name__}: {error}") from error
    builder = getattr(module, function, None)
    if not callable(builder):
        raise ValueError(f"backbone {name}: {file} has no function {function!r}")
    return builder  # type: ignore[no-any-return]


def _call(function: Callable[..., Any], options: BackboneOptions) -> Any:
    takes_pretrained = "pretrained" in inspect.signature(function).parameters
    wanted = options.pretrained and options.weights is None
    if not takes_pretrained and not options.pretrained and options.weights is None:
        raise ValueError(
            f"backbone {options.name}: to start from scratch, the function needs an argument named 'pretrained'"
        )
    try:
        return function(pretrained=wanted) if takes_pretrained else function()
    except Exception as error:
        raise ValueError(f"backbone {options.name}: the function failed: {type(error).__name__}: {error}") from error


def _as_it_is(backbone: Backbone, options: BackboneOptions) -> Backbone:
    if options.weights is not None:
        fill(backbone, read_weights(options.weights), str(options.weights), options.name)
        backbone.pretrained = True
    if options.channels != backbone.input.channels:
        raise ValueError(
            f"channels={options.channels}: backbone {options.name} accepts images of {backbone.input.channels} channels"
        )
    backbone.name = options.name
    return backbone


def _remove_classifier(network: Any) -> None:
    if callable(getattr(network, "reset_classifier", None)):
        network.reset_classifier(0)  # timm's way
        return
    for name in CLASSIFIERS:
        layer = getattr(network, name, None)
        if isinstance(layer, nn.Linear):
            setattr(network, name, nn.Identity())
            return
        if isinstance(layer, nn.Sequential) and len(layer) and isinstance(layer[-1], nn.Linear):
            layer[-1] = nn.Identity()
            return


def _input_of(network: nn.Module, size: int | None) -> InputSpec:
    declared = getattr(network, "input_spec", None)
    if isinstance(declared, InputSpec):
        return declared
    if isinstance(getattr(network, "pretrained_cfg", None), dict):
        return timm_spec(network, size)
    first = next((module for module in network.modules() if isinstance(module, nn.Conv2d)), None)
    usual = imagenet_spec(size)
    if first is not None and first.in_channels == 1:
        return InputSpec(usual.size, (0.5,), (0.5,), usual.resize, usual.interpolation)
    return usual


def _looks_trained(network: nn.Module) -> bool:
    """Whether batch normalisation has seen data: only then are its statistics useful."""
    norms = [module for module in network.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    known = [norm.running_mean for norm in norms if norm.running_mean is not None]
    return not known or any(bool(mean.any()) for mean in known)
