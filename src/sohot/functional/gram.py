"""The signed Gram form: mean and scatter distances of all classes, and their gradient, in two batched products.

For one class let Z hold its source and target rows, each domain minus its own mean, and let
a = (1/N, …, 1/N, −1/N*, …, −1/N*), A = a aᵀ, G = Z Zᵀ and δ = μ − μ*. Then, with ∘ entry by entry,

    ‖X⁽ʳ⁾ − X*⁽ʳ⁾‖²_F  =  Σ A ∘ G^∘r          for every order r from the same G,
    gradient in the rows  =  2 H (Σ_r w_r r A ∘ G^∘(r−1)) Z  +  2 w_0 a δᵀ,

where H subtracts the mean of each domain and w weighs the terms. δ is one more row of Z, so that ‖δ‖² is a corner of
the Gram matrix and its gradient is part of the same product: one product over the features forward, one backward, for
any set of orders. Everything else works on (N + N*)² numbers, in float64.

The unbiased estimator has the same shape: rows are centred on the pooled class mean, A is the weight of a U-statistic
(no pair of a row with itself) and the means are order 1 of the same sum. If both domains follow one distribution all
pairs are exchangeable, so its expectation is exactly zero. For that the pooled mean stays without weights.

If all pairs together would take too much memory, `tiles` computes the same, class by class.
"""

from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from .grouping import Bucket, group_by_class
from .many_rows import centred, distances_of_rows
from .pairs import exact_type, pair_weights, powers

MOST_PAIRS = 2**23
"""Most pairs of rows, over all classes, of which matrices are kept: 64 MiB each, about ten of them."""

CLASSES_AT_ONCE = 8
"""Number of classes whose gradients a CPU computes before they replace the rows, which bounds the memory.
Other devices compute all at once: there many small steps cost more than memory."""


class _Block(NamedTuple):
    """One bucket with its numbers."""

    bucket: Bucket
    flat: Tensor  # (G·(S + 1) + 1, d) all slots, and a zero after them
    rows: Tensor  # (G, S + 1, d) the slots by class: centred rows, padding, and δ as the last row
    powers: dict[int, Tensor]  # G^∘k, each (G, S, S), for k = 1 … the highest order
    pair_weights: Tensor  # (G, S, S), A
    signs: Tensor  # (G, S), a
    in_source: Tensor  # (G, S) 1 where a slot holds a source row, else 0
    in_target: Tensor  # (G, S)
    mean_distance: Tensor  # (G,)


class GramResult(NamedTuple):
    """Distances of each class, the size of the features, and the gradient of the weighted sum of the distances."""

    distances: Tensor  # (1 + orders, C), the means first; 0 for a class missing from a domain
    energy: Tensor  # scalar: mean squared distance of a row from its centre, over the included rows
    source_gradient: Tensor  # (n, d), or empty if not requested
    target_gradient: Tensor  # (m, d), or empty


def signed_gram(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    weights: Tensor,
    orders: list[int],
    unbiased: bool,
    scale: Tensor,
    with_gradient: bool = False,
) -> GramResult:
    """Compute distances divided by their power of `scale`, and the gradient of Σ weights ∘ distances.

    A `scale` of 0 means the root of this batch's energy. `weights` weigh terms and classes.
    """
    if source.is_cuda and torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            "alignment reads labels, which no CUDA graph can record: give most_rows for classes of up to 64 rows"
        )
    num_classes = weights.shape[1]
    compute = torch.promote_types(torch.promote_types(source.dtype, target.dtype), torch.float32)
    exact = exact_type(source.device)
    buckets = group_by_class(source_labels, target_labels, num_classes, extra=1)
    if sum(len(bucket.classes) * (bucket.source_width + bucket.target_width) ** 2 for bucket in buckets) > MOST_PAIRS:
        classes = torch.cat([bucket.classes for bucket in buckets]).tolist()
        rows = {c: tuple((of == c).nonzero().flatten() for of in (source_labels, target_labels)) for c in classes}
        return _class_by_class(source, target, rows, weights, orders, unbiased, scale, with_gradient)
    blocks = [_block(source, target, bucket, compute, max(orders), unbiased) for bucket in buckets]

    distances = torch.zeros(1 + len(orders), num_classes, dtype=exact, device=source.device)
    for block in blocks:
        scatters = [(block.pair_weights * block.powers[order]).sum((1, 2)) for order in orders]
        of_bucket = torch.stack([block.mean_distance, *scatters])
        distances = distances.index_copy(1, block.bucket.classes, of_bucket)
    energy = _energy(blocks, exact, source.device)
    shrink = _shrinkage(scale, energy, orders)
    distances = distances * shrink

    if with_gradient:
        scaled = weights.to(exact) * shrink
        source_gradient, target_gradient = _gradients(blocks, scaled, orders, unbiased, source, target)
    else:
        source_gradient, target_gradient = source.new_empty(0), target.new_empty(0)
    return GramResult(distances.to(compute), energy.to(compute), source_gradient, target_gradient)


def _class_by_class(
    source: Tensor,
    target: Tensor,
    rows: dict[int, tuple[Tensor, ...]],
    weights: Tensor,
    orders: list[int],
    unbiased: bool,
    scale: Tensor,
    with_gradient: bool,
) -> GramResult:
    """Compute the result of `signed_gram` with a few pairs in memory at a time; `rows` are the rows of each class."""
    compute = torch.promote_types(torch.promote_types(source.dtype, target.dtype), torch.float32)
    exact = exact_type(source.device)

    def of_class(c: int) -> tuple[Tensor, Tensor, Tensor]:
        x, y = (z.index_select(0, own).to(compute) for z, own in zip((source, target), rows[c], strict=True))
        return centred(x, y, unbiased)

    squares = [torch.cat(of_class(c)[:2]).square().sum(dtype=exact) for c in rows]
    energy = torch.stack(squares).sum() / sum(len(own) for of_both in rows.values() for own in of_both)
    shrink = _shrinkage(scale, energy, orders)
    distances = torch.zeros(1 + len(orders), weights.shape[1], dtype=exact, device=source.device)
    gradients = [torch.zeros_like(x) if with_gradient else x.new_empty(0) for x in (source, target)]
    scaled = weights.to(exact) * shrink
    for c, own in rows.items():
        coefficients = scaled[:, c] if with_gradient else None
        distances[:, c], slopes = distances_of_rows(*of_class(c), orders, unbiased, exact, coefficients)
        for gradient, indices, slope in zip(gradients, own, slopes, strict=False):
            gradient.index_copy_(0, indices, slope.to(gradient.dtype))
    return GramResult((distances * shrink).to(compute), energy.to(compute), gradients[0], gradients[1])


def _shrinkage(scale: Tensor, energy: Tensor, orders: list[int]) -> Tensor:
    """Return the factor of each distance, (1 + orders, 1): features / s have distances / s^(2r) of order r.

    For a scale of 0, s is the root of the energy, or 1 if that is 0, too.
    """
    measured = torch.where(energy > 0, energy, 1.0).sqrt()
    divisor = torch.where(scale > 0, scale.to(energy.dtype), measured)
    return torch.stack([divisor.pow(-2 * order) for order in (1, *orders)]).unsqueeze(1)


def _block(
    source: Tensor, target: Tensor, bucket: Bucket, compute: torch.dtype, highest_order: int, unbiased: bool
) -> _Block:
    """Gather the rows of a bucket, centre them and multiply all pairs."""
    groups, s_width, t_width = bucket.classes.numel(), bucket.source_width, bucket.target_width
    width, size, exact = s_width + t_width, source.shape[1], exact_type(source.device)
    flat = _gather(source.to(compute), target.to(compute), bucket, groups * (width + 1))
    rows = flat[:-1].view(groups, width + 1, size)
    slot = torch.arange(width, device=source.device)
    n, m = (counts.view(-1, 1).to(exact) for counts in (bucket.source_counts, bucket.target_counts))
    in_source = (slot < n).to(exact)
    in_target = ((slot >= s_width) & (slot < s_width + m)).to(exact)

    s_rows, t_rows = rows[:, :s_width], rows[:, s_width:width]
    source_mean, target_mean = s_rows.sum(1) / n.to(compute), t_rows.sum(1) / m.to(compute)
    difference = source_mean - target_mean
    if unbiased:
        centre = target_mean + difference * (n / (n + m)).to(compute)
        rows.sub_(centre.unsqueeze(1))
    else:
        # Empty slots are shifted too; their products are set to zero below.
        s_rows.sub_(source_mean.unsqueeze(1))
        t_rows.sub_(target_mean.unsqueeze(1))
    rows[:, width].copy_(difference)

    taken = in_source + in_target
    products = torch.bmm(rows, rows.transpose(1, 2)).to(exact)
    gram = products[:, :width, :width] * taken.unsqueeze(1) * taken.unsqueeze(2)
    signs = in_source / n - in_target / m
    pairs = pair_weights(signs, in_source * n + in_target * m if unbiased else None)
    means = (pairs * gram).sum((1, 2)) if unbiased else products[:, width, width]
    return _Block(bucket, flat, rows, powers(gram, highest_order), pairs, signs, in_source, in_target, means)


def _gather(source: Tensor, target: Tensor, bucket: Bucket, slots: int) -> Tensor:
    """Put the rows into their slots; empty slots, and the one after the last, are zero."""
    row_in_slot = torch.zeros(slots + 1, dtype=torch.int64, device=source.device)
    row_in_slot[bucket.source_slots] = torch.arange(source.shape[0], device=source.device)
    is_empty = torch.ones(slots + 1, dtype=torch.bool, device=source.device)
    is_empty[bucket.source_slots] = False
    is_empty[bucket.target_slots] = False
    is_empty[-1] = True
    # The source is the larger part: read it in one pass, then overwrite the other slots with the target and zeros.
    flat = source.index_select(0, row_in_slot)
    flat.index_copy_(0, bucket.target_slots, target)
    return flat.index_fill_(0, is_empty.nonzero().flatten(), 0)


def _energy(blocks: list[_Block], exact: torch.dtype, device: torch.device) -> Tensor:
    """Average the squared distance of every included row from the centre of its class."""
    total = torch.zeros((), dtype=exact, device=device)
    rows = torch.zeros((), dtype=exact, device=device)
    for block in blocks:
        taken = block.in_source + block.in_target
        total = total + (block.powers[1].diagonal(dim1=1, dim2=2) * taken).sum()
        rows = rows + taken.sum()
    return total / rows.clamp(min=1)


def _gradients(
    blocks: list[_Block], weights: Tensor, orders: list[int], unbiased: bool, source: Tensor, target: Tensor
) -> tuple[Tensor, Tensor]:
    """Multiply each bucket's small matrix by its rows and restore the order of the input."""
    gradients: list[tuple[Tensor, Tensor]] = []
    for block in blocks:
        matrices = _gradient_matrix(block, weights[:, block.bucket.classes], orders, unbiased)
        at_once = CLASSES_AT_ONCE if source.device.type == "cpu" else len(matrices)
        for matrix, rows in zip(torch.split(matrices, at_once), torch.split(block.rows, at_once), strict=True):
            rows.copy_(torch.bmm(matrix, rows))
        slots = block.bucket.source_slots, block.bucket.target_slots
        gradients.append((block.flat.index_select(0, slots[0]), block.flat.index_select(0, slots[1])))
    if not gradients:
        return torch.zeros_like(source), torch.zeros_like(target)
    of_source, of_target = (reduce(torch.add, of_domain) for of_domain in zip(*gradients, strict=True))
    return of_source.to(source.dtype), of_target.to(target.dtype)


def _gradient_matrix(block: _Block, weights: Tensor, orders: list[int], unbiased: bool) -> Tensor:
    """Build the (G, S + 1, S + 1) matrix that turns centred rows and δ into the gradient (its last row is zero)."""
    per_class = weights.unsqueeze(2).unsqueeze(3)
    inner = torch.zeros_like(block.pair_weights)
    for k, order in enumerate(orders, start=1):
        inner += order * per_class[k] * block.powers[order - 1]
    if unbiased:
        inner = block.pair_weights * (inner + per_class[0])
        inner = inner - _column_means(inner, block.in_source + block.in_target)
        of_difference = torch.zeros_like(block.signs)
    else:
        inner = block.pair_weights * inner
        inner = inner - _column_means(inner, block.in_source) - _column_means(inner, block.in_target)
        of_difference = weights[0].unsqueeze(1) * block.signs
    matrix = torch.cat([inner, of_difference.unsqueeze(2)], dim=2)
    return torch.nn.functional.pad(2 * matrix, (0, 0, 0, 1)).to(block.rows.dtype)


def _column_means(matrix: Tensor, members: Tensor) -> Tensor:
    """Replace the rows of `matrix` that are members by their mean, and the others by 0: (I − H) matrix."""
    share = members / members.sum(1, keepdim=True)
    return members.unsqueeze(2) * (share.unsqueeze(1) @ matrix)
