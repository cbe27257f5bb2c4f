"""Kernel functions for tiles of the Gram matrix of a class with more rows than one program holds."""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import triton
import triton.language as tl

from .rows import NOWHERE, load_rows, pair_weights, row_pointers
from .weights import apart_factors, given_weights, positive, relative_weights, store_weights, totals_of


@triton.jit
def first_place(filled, c, BLOCK: tl.constexpr):
    """Return where the rows of a class start if all rows are listed class by class."""
    before = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, c, BLOCK):
        other = start + tl.arange(0, BLOCK)
        before += tl.load(filled + other, mask=other < c, other=0)
    return tl.sum(before, 0)


@triton.jit
def rows_of_tile(listed, rows, tile, n, CAPACITY: tl.constexpr):
    """Return the rows of one tile of a class, and which belong to the source and to the target."""
    slot = tile * CAPACITY + tl.arange(0, CAPACITY)
    number = tl.load(listed + slot, mask=slot < rows, other=NOWHERE)
    return number, (number < n).to(tl.float32), ((number >= n) & (number < NOWHERE)).to(tl.float32)


@triton.jit
def centred_tile(
    pointers, number, in_source, in_target, means, other_means, columns, n_c, m_c, size, UNBIASED: tl.constexpr
):
    """Load some columns of the rows of a tile, minus the means."""
    x = load_rows(pointers, columns, number < NOWHERE, size, False)
    source_mean = tl.load(means + columns, mask=columns < size, other=0.0)
    target_mean = tl.load(other_means + columns, mask=columns < size, other=0.0)
    if UNBIASED:
        centre = target_mean + (source_mean - target_mean) * (n_c / (n_c + m_c))
        x = x - (in_source + in_target)[:, None] * centre[None, :]
    else:
        x = x - in_source[:, None] * source_mean[None, :] - in_target[:, None] * target_mean[None, :]
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
    of_rows,
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
    number, sources, targets = rows_of_tile(listed, rows, tile // tiles, n, CAPACITY)
    others, other_sources, other_targets = rows_of_tile(listed, rows, tile % tiles, n, CAPACITY)
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
    _, _, source_rows, target_rows = totals_of(row_numbers, c, classes, n_c, m_c, tl.float32)
    factor = apart_factors(sources, source_rows, target_rows, tl.float32)
    signs = signs_of_tile(number, sources, targets, of_rows, row_numbers, n_c, m_c, c, classes, n)
    other_signs = signs_of_tile(others, other_sources, other_targets, of_rows, row_numbers, n_c, m_c, c, classes, n)
    pairs = pair_weights(number, signs, factor, others, other_signs, UNBIASED)
    return products.to(tl.float64), pairs, number, others, other_sources, other_targets


@triton.jit
def signs_of_tile(number, in_source, in_target, of_rows, row_numbers, n_c, m_c, c, classes, n):
    """Return the shares of the rows of a tile in the means of their domains, negative in the target."""
    source_total, target_total, _, _ = totals_of(row_numbers, c, classes, n_c, m_c, tl.float32)
    of_source, of_target = weights_of_tile(number, in_source, in_target, of_rows, row_numbers, c, classes, n)
    return of_source / source_total - of_target / target_total


@triton.jit
def weights_of_tile(number, in_source, in_target, of_rows, row_numbers, c, classes, n):
    """Return the weights of the source and of the target rows of a tile, relative to the largest of the class."""
    of_source, of_target = in_source, in_target
    if row_numbers is not None:
        source_largest, target_largest = tl.load(row_numbers + 6 * classes + c), tl.load(row_numbers + 7 * classes + c)
        weights = given_weights(number, of_rows, n)
        relative = relative_weights(weights, in_source, source_largest, target_largest).to(tl.float32)
        of_source, of_target = in_source * relative, in_target * relative
    return of_source, of_target


@triton.jit
def weigh_class(listed, rows, tiles, of_rows, row_numbers, c, classes, n, CAPACITY: tl.constexpr):
    """Store the sums of the weights of a large class; returns its rows of each domain without those of weight 0."""
    nothing = tl.zeros((CAPACITY,), tl.float64)
    source_most, target_most = nothing, nothing
    for tile in range(tiles):
        number, in_source, in_target = rows_of_tile(listed, rows, tile, n, CAPACITY)
        weights = given_weights(number, of_rows, n)
        source_most = tl.maximum(source_most, weights * in_source)
        target_most = tl.maximum(target_most, weights * in_target)
    source_largest, target_largest = tl.max(source_most, 0), tl.max(target_most, 0)
    largest = positive(tl.maximum(source_largest, target_largest))
    n_c, m_c, source_total, source_squares, target_total, target_squares, energy = (
        nothing, nothing, nothing, nothing, nothing, nothing, nothing
    )  # fmt: skip
    for tile in range(tiles):
        number, in_source, in_target = rows_of_tile(listed, rows, tile, n, CAPACITY)
        weights = given_weights(number, of_rows, n)
        relative = relative_weights(weights, in_source, source_largest, target_largest)
        of_source, of_target = in_source * relative, in_target * relative
        n_c += in_source
        m_c += in_target
        source_total += of_source
        source_squares += of_source * of_source
        target_total += of_target
        target_squares += of_target * of_target
        energy += (in_source + in_target) * (weights / largest)
    n_c, m_c = tl.sum(n_c, 0), tl.sum(m_c, 0)
    of_energy = tl.where((n_c > 0) & (m_c > 0), tl.sum(energy, 0), 0.0)
    store_weights(
        row_numbers,
        c,
        classes,
        (tl.sum(source_total, 0), tl.sum(source_squares, 0), source_largest),
        (tl.sum(target_total, 0), tl.sum(target_squares, 0), target_largest),
        of_energy,
        rows.to(tl.float64),
    )
    return n_c.to(tl.float32), m_c.to(tl.float32)
