"""Kernel functions for rows relative to another row, which costs less than their mean and keeps as many digits.

From each row of float32 a program subtracts the first row of its class and domain. The first row of the source would
become zero: it takes the first row of the target instead, so that it holds what the two domains are apart. Relative to
the first row of the target, a row of the source is then itself plus that first row. Small matrices say the rest:
distances centre the products, and the gradient's matrix sums to zero over each domain. Numbers of half precision have
so few digits that their products are exact: these rows stay as they are.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import triton
import triton.language as tl

from .rows import NOWHERE


@triton.jit
def first_rows(number, n):
    """Return the first rows of source and target: not below n, and not below NOWHERE, where there are none."""
    return tl.min(number, 0), tl.min(tl.where(number >= n, number, NOWHERE), 0)


@triton.jit
def is_first(number, n):
    """Which slot holds the first row of the source; none if the class has no such row."""
    return (number == tl.min(number, 0)) & (number < n)


@triton.jit
def references(source, target, number, n, source_stride, target_stride, ALIGNED: tl.constexpr):
    """Return where the first rows of both domains start, and 1 for each slot whose row is taken relative to them."""
    first_source, first_target = first_rows(number, n)
    source += tl.where(first_source < n, first_source, 0).to(tl.int64) * source_stride
    target += tl.where(first_target < NOWHERE, first_target - n, 0).to(tl.int64) * target_stride
    if ALIGNED:
        source, target = tl.multiple_of(source, 16), tl.multiple_of(target, 16)
    first = is_first(number, n)
    to_source = (number < n) & ~first
    to_target = ((number >= n) & (number < NOWHERE)) | first
    return source, target, to_source.to(tl.float32), to_target.to(tl.float32)


@triton.jit
def load_with_origins(pointers, origins, columns, taken, are_loaded, size, EVEN: tl.constexpr):
    """Load some columns of rows, and of the rows that they are relative to; EVEN: all columns exist."""
    source_row, target_row, _, _ = origins
    mask, inside = taken[:, None], are_loaded
    if not EVEN:
        mask, inside = mask & (columns < size)[None, :], inside & (columns < size)
    x = tl.load(pointers[:, None] + columns[None, :], mask=mask, other=0.0)
    source_row = tl.load(source_row + columns, mask=inside, other=0.0)
    target_row = tl.load(target_row + columns, mask=inside, other=0.0)
    return x, source_row, target_row


@triton.jit
def relative_rows(loaded, origins):
    """Subtract the rows that rows are relative to."""
    x, source_row, target_row = loaded
    _, _, to_source, to_target = origins
    return x - to_source[:, None] * source_row[None, :] - to_target[:, None] * target_row[None, :]


@triton.jit
def about_one_origin(products, number, n):
    """Turn the products of relative rows into those of all rows relative to the first row of the target."""
    first = is_first(number, n)
    with_first = tl.sum(tl.where(first[:, None], products, 0.0), 0)
    of_first = tl.sum(tl.where(first, with_first, 0.0), 0)
    moved = ((number < n) & ~first).to(products.dtype)
    with_first += 0.5 * of_first * moved
    return products + moved[:, None] * with_first[None, :] + with_first[:, None] * moved[None, :]


@triton.jit
def doubly_centred(matrix, of_source, of_target, source_sums, target_sums):
    """C M Cᵀ for a symmetric M, where C x subtracts from x, for each domain, its sum with `sums` times `of`."""
    with_source = tl.sum(matrix * source_sums[None, :], 1)
    with_target = tl.sum(matrix * target_sums[None, :], 1)
    both = 0.5 * tl.sum(with_source * target_sums, 0)
    with_source -= of_source * (0.5 * tl.sum(with_source * source_sums, 0)) + of_target * both
    with_target -= of_target * (0.5 * tl.sum(with_target * target_sums, 0)) + of_source * both
    matrix -= of_source[:, None] * with_source[None, :] + with_source[:, None] * of_source[None, :]
    return matrix - (of_target[:, None] * with_target[None, :] + with_target[:, None] * of_target[None, :])


@triton.jit
def centred_together(matrix, member, rows):
    """The same for both domains as one."""
    with_all = tl.sum(matrix * member[None, :], 1) / rows
    with_all -= member * (0.5 * tl.sum(with_all * member, 0) / rows)
    return matrix - (member[:, None] * with_all[None, :] + with_all[:, None] * member[None, :])


@triton.jit
def relative_matrix(matrix, of_difference, signs, number, n, UNBIASED: tl.constexpr, RELATIVE: tl.constexpr):
    """Add the difference of the means to the gradient's matrix, and let it take rows as they were loaded.

    Its sum over each domain is zero for the plug-in estimator, in exact numbers: that is not left to rounding.
    """
    if not UNBIASED:
        matrix += of_difference[:, None] * signs[None, :]
    if RELATIVE:
        over_source = of_difference
        if UNBIASED:
            over_source = tl.sum(tl.where((number < n)[None, :], matrix, 0.0), 1)
        matrix = tl.where(is_first(number, n)[None, :], over_source[:, None], matrix)
    return matrix
