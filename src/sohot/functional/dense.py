"""The signed Gram form over all pairs of rows at once, whatever their classes: shapes depend on no label.

A CUDA graph is recorded before the labels are known, so nothing can be laid out class by class. Here pairs of different
classes are computed, too, and weigh nothing. `gram` is faster wherever it may look at the labels.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .pairs import exact_type, pair_weights, powers
from .row_weights import RowWeights, effective_rows, positive

MOST_PAIRS = 2**26
"""Most pairs of rows: 512 MiB for each of a few matrices."""


class DenseResult(NamedTuple):
    """Distances and energy before they are scaled, and what the gradient needs."""

    distances: Tensor  # (1 + orders, C)
    energy: Tensor  # scalar
    rows: "_Rows"
    pairs: Tensor  # (N, N), A; 0 for rows of different classes
    powers: dict[int, Tensor]  # G^∘k, each (N, N)


class _Rows(NamedTuple):
    """The rows of both domains, one after the other, by group: the classes of the source, then those of the target."""

    centred: Tensor  # (N, d)
    differences: Tensor  # (C, d), δ
    in_group: Tensor  # (N, 2C) 1 where a row belongs to a group, else 0
    share: Tensor  # (N, 2C) share of a row in the mean of its group
    signs: Tensor  # (N,), a
    of_class: Tensor  # (N, C) 1 where a row belongs to a class that both domains show


def dense_gram(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    num_classes: int,
    orders: list[int],
    unbiased: bool,
    row_weights: RowWeights | None,
) -> DenseResult:
    """Compute mean and scatter distances of all classes without looking at a label on the host."""
    if (len(source) + len(target)) ** 2 > MOST_PAIRS:
        raise ValueError(f"{len(source) + len(target)} rows are too many to be aligned in a CUDA graph")
    exact = exact_type(source.device)
    labels = torch.cat([source_labels.long(), target_labels.long() + num_classes])
    weights = torch.ones(len(labels), dtype=exact, device=source.device)
    overall = weights
    if row_weights is not None:
        weights = torch.cat(row_weights.within_classes(source_labels, target_labels, num_classes)).to(exact)
        overall = torch.cat(row_weights.overall()).to(exact)
    groups = torch.arange(2 * num_classes, device=source.device)
    in_group = (labels.unsqueeze(1) == groups).to(exact) * (weights > 0).unsqueeze(1)
    counts = in_group.sum(0)
    shared = (counts[:num_classes] > 0) & (counts[num_classes:] > 0)
    in_group = in_group * shared.repeat(2)
    share = in_group * weights.unsqueeze(1)
    totals, effective = share.sum(0), effective_rows(share.sum(0), share.square().sum(0))
    share = share / positive(totals)

    x = torch.cat([source, target]).to(torch.promote_types(source.dtype, torch.float32))
    means = (in_group / positive(counts) if unbiased else share).to(x.dtype).T @ x
    differences = means[:num_classes] - means[num_classes:]
    if unbiased:
        of_source = (counts[:num_classes] / positive(counts[:num_classes] + counts[num_classes:])).to(x.dtype)
        means = (means[num_classes:] + differences * of_source.unsqueeze(1)).repeat(2, 1)
    centred = x - in_group.to(x.dtype) @ means
    signs = share[:, :num_classes].sum(1) - share[:, num_classes:].sum(1)
    of_class = in_group[:, :num_classes] + in_group[:, num_classes:]
    same_class = (of_class.to(x.dtype) @ of_class.to(x.dtype).T).to(exact)
    gram = (centred @ centred.T).to(exact) * same_class
    rows_of = (in_group @ effective).unsqueeze(0) if unbiased else None
    pairs = pair_weights(signs.unsqueeze(0), rows_of).squeeze(0) * same_class

    products = powers(gram, max(orders))
    scatters = [(pairs * products[order]).sum(1) @ of_class for order in orders]
    squares = differences.to(exact).square().sum(1) * shared
    of_means = (pairs * gram).sum(1) @ of_class if unbiased else squares
    present = of_class.sum(1) * overall
    energy = (gram.detach().diagonal() * overall).sum() / positive(present.sum())
    rows = _Rows(centred, differences, in_group, share, signs, of_class)
    return DenseResult(torch.stack([of_means, *scatters]), energy, rows, pairs, products)


def dense_gradient(found: DenseResult, weights: Tensor, orders: list[int], unbiased: bool) -> Tensor:
    """Return the gradient of Σ weights ∘ distances in all rows; `weights` are (1 + orders, C)."""
    rows = found.rows
    of_rows = rows.of_class @ weights.T  # (N, 1 + orders)
    inner = torch.zeros_like(found.pairs)
    for k, order in enumerate(orders, start=1):
        inner += order * of_rows[:, k : k + 1] * found.powers[order - 1]
    if unbiased:
        inner = found.pairs * (inner + of_rows[:, :1])
        member = rows.of_class
        # Rows are centred on the mean of both domains, which moves with each of them.
        moved = 2 * inner.to(rows.centred.dtype) @ rows.centred
        mean = (member / positive(member.sum(0))).to(moved.dtype).T @ moved
        return moved - member.to(moved.dtype) @ mean
    inner = found.pairs * inner
    moved = 2 * inner.to(rows.centred.dtype) @ rows.centred
    sums = rows.in_group.to(moved.dtype).T @ moved
    moved = moved - rows.share.to(moved.dtype) @ sums
    of_means = (2 * of_rows[:, 0] * rows.signs).to(moved.dtype).unsqueeze(1)
    return moved + of_means * (rows.of_class.to(moved.dtype) @ rows.differences)
