"""Batch normalisation over the rows of all ranks, as if one rank had them all."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from .ranks import Ranks

_KINDS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_ADVICE = "fix their statistics (batch_norm='fixed', --batch-norm fixed)"


class _Place(NamedTuple):
    parent: nn.Module
    name: str
    layer: _BatchNorm


def check_batch_norm(model: nn.Module, ranks: Ranks, device: torch.device) -> None:
    """Refuse layers whose batch statistics cannot be those of the rows of all ranks."""
    layers = [place.layer for place in _following(model)] if ranks.several else []
    if layers and device.type != "cuda":
        raise ValueError(
            "layers that normalise by batch statistics train on several processes only on NVIDIA GPUs: "
            f"use one process, or {_ADVICE}"
        )
    if strange := sorted({type(layer).__name__ for layer in layers if type(layer) not in _KINDS}):
        raise ValueError(f"{', '.join(strange)} cannot use batch statistics on several devices: {_ADVICE}")


@contextmanager
def synchronised_batch_norm(model: nn.Module, ranks: Ranks, device: torch.device) -> Iterator[None]:
    """Let batch normalisation that uses batch statistics see the whole batch during training.

    Layers with fixed statistics are left alone. The others are replaced for that time, with the same names and tensors.

    Raises:
        ValueError: They cannot be replaced.
    """
    check_batch_norm(model, ranks, device)
    places = _following(model) if ranks.several else []
    for parent, name, layer in places:
        setattr(parent, name, nn.SyncBatchNorm.convert_sync_batchnorm(layer))  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for parent, name, layer in places:
            replaced = getattr(parent, name)  # moving to another device or precision has made new tensors
            layer._parameters.update(replaced._parameters)
            layer._buffers.update(replaced._buffers)
            layer.train(replaced.training)
            setattr(parent, name, layer)


def _following(model: nn.Module) -> list[_Place]:
    """List the layers that follow their batches while the model trains."""
    training = model.training
    model.train()
    places = [
        _Place(parent, name, layer)
        for parent in model.modules()
        for name, layer in parent.named_children()
        if isinstance(layer, _BatchNorm) and layer.training
    ]
    model.train(training)
    return places
