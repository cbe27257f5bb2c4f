"""The loss as the paper writes it, in slow and obvious code: what the product is compared with."""

import torch
from hypothesis import strategies as st
from torch import Tensor


def tensor_of(rows: Tensor, order: int, weights: Tensor | None = None) -> Tensor:
    """Eq. 1, one outer product at a time."""
    shares = torch.full_like(rows[:, 0], 1 / len(rows)) if weights is None else weights / weights.sum()
    total = torch.zeros((rows.shape[1],) * order, dtype=rows.dtype)
    for row, share in zip(rows - shares @ rows, shares, strict=True):
        product = row
        for _ in range(order - 1):
            product = torch.tensordot(product, row, dims=0)
        total = total + share * product
    return total


def alignment(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    orders: tuple[int, ...] = (2,),
    sigma1: float = 1.0,
    sigma2: float = 1.0,
) -> Tensor:
    """Eq. 5 with the mean over orders, over the classes in both domains; too small scatters are left out."""
    shared = sorted(set(source_labels.tolist()) & set(target_labels.tolist()))
    total = 0 * (source.sum() + target.sum())
    for c in shared:
        x, y = source[source_labels == c], target[target_labels == c]
        total = total + sigma2 * (x.mean(0) - y.mean(0)).square().sum()
        for order in orders:
            if min(len(x), len(y)) >= (3 if order % 2 else 2):
                distance = (tensor_of(x, order) - tensor_of(y, order)).square().sum()
                total = total + sigma1 / len(orders) * distance
    return total / max(len(shared), 1)


def batch(
    seed: int, source_counts: list[int], target_counts: list[int], size: int = 3, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Random rows with the given number of rows per class, shuffled; a count of 0 leaves the class out."""
    generator = torch.Generator().manual_seed(seed)
    result = []
    for counts in (source_counts, target_counts):
        labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
        labels = labels[torch.randperm(len(labels), generator=generator)]
        shift = 2 * torch.randn(len(counts), size, generator=generator, dtype=dtype)
        result += [torch.randn(len(labels), size, generator=generator, dtype=dtype) + shift[labels], labels]
    return result[0], result[1], result[2], result[3]


seeds = st.integers(0, 2**32 - 1)


@st.composite
def batches(draw: st.DrawFn, fewest: int = 0, classes: int = 4) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batches of any class sizes from `fewest` up, with at least one row in each domain."""
    sizes = st.lists(st.integers(fewest, 6), min_size=classes, max_size=classes).filter(any)
    return batch(draw(seeds), draw(sizes), draw(sizes), draw(st.integers(1, 5)))
