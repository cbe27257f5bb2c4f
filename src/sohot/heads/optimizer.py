"""AdamW and SGD on the parameters of many fits: element by element, each fit and each part with its own rate."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ..functional.schedule import learning_rate_factor
from ..methods.settings import HeadSettings
from .network import of_network

_BETA1, _BETA2 = 0.9, 0.999  # as torch.optim.AdamW
EPSILON = 1e-4
"""What AdamW adds to a gradient's root mean square. Fits start at a minimum, where gradients are near 0: torch's 1e-8
would turn their rounding into steps as long as the learning rate."""


class FlatParameters:
    """All parameters of a stack in one tensor (F, P), with named views (F, …) of it to differentiate by.

    Args:
        values: Initial values of each fit; all fits have the same names and shapes.
        like: A tensor of the type and device to use.
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

    Both kinds have decoupled weight decay on the network's matrices (`weight_decay`); the classifier's λ‖W‖² is part of
    the objective. While the classifier trains alone first, network gradients are dropped, so that a network at rest
    gathers no momentum.

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
                decays = torch.tensor([_decay(of_fit) for of_fit in settings], dtype=torch.float64)
                self.decays[:, own] = (rates * decays).to(flat).unsqueeze(1)
        if not any(_decay(of_fit) for of_fit in settings):
            self.decays = None
        self.head_steps = self.first.steps_of_head()
        self.waiting = torch.zeros(flat.shape[1], dtype=torch.bool, device=flat.device)
        for name, own in parameters.ranges.items():
            self.waiting[own] = of_network(name)
        self.mean = torch.zeros_like(flat)
        self.square = torch.zeros_like(flat)

    def step(self, gradient: Tensor, number: int) -> None:
        """Do step `number`, counted from 0."""
        flat, first = self.parameters.flat, self.first
        head_alone, place, length = first.stage(number)
        factor = learning_rate_factor(place, length, first.schedule, first.warmup)
        if head_alone:
            gradient = gradient.masked_fill(self.waiting, 0)
        elif self.decays is not None:
            flat.addcmul_(flat, self.decays, value=-factor)
        if first.optimizer == "sgd":
            self.mean.mul_(first.momentum).add_(gradient)
            flat.addcmul_(self.mean, self.rates, value=-factor)
            return
        self.mean.lerp_(gradient, 1 - _BETA1)
        self.square.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
        mean, square = self._corrections(number)
        size = self.square.sqrt().div_(square).add_(EPSILON)
        if isinstance(mean, float):
            flat.addcmul_(self.mean.div(size), self.rates, value=-factor / mean)
        else:
            flat.addcmul_(self.mean.div(size).div_(mean), self.rates, value=-factor)

    def _corrections(self, number: int) -> tuple[float, float] | tuple[Tensor, Tensor]:
        """Return the bias corrections of Adam's running mean and root mean square after this many steps.

        A network that waited for the classifier has done fewer steps.
        """
        mean, square = _missing(number + 1)
        if not 0 < self.head_steps <= number:
            return mean, square
        later = _missing(number + 1 - self.head_steps)
        means, squares = (self.mean.new_full(self.waiting.shape, value) for value in (mean, square))
        return means.masked_fill_(self.waiting, later[0]), squares.masked_fill_(self.waiting, later[1])


def _missing(steps: int) -> tuple[float, float]:
    return 1 - _BETA1**steps, (1 - _BETA2**steps) ** 0.5


def _decay(settings: HeadSettings) -> float:
    """Weight decay of the network; none where L2-SP already holds the weights at their starting point."""
    return 0.0 if settings.start_pull() else settings.weight_decay


def _rate(name: str, settings: HeadSettings) -> float:
    """Highest learning rate of a parameter."""
    if name == "zeta":
        return settings.zeta_lr
    is_head = name.endswith((".classifier", ".bias"))
    return settings.lr * (settings.head_factor if is_head else 1.0)
