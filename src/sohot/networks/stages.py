"""Any network as a sequence of stages, found by watching it run.

A network is opened up into the modules it calls if these form a chain: the input of the network is that of the
first, the output of each is the input of the next, the output of the last is that of the network. A chain is run and
its result compared, so that a step between the calls (such as an in-place addition) is noticed. What is not a chain (a
residual block) stays whole. If one module of a class must stay whole, all of that class do: they are the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle


@dataclass
class _Call:
    """One call of a module: the tensors as objects (what passes from which module to which) and their values then."""

    module: nn.Module
    input: Any
    value: Tensor | None
    output: Any = None
    result: Tensor | None = None
    calls: list[_Call] = field(default_factory=list)


@torch.no_grad()
def split_in_stages(network: nn.Module, images: Tensor) -> list[nn.Module]:
    """Split a network into stages that compute the same in sequence; a network that cannot be split is one stage.

    A stage begins with a layer or block that has weights, and includes what follows without one (normalisation,
    activation, pooling).

    Args:
        network: A network that maps images to features. Its modules become the stages.
        images: A few images to watch it with.

    Example:
        >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3), nn.ReLU(), nn.Flatten())
        >>> [len(stage) for stage in split_in_stages(net, torch.randn(1, 1, 8, 8))]
        [2, 3]
    """
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        root = _watch(network, images)
        blocks: set[type] = set()
        _find_blocks(root, blocks)
        return group_stages(_open(root, blocks))
    finally:
        for module, mode in modes.items():
            module.training = mode


def group_stages(layers: list[nn.Module]) -> list[nn.Module]:
    """Begin a stage at each layer with weights; a layer without weights joins the stage before it."""
    groups: list[list[nn.Module]] = []
    for layer in layers:
        if not groups or (count_weights(layer) and any(map(count_weights, groups[-1]))):
            groups.append([])
        groups[-1].append(layer)
    return [group[0] if len(group) == 1 else nn.Sequential(*group) for group in groups]


def first_of_last_two_blocks(stages: list[nn.Module]) -> int | None:
    """Where the last two blocks begin: stages of two or more weight matrices, or of one if blocks are too few."""
    if len(stages) == 1:
        return None
    for weights in (2, 1):
        places = [index for index, stage in enumerate(stages) if count_weights(stage) >= weights]
        if len(places) >= 2:
            return places[-2]
    return None


def count_weights(module: nn.Module) -> int:
    """Number of weight matrices and kernels: tensors of two or more dimensions that belong to a layer."""
    return sum(
        1 for layer in module.modules() if isinstance(getattr(layer, "weight", None), Tensor) and _is_wide(layer)
    )


def _is_wide(layer: nn.Module) -> bool:
    weight = layer.weight
    return isinstance(weight, Tensor) and weight.dim() >= 2


def _watch(network: nn.Module, images: Tensor) -> _Call:
    """Run a network and record every call of a module in it."""
    top = _Call(nn.Identity(), None, None)
    stack = [top]

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        single = len(args) == 1 and isinstance(args[0], Tensor) and not any(v is not None for v in kwargs.values())
        call = _Call(module, args[0] if single else None, args[0].clone() if single else None)
        stack[-1].calls.append(call)
        stack.append(call)

    def leave(_module: nn.Module, _args: Any, output: Any) -> None:
        call = stack.pop()
        call.output = output
        call.result = output.clone() if isinstance(output, Tensor) else None

    hooks: list[RemovableHandle] = []
    for module in network.modules():
        hooks.append(module.register_forward_pre_hook(enter, with_kwargs=True))
        hooks.append(module.register_forward_hook(leave))
    try:
        network(images)
    finally:
        for hook in hooks:
            hook.remove()
    return top.calls[0]


def is_called_plainly(network: nn.Module, modules: list[nn.Module], images: Tensor) -> bool:
    """Whether each of some modules runs once, on one tensor and nothing else."""
    calls, matched = [_watch(network, images)], []
    while calls:
        call = calls.pop()
        calls.extend(call.calls)
        matched.extend([call] if any(call.module is module for module in modules) else [])
    return len(matched) == len(modules) and all(call.value is not None for call in matched)


def _find_blocks(call: _Call, blocks: set[type]) -> None:
    """Collect the classes with a member that is not a chain of its calls."""
    if call.calls and not isinstance(call.module, nn.Sequential) and _chain(call) is None:
        blocks.add(type(call.module))
    for inner in call.calls:
        _find_blocks(inner, blocks)


def _open(call: _Call, blocks: set[type]) -> list[nn.Module]:
    if type(call.module) in blocks or not call.calls:
        return [call.module]
    chain = _chain(call)
    if chain is None:
        return [call.module]
    return [layer for link in chain for layer in ([link] if isinstance(link, nn.Module) else _open(link, blocks))]


def _chain(call: _Call) -> list[_Call | nn.Module] | None:
    """The calls inside a call as a chain that computes the same, or None. Flattening between them becomes a layer."""
    links: list[_Call | nn.Module] = []
    held, value = call.input, call.value
    if len({inner.module for inner in call.calls}) < len(call.calls):
        return None  # a module that runs twice would need two places
    if next(call.module.parameters(recurse=False), None) is not None:
        return None  # its own parameters would be lost
    for inner in call.calls:
        if inner.value is None:
            return None
        if inner.input is not held:
            if not _is_flattened(value, inner.value):
                return None
            links.append(nn.Flatten())
        links.append(inner)
        held, value = inner.output, inner.result
    if call.output is not held:
        if not _is_flattened(value, call.result):
            return None
        links.append(nn.Flatten())
    return links if _computes(links, call) else None


def _is_flattened(before: Tensor | None, after: Tensor | None) -> bool:
    if before is None or after is None or after.dim() != 2 or before.dim() <= 2:
        return False
    return before.flatten(1).shape == after.shape and torch.equal(before.flatten(1), after)


def _computes(links: list[_Call | nn.Module], call: _Call) -> bool:
    if call.value is None or call.result is None:
        return False
    result = call.value.clone()
    for link in links:
        result = (link.module if isinstance(link, _Call) else link)(result)
    return agree(result, call.result)


def agree(left: Any, right: Tensor) -> bool:
    """Whether two results are equal up to rounding."""
    if not isinstance(left, Tensor) or left.shape != right.shape:
        return False
    size = right.abs().max().clamp(min=torch.finfo(right.dtype).tiny)
    return bool((left - right).abs().max() <= 1e-5 * size)
