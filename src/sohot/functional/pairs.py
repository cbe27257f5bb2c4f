"""What the Gram forms of one model and of many fits share: the weights of pairs of rows, and powers of products."""

import torch
from torch import Tensor


def exact_type(device: torch.device) -> torch.dtype:
    """Type of the small matrices: powers and signed sums lose digits, and float64 costs nothing there."""
    return torch.float32 if device.type == "mps" else torch.float64


def pair_weights(signs: Tensor, counts: Tensor | None, block: slice = slice(None)) -> Tensor:
    """Weigh all pairs of rows: (…, S, S).

    Args:
        signs: a, (…, S); 0 where a slot holds no row.
        counts: For U-statistics, the number n of rows in the domain of each row (…, S); None for the plug-in estimate.
        block: The rows whose pairs with all rows are wanted.

    Returns:
        A = a aᵀ; for U-statistics a aᵀ n/(n−1) over different rows of one domain in place of all its pairs. A lone row
        keeps its one pair.
    """
    pairs = signs[..., block].unsqueeze(-1) * signs.unsqueeze(-2)
    if counts is None:
        return pairs
    n, same_domain = counts[..., block].unsqueeze(-1), pairs > 0
    row = torch.arange(signs.shape[-1], device=pairs.device)
    apart = torch.where(row[block].unsqueeze(1) == row, 0.0, pairs * n / torch.where(n > 1, n - 1, 1.0))
    return torch.where(same_domain & (n > 1), apart, pairs)


def powers(gram: Tensor, highest: int) -> dict[int, Tensor]:
    """Raise each entry to the powers 1 … highest by multiplication, since entries may be negative."""
    of_order = {1: gram}
    for k in range(2, highest + 1):
        of_order[k] = of_order[k - 1] * gram
    return of_order
