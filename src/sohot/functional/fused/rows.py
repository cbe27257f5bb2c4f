"""Kernel functions for rows: which belong to a class, where they are, their means and their pairs.

Rows are numbered across both domains: source rows 0 … n − 1, then target rows n … n + m − 1. A class lists its rows in
that order, however they were found, so that results do not change from run to run.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import os

import triton
import triton.language as tl

NOWHERE = tl.constexpr(2**30)  # the number of a slot without a row: after all rows
INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")


@triton.jit
def place_rows(labels, first_number, slots, count, num_classes, CAPACITY: tl.constexpr, BLOCK: tl.constexpr):
    """Give every row of one domain a slot of its class, in any order; `filled` also counts rows without one."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(labels + row, mask=row < count, other=-1).to(tl.int32)
    known = (label >= 0) & (label < num_classes)
    filled = slots + 2 * num_classes * CAPACITY
    slot = tl.atomic_add(filled + label, 1, mask=known, sem="relaxed")
    tl.store(slots + label * CAPACITY + slot, first_number + row, mask=known & (slot < CAPACITY))


@triton.jit
def find_rows(source_labels, target_labels, slots, wanted, n, m, capacity, BLOCK: tl.constexpr):
    """List the rows of one class by scanning all labels; returns how many there are, and how many in the source."""
    found, in_source = tl.full((), 0, tl.int32), tl.full((), 0, tl.int32)
    for start in range(0, n + m, BLOCK):
        row = start + tl.arange(0, BLOCK)
        of_source = tl.load(source_labels + row, mask=row < n, other=-1).to(tl.int32)
        of_target = tl.load(target_labels + (row - n), mask=(row >= n) & (row < n + m), other=-1).to(tl.int32)
        is_wanted = (tl.where(row < n, of_source, of_target) == wanted).to(tl.int32)
        slot = found + tl.cumsum(is_wanted, 0) - 1
        tl.store(slots + slot, row, mask=(is_wanted > 0) & (slot < capacity))
        found += tl.sum(is_wanted, 0)
        in_source += tl.sum(is_wanted * (row < n).to(tl.int32), 0)
    return found, in_source


@triton.jit
def row_pointers(source, target, number, n, source_stride, target_stride, ALIGNED: tl.constexpr):
    """Return where each row starts; slots without a row point at the first row of the source."""
    in_target = (number >= n) & (number < NOWHERE)
    of_source = source + tl.where(number < n, number, 0).to(tl.int64) * source_stride
    of_target = target + tl.where(in_target, number - n, 0).to(tl.int64) * target_stride
    pointers = tl.where(in_target, of_target, of_source)
    if ALIGNED:
        pointers = tl.multiple_of(pointers, 16)  # bytes; the compiler cannot infer it through the choice of domain
    return pointers


@triton.jit
def load_rows(pointers, columns, taken, size, EVEN: tl.constexpr):
    """Load some columns of rows, as float32; EVEN: all columns exist."""
    mask = taken[:, None] if EVEN else taken[:, None] & (columns < size)[None, :]
    return tl.load(pointers[:, None] + columns[None, :], mask=mask, other=0.0).to(tl.float32)


@triton.jit
def _add_pairs(a, b, c, d):
    return a + c, b + d


@triton.jit
def domain_sums(x, in_source, in_target):
    """Sum the rows of each domain in one reduction, which saves a synchronisation of threads."""
    if INTERPRETED:  # the interpreter is slow at custom reductions
        source_sum, target_sum = tl.sum(x * in_source[:, None], 0), tl.sum(x * in_target[:, None], 0)
    else:
        source_sum, target_sum = tl.reduce((x * in_source[:, None], x * in_target[:, None]), 0, _add_pairs)
    return source_sum, target_sum


@triton.jit
def centred(x, source_mean, target_mean, in_source, in_target, n_c, m_c, UNBIASED: tl.constexpr):
    """Subtract the means where there is a row; returns the rows and the difference of the means."""
    difference = source_mean - target_mean
    if UNBIASED:
        centre = target_mean + difference * (n_c / (n_c + m_c))
        x = x - (in_source + in_target)[:, None] * centre[None, :]
    else:
        x = x - in_source[:, None] * source_mean[None, :] - in_target[:, None] * target_mean[None, :]
    return x, difference


@triton.jit
def rounded(x):
    """Round to the 8 digits of bfloat16, in float32."""
    return ((x.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)


@triton.jit
def pieces(x):
    """Split float32 numbers into two pieces of bfloat16, 16 of their 24 digits, that matrix units multiply exactly."""
    high = rounded(x)
    if INTERPRETED:  # the interpreter cannot multiply bfloat16
        low = rounded(x - high)
    else:
        low = (x - high).to(tl.bfloat16)
        high = high.to(tl.bfloat16)
    return high, low


@triton.jit
def pair_weights(
    number,
    of_source,
    of_target,
    other_number,
    other_of_source,
    other_of_target,
    source_total,
    target_total,
    source_factor,
    target_factor,
    UNBIASED: tl.constexpr,
):
    """A of `gram`, from the weights of rows and their sums in both domains; or the weights of a U-statistic."""
    signs = of_source / source_total - of_target / target_total
    other_signs = other_of_source / source_total - other_of_target / target_total
    pairs = signs[:, None] * other_signs[None, :]
    if UNBIASED:
        factor = tl.where(of_source > 0, source_factor, tl.where(of_target > 0, target_factor, 0.0))
        apart = tl.where(number[:, None] == other_number[None, :], 0.0, pairs * factor[:, None])
        pairs = tl.where((pairs > 0) & (factor > 0)[:, None], apart, pairs)
    return pairs
