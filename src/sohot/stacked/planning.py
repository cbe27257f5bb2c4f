"""Which fits train together: those of one shape, as many at a time as fit into memory (and a CPU's cache)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from .network import Shape, tensor_shapes
from .settings import HeadSettings

_CACHE = 8 * 2**20
"""Bytes at work in one stack on a CPU: beyond its cache more fits at once are slower, not quicker."""
_CPU_MEMORY = 2**30
_GPU_SHARE = 0.5


class Plan(NamedTuple):
    """What decides with which other fits one can train."""

    shape: Shape
    algorithm: tuple[object, ...]  # settings that are no numbers of a fit's own
    dtype: torch.dtype
    widths: tuple[int, int]  # rows of the largest class in each domain


def algorithm_of(settings: HeadSettings) -> tuple[object, ...]:
    """The settings that all fits of a stack have in common."""
    method = settings.resolved_method()
    aligns = (settings.estimator, settings.feature_scale) if method.aligns else ()
    return (
        method.orders,
        method.scope,
        method.class_weights,
        *aligns,
        settings.norm_bound is None,
        settings.optimizer,
        settings.momentum,
        settings.schedule,
        settings.warmup,
        settings.steps,
    )


def chunks(plans: Sequence[Plan], device: torch.device, memory: int | None) -> list[list[int]]:
    """Split fits into stacks.

    Args:
        plans: What each fit needs.
        device: Where they train.
        memory: Most bytes of a stack; None for 1 GB on a CPU and half of what is free on a GPU.

    Returns:
        For each stack the numbers of its fits.
    """
    on_cpu = device.type == "cpu"
    budget = _budget(device) if memory is None else memory
    groups: dict[object, list[int]] = {}
    for number, plan in enumerate(plans):
        # Padding to one width costs arithmetic, which a CPU has little of; on a GPU a second stack costs more.
        key = plan if on_cpu else plan._replace(widths=(0, 0))
        groups.setdefault(key, []).append(number)
    result = []
    for members in groups.values():
        source, target = (max(plans[number].widths[side] for number in members) for side in (0, 1))
        each = fit_bytes(plans[members[0]]._replace(widths=(source, target)))
        most = max(1, min(budget, _CACHE if on_cpu else budget) // each)
        result += [members[start : start + most] for start in range(0, len(members), most)]
    return result


def fit_bytes(plan: Plan) -> int:
    """About how many bytes one fit needs while it trains."""
    shape, (source, target) = plan.shape, plan.widths
    slots = shape.num_classes * (source + target)
    parameters = sum(torch.Size(of_one).numel() for of_one in tensor_shapes(shape).values())
    orders, scope, *_ = plan.algorithm
    numbers = slots * (6 * shape.size + 4 * shape.num_classes + 2 * (shape.hidden or 0)) + 7 * parameters
    if scope is not None:
        side = source + target if scope == "class" else slots
        highest = max(orders) if isinstance(orders, tuple) else 2
        numbers += slots * (5 * shape.size + (3 + 2 * highest) * side)
    return int(numbers * plan.dtype.itemsize)


def _budget(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free * _GPU_SHARE)
    return _CPU_MEMORY
