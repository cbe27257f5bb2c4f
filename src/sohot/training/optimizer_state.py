"""Optimiser states as safetensors and JSON hold them: tensors by name, and the rest as plain values."""

from typing import Any

from torch import Tensor
from torch.optim import Optimizer


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
    """Give an optimiser the state that `flatten_optimizer` took from one like it."""
    state: dict[int, dict[str, Any]] = {}
    for index, entries in plain["values"].items():
        state.setdefault(int(index), {}).update(entries)
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        # A copy of its own: the tensors read from one file lie at odd addresses of one block.
        state.setdefault(int(index), {})[name] = tensor.clone()
    groups = [{name: _as_before(value) for name, value in group.items()} for group in plain["groups"]]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _as_before(value: Any) -> Any:
    """JSON turns pairs (the betas of Adam) into lists; but the list of parameter numbers was one."""
    return tuple(value) if isinstance(value, list) and any(isinstance(one, float) for one in value) else value
