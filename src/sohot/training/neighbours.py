"""Neighbours in a pool: images that look alike mostly belong to one class, so what is said about them is averaged."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

MOST_ROWS = 8192
"""Most rows among which neighbours are looked for: of a larger pool, evenly spaced ones."""
_AT_ONCE = 1024


@torch.no_grad()
def nearest_rows(features: Tensor, count: int) -> Tensor:
    """Return the numbers of each row itself and of the rows whose features have the most similar direction.

    Args:
        features: Shape (n, d).
        count: How many others; fewer if there are not that many.

    Returns:
        Shape (n, count + 1), each row itself first.

    Example:
        >>> nearest_rows(torch.tensor([[1.0, 0.0], [3.0, 0.1], [0.0, 1.0], [0.1, 2.0]]), 1)
        tensor([[0, 1],
                [1, 0],
                [2, 3],
                [3, 2]])
    """
    rows = len(features)
    own = torch.arange(rows, device=features.device)
    among = own[:: -(-rows // MOST_ROWS)]
    directions = normalize(features, dim=1)
    count = min(count, len(among) - 1)
    found = []
    for some in torch.split(own, _AT_ONCE):
        alike = directions[some] @ directions[among].T
        alike = alike.masked_fill(some[:, None] == among, -torch.inf)
        found.append(among[alike.topk(count, dim=1).indices])
    return torch.cat([own[:, None], torch.cat(found)], 1)
