"""Rows as anchors, for losses that compare each row with all others, whatever their domain."""

import torch
from torch import Tensor

from .masks import Mask, Once


class Anchors:
    """Some rows of both domains, and the rows each of them is compared with.

    Args:
        own: Classes of the anchors, (k,).
        labels: Classes of all rows, (n + m,).
        place: Which of all rows the anchors are, (k,).
        taken: Which of all rows exist, (…, n + m); None for all.

    Example:
        >>> labels = torch.tensor([0, 1, 1])
        >>> Anchors(labels, labels, torch.arange(3)).partners.where
        tensor([[False, False, False],
                [False, False,  True],
                [False,  True, False]])
    """

    def __init__(self, own: Tensor, labels: Tensor, place: Tensor, taken: Tensor | None = None) -> None:
        self.own, self.labels, self.place, self.taken = own, labels, place, taken

    @Once
    def partners(self) -> Mask:
        """For each anchor, the other rows of its class: (…, k, n + m), summed for each anchor."""
        alike = (self.own.unsqueeze(1) == self.labels) & ~self._itself
        if self.taken is not None:
            alike = alike & self.taken[..., self.place].unsqueeze(-1) & self.taken.unsqueeze(-2)
        return Mask(alike, over=(-1,))

    @Once
    def with_partners(self) -> Mask:
        """Anchors that have a partner: (…, k)."""
        return Mask(self.partners.count > 0, over=(-1,))

    @Once
    def unseen(self) -> Tensor:
        """For each anchor, what it cannot be compared with: itself, and slots without a row."""
        return self._itself if self.taken is None else self._itself | ~self.taken.unsqueeze(-2)

    @property
    def _itself(self) -> Tensor:
        return self.place.unsqueeze(1) == torch.arange(len(self.labels), device=self.labels.device)
