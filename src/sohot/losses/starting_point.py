"""L2-SP: a penalty that pulls weights to their starting point."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ..functional.plain_checks import check_not_negative


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
        self.pull = check_not_negative(pull, "pull")
        for place, parameter in enumerate(_tensors(parameters)):
            self.register_buffer(f"start{place}", parameter.detach().clone())

    def forward(self, parameters: Iterable[Tensor]) -> Tensor:
        """Compute the penalty of the weights, given in the same order as at creation."""
        given, starts = _tensors(parameters), list(self.buffers())
        if [now.shape for now in given] != [start.shape for start in starts]:
            raise ValueError("parameters must have the number and the shapes of those given at creation")
        moved = [(now - start).square().sum() for now, start in zip(given, starts, strict=True)]
        return self.pull / 2 * torch.stack(moved).sum()


def _tensors(parameters: Iterable[Tensor]) -> list[Tensor]:
    given = list(parameters) if isinstance(parameters, Iterable) else [parameters]
    if not all(isinstance(x, Tensor) for x in given):
        raise TypeError(f"parameters must be several tensors, got {parameters!r}")
    return given
