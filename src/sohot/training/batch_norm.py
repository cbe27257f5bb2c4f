"""Batch normalisation over the rows of all ranks, as if one rank had them all."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from .ranks import Ranks

_KINDS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@contextmanager
def batch_norm_over_ranks(model: nn.Module, ranks: Ranks, device: torch.device) -> Iterator[None]:
    """Let batch normalisation that uses batch statistics see the whole batch during training.

    Layers with fixed statistics are left alone. Names, parameters and buffers are those of the replaced layers, which
    are restored at the end.

    Raises:
        ValueError: A network has custom layers (such as ones with an activation inside) that cannot be replaced.
    """
    if not ranks.several:
        yield
        return
    training = model.training
    model.train()
    replaced = [
        (parent, name, layer)
        for parent in model.modules()
        for name, layer in parent.named_children()
        if isinstance(layer, _BatchNorm) and layer.training
    ]
    model.train(training)
    if strange := {type(layer).__name__ for _, _, layer in replaced if type(layer) not in _KINDS}:
        kinds = ", ".join(sorted(strange))
        raise ValueError(
            f"{kinds} cannot use batch statistics on several devices: "
            "fix its statistics (batch_norm='fixed', --batch-norm fixed)"
        )
    for parent, name, layer in replaced:
        setattr(parent, name, _over_ranks(layer, device))
    try:
        yield
    finally:
        for parent, name, layer in replaced:
            _take_tensors(layer, getattr(parent, name))  # moving to another device or precision has made new ones
            setattr(parent, name, layer)


def _over_ranks(layer: _BatchNorm, device: torch.device) -> nn.Module:
    if device.type == "cuda":
        synchronised: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(layer)  # type: ignore[no-untyped-call]
        return synchronised
    own = _GlobalBatchNorm(layer.num_features, layer.eps, layer.momentum, affine=False)
    own.affine, own.track_running_stats = layer.affine, layer.track_running_stats
    _take_tensors(own, layer)
    return own


def _take_tensors(layer: nn.Module, other: nn.Module) -> None:
    layer._parameters.update(other._parameters)
    layer._buffers.update(other._buffers)
    layer.train(other.training)


class _GlobalBatchNorm(_BatchNorm):
    """The equivalent of torch's SyncBatchNorm, which only runs on GPUs, for CPUs."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"batch normalisation needs at least 2 dimensions, got {input.dim()}")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        if not self.training or self.running_mean is None or self.running_var is None:
            return super().forward(input)
        axes = [axis for axis in range(input.dim()) if axis != 1]
        x = input.to(torch.promote_types(input.dtype, torch.float32))
        count = _sum_over_ranks(x.new_tensor(float(x.numel() // x.shape[1])))
        mean = _sum_over_ranks(x.sum(axes)) / count
        centred = x - _beside(mean, x)
        variance = _sum_over_ranks(centred.square().sum(axes)) / count
        self._follow(mean, variance, count)
        normal = centred * _beside((variance + self.eps).rsqrt(), x)
        if self.affine:
            normal = normal * _beside(self.weight, x) + _beside(self.bias, x)
        return normal.to(input.dtype)

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        unbiased = variance * count / (count - 1).clamp(min=1)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), share)


def _beside(channels: Tensor, x: Tensor) -> Tensor:
    return channels.reshape(1, -1, *[1] * (x.dim() - 2))


def _sum_over_ranks(x: Tensor) -> Tensor:
    total: Tensor = _Sum.apply(x)  # type: ignore[no-untyped-call]
    return total


class _Sum(torch.autograd.Function):
    """Sum over ranks; each rank's outputs depend on it, so the gradients are summed as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004 - nothing to keep
        total = x.contiguous().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # noqa: ARG004
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total
