"""The optimiser: its parameter groups, their learning rates by step, and its state for checkpoints."""

from typing import Any

from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from ..functional.schedule import learning_rate_factor
from ..methods.settings import FitSettings
from .streams import as_streams


def build_optimizer(model: nn.Module, objective: nn.Module, settings: FitSettings) -> Optimizer:
    """Build the optimiser of a model and of the class weights in its objective.

    The groups are those of the model ("tail", "head") and "zeta", each with its own learning rate. Only the tail has
    weight decay here: the classifier's is part of the objective, and class weights are held at 1 by theirs. Weights
    that are held near their initial values are not pulled to zero as well.
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
    if settings.optimizer == "adamw":
        return AdamW(groups)
    return SGD(groups, lr=settings.lr, momentum=settings.momentum)


def set_learning_rate(optimizer: Optimizer, step: int, settings: FitSettings) -> None:
    """Set the learning rate of every group for a step."""
    alone, position, length = settings.stage(step)
    factor = learning_rate_factor(position, length, settings.schedule, settings.warmup)
    for group in optimizer.param_groups:
        group["lr"] = 0.0 if alone and group.get("name") == "tail" else group["highest_lr"] * factor


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
    return tensors, {"values": values, "groups": state["param_groups"]}


def restore_optimizer(optimizer: Optimizer, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
    """Load the state that `flatten_optimizer` took from a similar optimiser."""
    state: dict[int, dict[str, Any]] = {}
    for index, entries in plain["values"].items():
        state.setdefault(int(index), {}).update(entries)
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        # Copied, because tensors read from one file lie at odd addresses of one block.
        state.setdefault(int(index), {})[name] = tensor.clone()
    groups = [{name: _as_before(value) for name, value in group.items()} for group in plain["groups"]]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _as_before(value: Any) -> Any:
    """Turn lists from JSON back into pairs (the betas of Adam), except the list of parameter numbers."""
    return tuple(value) if isinstance(value, list) and any(isinstance(item, float) for item in value) else value
