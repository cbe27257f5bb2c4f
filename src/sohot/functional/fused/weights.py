"""Kernel functions for weights of rows; `row_weights` is None where rows have none, and costs nothing then.

`row_weights` holds two numbers for each row of both domains, (2, n + m) in float32: its weight relative to the largest
of its class and domain, and relative to the largest of all. `row_numbers` holds their sums by class, see
`store_weights`.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import triton
import triton.language as tl

from .rows import NOWHERE


@triton.jit
def without_absent(number, row_weights):
    """Empty the slots of rows of weight 0."""
    if row_weights is not None:
        weights = tl.load(row_weights + number, mask=number < NOWHERE, other=0.0)
        number = tl.where(weights > 0, number, NOWHERE)
    return number


@triton.jit
def weights_of(number, in_source, in_target, row_weights, TYPE: tl.constexpr):
    """Return the weights of the source and of the target rows; without weights, 1 for every row."""
    if row_weights is None:
        of_source, of_target = in_source, in_target
    else:
        weights = tl.load(row_weights + number, mask=number < NOWHERE, other=0.0).to(TYPE)
        of_source, of_target = in_source * weights, in_target * weights
    return of_source, of_target


@triton.jit
def apart_factor(rows):
    """Factor of a pair of different rows of one domain in a U-statistic, n/(n − 1); 0 for a lone row."""
    return tl.where(rows > 1.0, rows / tl.where(rows > 1.0, rows - 1.0, 1.0), 0.0)


@triton.jit
def store_weights(row_numbers, c, classes, of_source, of_target, of_energy, listed):
    """Store what `weigh` and the gradient need of the weights of a class, (6, C) in float64.

    The sum of the weights of each domain, its effective rows (Σw)²/Σw², the sum of the weights in the energy, and the
    number of rows including those of weight 0. All are given as sums over rows, the first two with their squares.
    """
    source_total, source_squares = of_source
    target_total, target_squares = of_target
    tl.store(row_numbers + c, source_total)
    tl.store(row_numbers + classes + c, target_total)
    source_rows = source_total * source_total / tl.where(source_squares > 0, source_squares, 1.0)
    target_rows = target_total * target_total / tl.where(target_squares > 0, target_squares, 1.0)
    tl.store(row_numbers + 2 * classes + c, source_rows)
    tl.store(row_numbers + 3 * classes + c, target_rows)
    tl.store(row_numbers + 4 * classes + c, of_energy)
    tl.store(row_numbers + 5 * classes + c, listed)
    return source_rows, target_rows


@triton.jit
def totals_of(row_numbers, c, classes, n_c, m_c, TYPE: tl.constexpr):
    """Return the sums of the weights of a class in both domains, and the factors of its U-statistics."""
    if row_numbers is None:
        source_total, target_total = n_c, m_c
        source_factor, target_factor = apart_factor(n_c), apart_factor(m_c)
    else:
        source_total = tl.load(row_numbers + c).to(TYPE)
        target_total = tl.load(row_numbers + classes + c).to(TYPE)
        # In float64: little is left of n − 1 where one row has nearly all the weight.
        source_factor = apart_factor(tl.load(row_numbers + 2 * classes + c)).to(TYPE)
        target_factor = apart_factor(tl.load(row_numbers + 3 * classes + c)).to(TYPE)
        source_total = tl.where(source_total > 0, source_total, 1.0)
        target_total = tl.where(target_total > 0, target_total, 1.0)
    return source_total, target_total, source_factor, target_factor
