"""The optimiser: its parameter groups, their learning rates by step, and its state for checkpoints."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from ..functional.schedule import learning_rate_factor
from ..methods.settings import FitSettings
from .streams import as_streams

_OF_THE_MACHINE = ("lr", "foreach", "fused", "capturable")
"""Entries of a group that depend on the device, or on the step: a checkpoint does not keep them."""


def build_optimizer(
    model: nn.Module, objective: nn.Module, settings: FitSettings, *, for_graphs: bool = False
) -> Optimizer:
    """Build the optimiser of a model and of the class weights in its objective.

    The groups are those of the model ("tail", "head") and "zeta", each with its own learning rate. Only the tail has
    weight decay here: the classifier's is part of the objective, and class weights are held at 1 by theirs. Weights
    that are held near their initial values are not pulled to zero as well.

    Args:
        model: The two streams, on their device.
        objective: The objective.
        settings: The settings.
        for_graphs: Whether steps become CUDA graphs: then learning rates are tensors, which a graph reads anew.
    """
    groups: list[dict[str, Any]] = []
    for group in as_streams(model).parameter_groups(settings.lr, settings.head_factor):
        trained = [parameter for parameter in group["params"] if parameter.requires_grad]
        decay = 0.0 if group.get("name") == "head" or settings.start_pull() else settings.weight_decay
        groups.append({**group, "params": trained, "weight_decay": decay})
    zeta = list(objective.parameters())
    groups.append({"name": "zeta", "params": zeta, "lr": settings.zeta_lr, "weight_decay": 0.0})
    groups = [{**group, "highest_lr": group["lr"]} for group in groups if group["params"]]
    if not groups:
        raise ValueError("model has no parameters to train")
    if for_graphs:
        for group in groups:
            group["lr"] = torch.tensor(group["lr"], dtype=torch.float32, device=group["params"][0].device)
    fused = True if for_graphs else None
    if settings.optimizer == "adamw":
        return AdamW(groups, fused=fused, capturable=for_graphs)
    return SGD(groups, lr=settings.lr, momentum=settings.momentum, fused=fused)


def set_learning_rate(optimizer: Optimizer, step: int, settings: FitSettings) -> float:
    """Set the learning rate of every group for a step; return that of the first."""
    alone, position, length = settings.stage(step)
    factor = learning_rate_factor(position, length, settings.schedule, settings.warmup)
    rates = []
    for group in optimizer.param_groups:
        rates.append(0.0 if alone and group.get("name") == "tail" else group["highest_lr"] * factor)
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rates[-1])
        else:
            group["lr"] = rates[-1]
    return float(rates[0])


def drop_gradients_of_tail(optimizer: Optimizer) -> None:
    """Clear the gradients below the classifier, so that no momentum builds up while it is frozen."""
    for group in optimizer.param_groups:
        if group.get("name") == "tail":
            for parameter in group["params"]:
                parameter.grad = None


def flatten_optimizer(optimizer: Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Split the state of an optimiser into its tensors and its plain values."""
    state = optimizer.state_dict()
    tensors: dict[str, Tensor] = {}
    values: dict[str, dict[str, Any]] = {}
    for index, entries in state["state"].items():
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{index}.{name}"] = value
            else:
                values.setdefault(str(index), {})[name] = value
    groups = [
        {name: value for name, value in group.items() if name not in _OF_THE_MACHINE} for group in state["param_groups"]
    ]
    return tensors, {"values": values, "groups": groups}


def restore_optimizer(optimizer: Optimizer, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
    """Load the state that `flatten_optimizer` took from a similar optimiser."""
    state: dict[int, dict[str, Any]] = {}
    for index, entries in plain["values"].items():
        state.setdefault(int(index), {}).update(entries)
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        # Copied, because tensors read from one file lie at odd addresses of one block.
        state.setdefault(int(index), {})[name] = tensor.clone()
    own = [{name: group[name] for name in _OF_THE_MACHINE if name in group} for group in optimizer.param_groups]
    groups = [
        {name: _as_before(value) for name, value in group.items()} | of_machine
        for group, of_machine in zip(plain["groups"], own, strict=True)
    ]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    for group, of_machine in zip(optimizer.param_groups, own, strict=True):
        group.update(of_machine)  # `load_state_dict` copies tensors


def _as_before(value: Any) -> Any:
    """Turn lists from JSON back into pairs (the betas of Adam), except the list of parameter numbers."""
    return tuple(value) if isinstance(value, list) and any(isinstance(item, float) for item in value) else value
