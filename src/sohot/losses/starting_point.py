"""L2-SP: a penalty that pulls weights to their starting point."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class StartingPoint(nn.Module):
    """Penalise the distance of weights from their values when this object was created: α/2 ‖w − w⁰‖².

    Pre-trained weights are worth keeping, so fine-tuning is pulled back to them rather than to zero.

    Li, Grandvalet, Davoine: Explicit inductive bias for transfer learning with convolutional networks. ICML 2018.

    Args:
        parameters: The weights; copied now, passed again in each call.
        pull: α.

    Example:
        >>> weight = nn.Parameter(torch.zeros(3))
        >>> start = StartingPoint([weight], pull=2.0)
        >>> start([weight + 1])
        tensor(3., grad_fn=<MulBackward0>)
    """

    def __init__(self, parameters: Iterable[Tensor], pull: float) -> None:
        super().__init__()
        self.pull = pull
        for place, parameter in enumerate(parameters):
            self.register_buffer(f"start{place}", parameter.detach().clone())

    def forward(self, parameters: Iterable[Tensor]) -> Tensor:
        """Compute the penalty of the weights, given in the same order as at creation."""
        pairs = zip(parameters, self.buffers(), strict=True)
        moved = [(now - start).square().sum() for now, start in pairs]
        return self.pull / 2 * torch.stack(moved).sum()
