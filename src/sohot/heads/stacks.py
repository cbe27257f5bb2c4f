"""Group fits into stacks that train together."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from ..methods.settings import HeadSettings
from .network import Shape, tensor_shapes

_CPU_CACHE = 32 * 2**20
"""Bytes in use by one stack on a CPU. Up to this size more fits at once are faster, beyond the cache slower."""
_CPU_MEMORY = 2**30
_GPU_SHARE = 0.5


class Algorithm(NamedTuple):
    """The settings that all fits of a stack share; all others are numbers that differ by fit."""

    orders: tuple[int, ...]
    scope: str | None
    loss: str | None
    pairs: str
    class_weights: str | None
    estimator: str
    feature_scale: str
    is_bounded: bool
    optimizer: str
    momentum: float
    schedule: str
    warmup: float
    steps: int
    steps_of_head: int
    trains_network: bool
    pool: tuple[str, str] | None  # its loss and prior; None without a pool

    @classmethod
    def of(cls, settings: HeadSettings, *, has_pool: bool = False) -> "Algorithm":
        """Extract them from the settings of a fit."""
        method = settings.resolved_method()
        aligns = method.scope is not None
        return cls(
            method.orders,
            method.scope,
            method.loss,
            method.pairs,
            method.class_weights,
            settings.estimator if aligns else "",
            settings.feature_scale if "feature_scale" in method.looks_at else "",
            settings.norm_bound is not None,
            settings.optimizer,
            settings.momentum,
            settings.schedule,
            settings.warmup,
            settings.steps,
            settings.steps_of_head(),
            settings.trains_network(),
            (settings.used_pool_loss(), settings.used_prior()) if has_pool else None,
        )


class StackKey(NamedTuple):
    """The key of a fit: fits with equal keys can train together."""

    shape: Shape
    algorithm: Algorithm
    dtype: torch.dtype
    widths: tuple[int, int]  # rows of the largest class in each domain
    pool: int = 0  # unlabelled rows


def split_stacks(keys: Sequence[StackKey], device: torch.device, memory: int | None) -> list[list[int]]:
    """Split fits into stacks.

    Args:
        keys: The key of each fit.
        device: Where they train.
        memory: Most bytes in use (a single fit always trains); None for 1 GB on a CPU and half of the free memory on a
            GPU.

    Returns:
        For each stack the numbers of its fits.
    """
    on_cpu = device.type == "cpu"
    budget = _budget(device) if memory is None else memory
    groups: dict[StackKey, list[int]] = {}
    for number, key in enumerate(keys):
        # Padding to one width costs arithmetic, which is scarce on a CPU; on a GPU a second stack costs more.
        groups.setdefault(key if on_cpu else key._replace(widths=(0, 0), pool=0), []).append(number)
    stacks = []
    for members in groups.values():
        source, target = (max(keys[number].widths[side] for number in members) for side in (0, 1))
        pool = max(keys[number].pool for number in members)
        each = fit_bytes(keys[members[0]]._replace(widths=(source, target), pool=pool))
        most = max(1, (min(budget // torch.get_num_threads(), _CPU_CACHE) if on_cpu else budget) // each)
        stacks += [members[start : start + most] for start in range(0, len(members), most)]
    return stacks


def fit_bytes(key: StackKey) -> int:
    """Approximate bytes of one fit in training: rows, what autograd keeps of them, and parameters."""
    shape, (source, target) = key.shape, key.widths
    algorithm = key.algorithm
    slots = shape.num_classes * (source + target) + key.pool
    parameters = sum(torch.Size(of_one).numel() for of_one in tensor_shapes(shape).values())
    numbers = slots * (6 * shape.size + 4 * shape.num_classes + 3 * (shape.hidden or 0)) + 7 * parameters
    if algorithm.scope is not None:
        side = source + target if algorithm.scope == "class" else slots
        if algorithm.orders in ((), (2,)) and algorithm.estimator == "plugin":
            side = min(side, shape.size)
        numbers += slots * (5 * shape.size + (3 + 2 * max(algorithm.orders, default=0)) * side)
    elif algorithm.loss is not None:
        pairs = {"none": 0, "cross": shape.num_classes * target, "all": slots}[algorithm.pairs]
        numbers += slots * (5 * shape.size + 6 * pairs)
    return int(numbers * key.dtype.itemsize)


def _budget(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free * _GPU_SHARE)
    return _CPU_MEMORY
