"""Kernel functions for weights of rows: at least 0, a pair of pointers `of_rows`, None where all rows weigh 1.

Only ratios matter, so weights are divided by the largest of their class and domain: equal weights become exactly 1, and
the result is that without weights. `row_numbers` holds sums by class, see `store_weights`; it is None if neither domain
has weights, which then cost nothing.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import triton
import triton.language as tl

from .rows import NOWHERE


@triton.jit
def given_weights(number, of_rows, n):
    """Return the weights of rows as they are given, in float64; 0 where a slot has no row."""
    source_weights, target_weights = of_rows
    weights = (number < NOWHERE).to(tl.float64)
    if source_weights is not None:
        of_source = tl.load(source_weights + number, mask=number < n, other=0).to(tl.float64)
        weights = tl.where(number < n, of_source, weights)
    if target_weights is not None:
        in_target = (number >= n) & (number < NOWHERE)
        of_target = tl.load(target_weights + (number - n), mask=in_target, other=0).to(tl.float64)
        weights = tl.where(in_target, of_target, weights)
    return weights


@triton.jit
def positive(total):
    """Replace 0 by 1, to divide by."""
    return tl.where(total > 0, total, 1.0)


@triton.jit
def relative_weights(weights, in_source, source_largest, target_largest):
    """Divide the weights of source and target rows by the largest of each."""
    return weights / positive(tl.where(in_source > 0, source_largest, target_largest))


@triton.jit
def apart_factor(rows):
    """Factor of a pair of different rows of one domain in a U-statistic, n/(n − 1); 0 for a lone row."""
    return tl.where(rows > 1.0, rows / tl.where(rows > 1.0, rows - 1.0, 1.0), 0.0)


@triton.jit
def store_weights(row_numbers, c, classes, of_source, of_target, of_energy, listed):
    """Store what `weigh` and the gradient need of the weights of a class, (8, C) in float64.

    The sum of the weights of each domain, its effective rows (Σw)²/Σw², the sum of the weights in the energy, the
    number of rows including those of weight 0, and the largest weight of each domain. Given are sums over rows, of the
    weights of a domain with their squares and the largest.
    """
    source_total, source_squares, source_largest = of_source
    target_total, target_squares, target_largest = of_target
    tl.store(row_numbers + c, source_total)
    tl.store(row_numbers + classes + c, target_total)
    source_rows = source_total * source_total / positive(source_squares)
    target_rows = target_total * target_total / positive(target_squares)
    tl.store(row_numbers + 2 * classes + c, source_rows)
    tl.store(row_numbers + 3 * classes + c, target_rows)
    tl.store(row_numbers + 4 * classes + c, of_energy)
    tl.store(row_numbers + 5 * classes + c, listed)
    tl.store(row_numbers + 6 * classes + c, source_largest)
    tl.store(row_numbers + 7 * classes + c, target_largest)
    return source_rows, target_rows


@triton.jit
def totals_of(row_numbers, c, classes, n_c, m_c, TYPE: tl.constexpr):
    """Return the sums of the weights of a class in both domains, and its effective rows."""
    if row_numbers is None:
        source_total, target_total = tl.maximum(n_c, 1.0), tl.maximum(m_c, 1.0)
        source_rows, target_rows = source_total, target_total
    else:
        source_total = positive(tl.load(row_numbers + c).to(TYPE))
        target_total = positive(tl.load(row_numbers + classes + c).to(TYPE))
        source_rows, target_rows = tl.load(row_numbers + 2 * classes + c), tl.load(row_numbers + 3 * classes + c)
    return source_total, target_total, source_rows, target_rows


@triton.jit
def apart_factors(in_source, source_rows, target_rows, TYPE: tl.constexpr):
    """Factor of each row in U-statistics, from float64: one row with nearly all the weight leaves little of n − 1."""
    return tl.where(in_source > 0, apart_factor(source_rows), apart_factor(target_rows)).to(TYPE)
