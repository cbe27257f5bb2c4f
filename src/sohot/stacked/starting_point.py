"""L2-SP for every fit of a stack: networks that remember where they started."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .network import Parameters, of_network
from .settings import HeadSettings


class StackedStart:
    """What `sohot.losses.StartingPoint` is for one model: α/2 ‖w − w⁰‖² of each fit's networks, not its classifiers.

    `map_decay` is a relative of it and pulls the same way in a linear network, which starts at D = 0. But it shrinks
    matrices alone, by a share that the optimiser does not rescale; this is a part of the objective, holds the offsets
    too, and a hidden layer at what was drawn rather than at 0. With both asked for, this one counts.

    Args:
        settings: Settings of each fit.
        parameters: Where the fits start; copied now.
    """

    def __init__(self, settings: Sequence[HeadSettings], parameters: Parameters) -> None:
        self.start = {name: x.detach().clone() for name, x in parameters.items() if of_network(name)}
        pulls = torch.tensor([of_fit.start_pull() for of_fit in settings], dtype=torch.float64)
        self.pulls = pulls.to(next(iter(self.start.values())))

    def __call__(self, parameters: Parameters) -> Tensor:
        """Compute the penalty of each fit: (F,)."""
        moved = [(parameters[name] - start).square().flatten(1).sum(1) for name, start in self.start.items()]
        return self.pulls / 2 * torch.stack(moved).sum(0)
