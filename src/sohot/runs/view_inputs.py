"""Kept trunk outputs of several views of each image, as inputs of training: a random view at each request."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..training.inputs import TensorInputs
from .trunk_folder import gather


class ViewInputs:
    """One random view of each row asked for, chosen by torch's global generator, whose state a checkpoint keeps.

    Args:
        tensors: Trunk outputs, the first dimension for images and the second for views; several tensors must be on the
            CPU, a single one may be on any device.
        places: The tensor number of each row and its row there, shape (rows, 2).
        views: Which of the views to choose from.

    Example:
        >>> inputs = ViewInputs([torch.arange(6.0).view(1, 6, 1)], torch.tensor([[0, 0]]), range(4, 6))
        >>> inputs.batch(torch.tensor([0, 0]), torch.tensor([0.2, 0.8])).flatten()
        tensor([4., 5.])
    """

    def __init__(self, tensors: Sequence[Tensor], places: Tensor, views: range) -> None:
        self.tensors, self.places, self.views = tensors, places, views

    def __len__(self) -> int:
        return len(self.places)

    @property
    def device(self) -> torch.device:
        """Where the outputs are."""
        return self.tensors[0].device

    def draw(self, rows: int) -> Tensor:
        """Draw a number from 0 to below 1 for each of some rows, from torch's global generator."""
        return torch.rand(rows, dtype=torch.float64)

    def batch(self, rows: Tensor, drawn: Tensor | None = None) -> Tensor:
        """Return one view of each of these rows, chosen by the numbers drawn for them, or by new ones."""
        drawn = self.draw(len(rows)) if drawn is None else drawn
        chosen = (drawn.cpu() * len(self.views)).long().clamp(max=len(self.views) - 1) + self.views.start
        return gather(self.tensors, torch.cat([self.places[rows.cpu()], chosen[:, None]], 1))

    def fingerprint(self) -> str:
        """Return a short hash that changes with the outputs, of a sample of rows where there are many."""
        sample = gather(self.tensors, self.places[:: max(len(self) // 64, 1)])
        return TensorInputs(sample[:, self.views.start : self.views.stop]).fingerprint()
