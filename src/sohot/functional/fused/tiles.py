"""Kernel functions for tiles of the Gram matrix of a class with more rows than one program holds."""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import triton
import triton.language as tl

from .rows import NOWHERE, centred, load_rows, pair_weights, row_pointers
from .weights import store_weights, totals_of, weights_of, without_absent


@triton.jit
def first_place(filled, c, BLOCK: tl.constexpr):
    """Return where the rows of a class start if all rows are listed class by class."""
    before = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, c, BLOCK):
        other = start + tl.arange(0, BLOCK)
        before += tl.load(filled + other, mask=other < c, other=0)
    return tl.sum(before, 0)


@triton.jit
def rows_of_tile(listed, rows, tile, n, row_weights, CAPACITY: tl.constexpr):
    """Return the rows of one tile of a class, and which belong to the source and to the target."""
    slot = tile * CAPACITY + tl.arange(0, CAPACITY)
    number = without_absent(tl.load(listed + slot, mask=slot < rows, other=NOWHERE), row_weights)
    return number, (number < n).to(tl.float32), ((number >= n) & (number < NOWHERE)).to(tl.float32)


@triton.jit
def centred_tile(
    pointers, number, in_source, in_target, means, other_means, columns, n_c, m_c, size, UNBIASED: tl.constexpr
):
    """Load some columns of the rows of a tile, minus the means."""
    x = load_rows(pointers, columns, number < NOWHERE, size, False)
    source_mean = tl.load(means + columns, mask=columns < size, other=0.0)
    target_mean = tl.load(other_means + columns, mask=columns < size, other=0.0)
    x, _ = centred(x, source_mean, target_mean, in_source, in_target, n_c, m_c, UNBIASED)
    return x


@triton.jit
def tile_pair(
    source,
    target,
    listed,
    rows,
    tile,
    means,
    other_means,
    n_c,
    m_c,
    row_weights,
    row_numbers,
    c,
    classes,
    n,
    size,
    source_stride,
    target_stride,
    one,
    CAPACITY: tl.constexpr,
    BLOCK: tl.constexpr,
    UNBIASED: tl.constexpr,
):
    """Multiply the rows of two tiles, number `tile` of all pairs.

    Returns the products in float64, the weights of these pairs of rows, and both tiles as `rows_of_tile` returns them.
    """
    tiles = tl.cdiv(rows, CAPACITY)
    number, sources, targets = rows_of_tile(listed, rows, tile // tiles, n, row_weights, CAPACITY)
    others, other_sources, other_targets = rows_of_tile(listed, rows, tile % tiles, n, row_weights, CAPACITY)
    pointers = row_pointers(source, target, number, n, source_stride, target_stride, False)
    other_pointers = row_pointers(source, target, others, n, source_stride, target_stride, False)
    products = tl.zeros((CAPACITY, CAPACITY), tl.float32)
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = centred_tile(pointers, number, sources, targets, means, other_means, at, n_c, m_c, size, UNBIASED)
        y = centred_tile(
            other_pointers, others, other_sources, other_targets, means, other_means, at, n_c, m_c, size, UNBIASED
        )
        products += tl.dot(x, tl.trans(y), input_precision="tf32x3") * one
    source_total, target_total, source_factor, target_factor = totals_of(row_numbers, c, classes, n_c, m_c, tl.float32)
    of_source, of_target = weights_of(number, sources, targets, row_weights, tl.float32)
    others_of_source, others_of_target = weights_of(others, other_sources, other_targets, row_weights, tl.float32)
    pairs = pair_weights(
        number, of_source, of_target, others, others_of_source, others_of_target, source_total, target_total,
        source_factor, target_factor, UNBIASED
    )  # fmt: skip
    return products.to(tl.float64), pairs, number, others, other_sources, other_targets


@triton.jit
def weigh_class(listed, rows, tiles, row_weights, row_numbers, c, classes, n, all_rows, CAPACITY: tl.constexpr):
    """Store the sums of the weights of a large class; returns its rows of each domain without those of weight 0."""
    nothing = tl.zeros((CAPACITY,), tl.float64)
    n_c, m_c, source_total, source_squares, target_total, target_squares, energy = (
        nothing, nothing, nothing, nothing, nothing, nothing, nothing
    )  # fmt: skip
    for tile in range(tiles):
        number, in_source, in_target = rows_of_tile(listed, rows, tile, n, row_weights, CAPACITY)
        of_source, of_target = weights_of(
            number, in_source.to(tl.float64), in_target.to(tl.float64), row_weights, tl.float64
        )
        n_c += in_source
        m_c += in_target
        source_total += of_source
        source_squares += of_source * of_source
        target_total += of_target
        target_squares += of_target * of_target
        energy += tl.load(row_weights + all_rows + number, mask=number < NOWHERE, other=0.0)
    n_c, m_c = tl.sum(n_c, 0), tl.sum(m_c, 0)
    of_energy = tl.where((n_c > 0) & (m_c > 0), tl.sum(energy, 0), 0.0)
    store_weights(
        row_numbers,
        c,
        classes,
        (tl.sum(source_total, 0), tl.sum(source_squares, 0)),
        (tl.sum(target_total, 0), tl.sum(target_squares, 0)),
        of_energy,
        rows.to(tl.float64),
    )
    return n_c.to(tl.float32), m_c.to(tl.float32)
