"""Kernel functions for rows: which belong to a class, where they are, and their pairs.

Rows are numbered across both domains: source rows 0 … n − 1, then target rows n … n + m − 1. A class lists its rows in
that order, however they were found, so that results do not change from run to run.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import triton
import triton.language as tl

NOWHERE = tl.constexpr(2**30)  # the number of a slot without a row: after all rows


@triton.jit
def sections(kept, classes, CAPACITY: tl.constexpr, PARTS: tl.constexpr):
    """Return where the parts of what a call keeps for its gradient start.

    Gram matrices (PARTS, C, CAPACITY, CAPACITY) in float32, the complete ones in the first part; signed shares of rows
    in the means (C, CAPACITY) in float32; slots in int32, those of rows as found and sorted (2, C, CAPACITY), then how
    many each class has (C,), then a counter; numbers in float64, see `numbers_of`.
    """
    of_classes = classes.to(tl.int64) * CAPACITY
    signs = kept + of_classes * (PARTS * CAPACITY)
    slots = (signs + of_classes).to(tl.pointer_type(tl.int32))
    filled = slots + 2 * of_classes
    numbers = (filled + (classes + 2) // 2 * 2).to(tl.pointer_type(tl.float64))
    return kept, signs, slots, filled, numbers


@triton.jit
def place_rows(
    source_labels,
    target_labels,
    kept,
    n,
    m,
    num_classes,
    CAPACITY: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Give every row a slot of its class, in any order; `filled` also counts rows without one."""
    _, _, slots, filled, _ = sections(kept, tl.full((), num_classes, tl.int32), CAPACITY, PARTS)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    label = load_labels(source_labels, target_labels, row, n, m)
    known = (label >= 0) & (label < num_classes)
    slot = tl.atomic_add(filled + label, 1, mask=known, sem="relaxed")
    tl.store(slots + label * CAPACITY + slot, row, mask=known & (slot < CAPACITY))


@triton.jit
def load_labels(source_labels, target_labels, row, n, m):
    """Return the classes of rows; −1 after the last."""
    of_source = tl.load(source_labels + row, mask=row < n, other=-1).to(tl.int32)
    of_target = tl.load(target_labels + (row - n), mask=(row >= n) & (row < n + m), other=-1).to(tl.int32)
    return tl.where(row < n, of_source, of_target)


@triton.jit
def find_rows(source_labels, target_labels, slots, wanted, n, m, capacity, BLOCK: tl.constexpr, AT_ONCE: tl.constexpr):
    """List the rows of one class by scanning all labels; returns how many there are.

    AT_ONCE: there are at most BLOCK labels.
    """
    found = tl.full((), 0, tl.int32)
    for start in range(0, 1 if AT_ONCE else n + m, BLOCK):
        row = start + tl.arange(0, BLOCK)
        is_wanted = (load_labels(source_labels, target_labels, row, n, m) == wanted).to(tl.int32)
        slot = found + tl.cumsum(is_wanted, 0) - 1
        tl.store(slots + slot, row, mask=(is_wanted > 0) & (slot < capacity))
        found += tl.sum(is_wanted, 0)
    return found


@triton.jit
def list_rows(
    source_labels,
    target_labels,
    slots,
    filled,
    c,
    classes,
    n,
    m,
    CAPACITY: tl.constexpr,
    LABELS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Sort the rows of a class in the second half of `slots`; returns their number.

    With LABELS > 0 the program finds them itself, that many labels at a time (AT_ONCE: there are not more); else
    `place_rows` has found them. All programs of a class write the same.
    """
    slot = tl.arange(0, CAPACITY)
    listed = slots + (classes + c) * CAPACITY
    if LABELS > 0:
        found = find_rows(source_labels, target_labels, listed, c, n, m, CAPACITY, LABELS, AT_ONCE)
        tl.store(listed + slot, NOWHERE, mask=slot >= found)
    else:
        found = tl.load(filled + c)
        placed = slots + c * CAPACITY
        number = tl.load(placed + slot, mask=slot < found, other=NOWHERE)
        others = tl.load(placed + slot, mask=slot < found, other=NOWHERE)
        before = (others[None, :] < number[:, None]) | (
            (others[None, :] == number[:, None]) & (slot[None, :] < slot[:, None])
        )
        tl.store(listed + tl.sum(before.to(tl.int32), 1), number)
    tl.debug_barrier()  # what is read back was written by other threads
    return found


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
def pair_weights(number, signs, factor, other_number, other_signs, UNBIASED: tl.constexpr):
    """A of `gram`, from the signed shares of rows in the means; or the weights of a U-statistic.

    `factor` is that of pairs of different rows of one domain, 0 for a lone row.
    """
    pairs = signs[:, None] * other_signs[None, :]
    if UNBIASED:
        apart = tl.where(number[:, None] == other_number[None, :], 0.0, pairs * factor[:, None])
        pairs = tl.where((pairs > 0) & (factor > 0)[:, None], apart, pairs)
    return pairs


@triton.jit
def apart_factor(rows):
    """Factor of a pair of different rows of one domain in a U-statistic, n/(n − 1); 0 for a lone row."""
    return tl.where(rows > 1.0, rows / tl.where(rows > 1.0, rows - 1.0, 1.0), 0.0)


@triton.jit
def wanted_rows(number, n, WANTED: tl.constexpr):
    """Return which rows need a gradient; slots without a row do not."""
    wanted = number < NOWHERE
    if WANTED == 1:
        wanted = number < n
    elif WANTED == 2:
        wanted = wanted & (number >= n)
    return wanted


@triton.jit
def add_one(number):
    """Add 1 to a number: the smallest kernel, to find out whether any can be compiled."""
    tl.store(number, tl.load(number) + 1)
