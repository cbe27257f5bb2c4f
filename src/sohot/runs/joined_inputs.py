"""Two lists of inputs as one: the pool, and the held-out target images that join it without their labels."""

import torch
from torch import Tensor

from ..training.inputs import Inputs


class JoinedInputs:
    """The rows of one list, then those of another. Both draw the same kind of random numbers, or none.

    Args:
        first: The first rows.
        second: The rows after them.

    Example:
        >>> from ..training.inputs import TensorInputs
        >>> joined = JoinedInputs(TensorInputs(torch.zeros(2, 1)), TensorInputs(torch.ones(1, 1)))
        >>> joined.batch(torch.tensor([2, 0])).flatten()
        tensor([1., 0.])
    """

    def __init__(self, first: Inputs, second: Inputs) -> None:
        self.parts = first, second
        draw = getattr(first, "draw", None)
        if callable(draw):
            self.draw = draw

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def batch(self, rows: Tensor, drawn: Tensor | None = None) -> Tensor:
        """Return these rows, stacked."""
        first = rows < len(self.parts[0])
        found: Tensor | None = None
        for part, own, before in zip(self.parts, (first, ~first), (0, len(self.parts[0])), strict=True):
            if not own.any():
                continue
            more = () if drawn is None else (drawn[own],)
            inputs = part.batch(rows[own] - before, *more)
            if found is None:
                found = inputs.new_empty(len(rows), *inputs.shape[1:])
            found[own.to(found.device)] = inputs
        return torch.empty(0) if found is None else found

    def fingerprint(self) -> str:
        """Return a short hash that changes with the inputs."""
        return " ".join(str(getattr(part, "fingerprint", lambda: None)()) for part in self.parts)
