"""The bank: the last features and answers of every row, as constants.

A batch shows few rows of a class, too few for its scatter. With the bank a class is compared with all its rows;
gradients flow through those of the batch alone.
"""

import torch
from torch import Tensor, nn

MOST_ROWS = 2048
"""Most rows of a bank that one step aligns; of a larger bank each step takes the next ones in turn."""


class Bank(nn.Module):
    """Features and class probabilities of the rows of a domain.

    Args:
        rows: Number of rows.
        features: Size of a feature.
        classes: Number of classes.

    Example:
        >>> bank = Bank(rows=4, features=1, classes=2)
        >>> bank.put(torch.tensor([2]), torch.tensor([[7.0]]), torch.tensor([[0.9, 0.1]]))
        >>> bank.features.flatten(), round(bank.confidence().item(), 3)
        (tensor([0., 0., 7., 0.]), 0.225)
    """

    features: Tensor
    probabilities: Tensor
    first: Tensor  # of the rows that the current step aligns

    def __init__(self, rows: int, features: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("features", torch.zeros(rows, features))
        self.register_buffer("probabilities", torch.zeros(rows, classes))
        self.register_buffer("first", torch.zeros((), dtype=torch.int64), persistent=False)

    def __len__(self) -> int:
        return len(self.features)

    @torch.no_grad()
    def put(self, rows: Tensor, features: Tensor, probabilities: Tensor) -> None:
        """Remember what was last seen of some rows."""
        self.features.index_copy_(0, rows, features.detach().to(self.features.dtype))
        self.probabilities.index_copy_(0, rows, probabilities.detach().to(self.probabilities.dtype))

    def answers(self) -> Tensor:
        """Return the likeliest class of each row."""
        return self.probabilities.argmax(1)

    def confidence(self) -> Tensor:
        """Return the mean of the highest probability of each row."""
        return self.probabilities.max(1).values.mean()

    def spread(self) -> Tensor:
        """Return the root mean squared distance of a feature from the mean of all."""
        return (self.features - self.features.mean(0)).square().sum(1).mean().sqrt()

    def turn_to(self, step: int) -> None:
        """Choose the rows that a step aligns: all, or the next ones in turn."""
        if len(self) > MOST_ROWS:
            self.first.fill_(step * MOST_ROWS % len(self))

    def turn(self) -> Tensor:
        """Return the rows that the current step aligns.

        >>> Bank(rows=3, features=1, classes=2).turn()
        tensor([0, 1, 2])
        """
        count = min(len(self), MOST_ROWS)
        return (torch.arange(count, device=self.features.device) + self.first) % len(self)
