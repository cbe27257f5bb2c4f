"""AdamW and SGD on the parameters of many fits: element by element, each fit and each part with its own rate."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ..training.optimization import learning_rate_factor
from .settings import HeadSettings

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # as torch.optim.AdamW


class FlatParameters:
    """All parameters of a stack in one tensor (F, P), and the same memory as named tensors (F, …) to differentiate by.

    Args:
        values: For each fit its first values; all fits have the same names and shapes.
        like: A tensor that tells the type and the device.
    """

    def __init__(self, values: Sequence[Mapping[str, Tensor]], like: Tensor) -> None:
        flat = torch.stack([torch.cat([x.flatten() for x in of_fit.values()]) for of_fit in values])
        self.flat = flat.to(like)
        self.named: dict[str, Tensor] = {}
        self.ranges: dict[str, slice] = {}
        end = 0
        for name, x in values[0].items():
            start, end = end, end + x.numel()
            self.ranges[name] = slice(start, end)
            self.named[name] = self.flat[:, start:end].view(len(values), *x.shape).detach().requires_grad_()

    def gradient(self, loss: Tensor) -> Tensor:
        """Differentiate a scalar: (F, P)."""
        found = torch.autograd.grad(loss, list(self.named.values()))
        return torch.cat([x.flatten(1) for x in found], 1)


class StackedOptimizer:
    """The optimiser of a stack.

    Both kinds have decoupled weight decay on the network's matrices (`map_decay`); the classifier's λ‖W‖² is part of
    the objective.

    Args:
        parameters: What to train; changed in place.
        settings: Settings of each fit; kind, schedule and steps are those of the first.
    """

    def __init__(self, parameters: FlatParameters, settings: Sequence[HeadSettings]) -> None:
        self.parameters, self.first = parameters, settings[0]
        flat = parameters.flat
        self.rates = torch.zeros_like(flat)
        self.decays: Tensor | None = torch.zeros_like(flat)
        for name, own in parameters.ranges.items():
            rates = torch.tensor([_rate(name, of_fit) for of_fit in settings], dtype=torch.float64)
            self.rates[:, own] = rates.to(flat).unsqueeze(1)
            if name.endswith((".map", ".hidden")):
                decays = torch.tensor([of_fit.map_decay for of_fit in settings], dtype=torch.float64)
                self.decays[:, own] = (rates * decays).to(flat).unsqueeze(1)
        if not any(of_fit.map_decay for of_fit in settings):
            self.decays = None
        self.mean = torch.zeros_like(flat)
        self.square = torch.zeros_like(flat)

    def step(self, gradient: Tensor, number: int) -> None:
        """Make step `number`, counted from 0."""
        flat, first = self.parameters.flat, self.first
        factor = learning_rate_factor(number, first.steps, first.schedule, first.warmup)
        if self.decays is not None:
            flat.addcmul_(flat, self.decays, value=-factor)
        if first.optimizer == "sgd":
            self.mean.mul_(first.momentum).add_(gradient)
            flat.addcmul_(self.mean, self.rates, value=-factor)
            return
        self.mean.lerp_(gradient, 1 - _BETA1)
        self.square.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
        correction = 1 - _BETA1 ** (number + 1), 1 - _BETA2 ** (number + 1)
        size = self.square.sqrt().div_(correction[1] ** 0.5).add_(_EPSILON)
        flat.addcmul_(self.mean.div(size), self.rates, value=-factor / correction[0])


def _rate(name: str, settings: HeadSettings) -> float:
    """Highest learning rate of a parameter."""
    if name == "zeta":
        return settings.zeta_learning_rate
    is_head = name.endswith((".classifier", ".bias"))
    return settings.learning_rate * (settings.head_factor if is_head else 1.0)
