"""The teacher: a running average of the weights, which labels the pool and is what the run keeps."""

from copy import deepcopy

import torch
from torch import Tensor, nn


class Teacher:
    """A copy of a model whose trained weights follow the model's slowly; always in evaluation mode, without gradients.

    Weights that do not train are shared with the model.

    Args:
        model: The model, on its device.
        decay: Weight of the past in the average: 0 for the model's own weights.

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> teacher = Teacher(model, decay=0.75)
        >>> with torch.no_grad():
        ...     before = model.weight.item()
        ...     _ = model.weight.add_(1.0)
        >>> teacher.follow(model)
        >>> round(teacher.model.weight.item() - before, 4)
        0.25
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        shared = {id(parameter): parameter for parameter in model.parameters() if not parameter.requires_grad}
        self.model = deepcopy(model, shared).requires_grad_(False).eval()
        self.model._compiled_call_impl = None

    @torch.no_grad()
    def follow(self, model: nn.Module) -> None:
        """Move the average toward the model's weights; take over its statistics of batch normalisation."""
        own, others = self._trained(model)
        torch._foreach_lerp_(own, others, 1 - self.decay)
        self._take_buffers(model)

    @torch.no_grad()
    def become(self, model: nn.Module) -> None:
        """Take the model's weights as they are."""
        own, others = self._trained(model)
        torch._foreach_copy_(own, others)
        self._take_buffers(model)

    @torch.no_grad()
    def install(self, model: nn.Module) -> None:
        """Give the model the averaged weights."""
        own, others = self._trained(model)
        torch._foreach_copy_(others, own)

    def _trained(self, model: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
        pairs = zip(self.model.parameters(), model.parameters(), strict=True)
        trained = [(own, other) for own, other in pairs if other.requires_grad]
        return [own.data for own, _ in trained], [other.data for _, other in trained]

    def _take_buffers(self, model: nn.Module) -> None:
        for own, other in zip(self.model.buffers(), model.buffers(), strict=True):
            own.copy_(other)
