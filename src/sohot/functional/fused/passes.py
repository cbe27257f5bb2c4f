"""The two passes over the features: Gram matrices forward, gradient rows backward.

A program holds all rows of one class and, step by step, some of their columns, so centring is exact and needs no
separate pass. Products of float32 numbers run on matrix units in pieces of fewer digits: with x = high + low,
x yᵀ = high highᵀ + high lowᵀ + low highᵀ + low lowᵀ, of which a Gram matrix needs one of the middle two. The last
matters only on the diagonal, where all its products are positive, unless there are too few columns to average it out.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import triton
import triton.language as tl

from .distances import gradient_matrix, members, parts_of
from .rows import NOWHERE, centred, domain_sums, find_rows, load_rows, pieces, rounded, row_pointers
from .weights import weights_of


@triton.jit
def list_rows(
    slots,
    source_labels,
    target_labels,
    c,
    classes,
    n,
    m,
    CAPACITY: tl.constexpr,
    LABELS: tl.constexpr,
):
    """Sort the rows of a class in the second half of `slots`; returns their number.

    With LABELS > 0 the program finds them itself, that many labels at a time; else `place_rows` has found them. All
    programs of a class write the same.
    """
    slot = tl.arange(0, CAPACITY)
    listed, filled = slots + (classes + c) * CAPACITY, slots + 2 * classes * CAPACITY
    if LABELS > 0:
        found, _ = find_rows(source_labels, target_labels, listed, c, n, m, CAPACITY, LABELS)
        tl.store(listed + slot, NOWHERE, mask=slot >= found)
        tl.store(filled + c, found)
    else:
        found = tl.load(filled + c)
        number = tl.load(slots + c * CAPACITY + slot, mask=slot < found, other=NOWHERE)
        tl.store(listed + slot, tl.sort(number))
    tl.debug_barrier()  # what is read back was written by other threads
    return found


@triton.jit
def gram(
    source,
    target,
    source_labels,
    target_labels,
    slots,
    grams,
    means,
    numbers,
    row_weights,
    n,
    m,
    size,
    columns_each,
    source_stride,
    target_stride,
    one,
    CAPACITY: tl.constexpr,
    BLOCK: tl.constexpr,
    LABELS: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    EVEN: tl.constexpr,
    ALIGNED: tl.constexpr,
    FEW_COLUMNS: tl.constexpr,
):
    """Multiply the centred rows of class `program_id(0)` with each other, over part `program_id(1)` of the columns."""
    c, part, classes = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    found = list_rows(slots, source_labels, target_labels, c, classes, n, m, CAPACITY, LABELS)
    listed = slots + (classes + c) * CAPACITY
    number, in_source, in_target, n_c, m_c = members(listed, n, row_weights, CAPACITY, tl.float32)
    # U-statistics are centred on the mean of all rows without weights, see `gram`.
    of_source, of_target = in_source, in_target
    source_total, target_total = n_c, m_c
    if row_weights is not None and not UNBIASED:
        of_source, of_target = weights_of(number, in_source, in_target, row_weights, tl.float32)
        source_total, target_total = tl.sum(of_source, 0), tl.sum(of_target, 0)
    straight = tl.zeros((CAPACITY, CAPACITY), tl.float32)
    crossed = tl.zeros((CAPACITY, CAPACITY), tl.float32)
    low_squares = tl.zeros((CAPACITY, BLOCK // 4), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    if (n_c > 0) & (m_c > 0) & (found <= CAPACITY):
        pointers = row_pointers(source, target, number, n, source_stride, target_stride, ALIGNED)
        source_means = means + c.to(tl.int64) * size
        target_means = source_means + classes.to(tl.int64) * size
        for start in range(part * columns_each, min(size, (part + 1) * columns_each), BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = load_rows(pointers, columns, number < NOWHERE, size, EVEN)
            source_mean, target_mean = domain_sums(x, of_source, of_target)
            source_mean, target_mean = source_mean * (1.0 / source_total), target_mean * (1.0 / target_total)
            tl.store(source_means + columns, source_mean, mask=columns < size)
            tl.store(target_means + columns, target_mean, mask=columns < size)
            x, difference = centred(x, source_mean, target_mean, in_source, in_target, n_c, m_c, UNBIASED)
            squares += difference * difference
            high, low = pieces(x)
            # Matrix units drop digits whenever they add: let them add few numbers, and add their sums here.
            crossed = tl.dot(high, tl.trans(low), crossed)
            if FEW_COLUMNS:
                straight += tl.dot(high, tl.trans(high), tl.dot(low, tl.trans(low)))
            else:
                straight += tl.dot(high, tl.trans(high)) * one  # a factor keeps the compiler from merging the two sums
                rest = x - rounded(x)
                low_squares += tl.sum(tl.reshape(rest * rest, (CAPACITY, BLOCK // 4, 4)), 2)
    products = straight + crossed + tl.trans(crossed)
    slot = tl.arange(0, CAPACITY)
    place = (part * classes + c).to(tl.int64) * (CAPACITY * CAPACITY) + slot[:, None] * CAPACITY + slot[None, :]
    diagonal = slot[:, None] == slot[None, :]
    tl.store(grams + place, products + tl.where(diagonal, tl.sum(low_squares, 1)[:, None], 0.0))
    _, _, _, _, mean_squares = parts_of(numbers, classes, ORDERS)
    tl.store(mean_squares + part * classes + c, tl.sum(squares, 0).to(tl.float64))


@triton.jit
def gradient(
    source,
    target,
    slots,
    grams,
    means,
    numbers,
    row_weights,
    row_numbers,
    upstream,
    source_gradient,
    target_gradient,
    n,
    size,
    columns_each,
    source_stride,
    target_stride,
    CAPACITY: tl.constexpr,
    BLOCK: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    EVEN: tl.constexpr,
    ALIGNED: tl.constexpr,
    WANTED: tl.constexpr,
):
    """Write the gradient of part `program_id(1)` of the columns for the rows of class `program_id(0)`.

    WANTED: 1 for the source, 2 for the target, 3 for both.
    """
    c, part, classes = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    slot = tl.arange(0, CAPACITY)
    listed = slots + (classes + c) * CAPACITY
    number, in_source, in_target, n_c, m_c = members(listed, n, row_weights, CAPACITY, tl.float32)
    of_source, of_target = weights_of(number, in_source, in_target, row_weights, tl.float32)
    _, coefficients, _, _, _ = parts_of(numbers, classes, ORDERS)
    in_both = (n_c > 0) & (m_c > 0)  # rows of other classes get zeros
    n_c, m_c = tl.maximum(n_c, 1.0), tl.maximum(m_c, 1.0)
    products = tl.load(grams + c.to(tl.int64) * CAPACITY * CAPACITY + slot[:, None] * CAPACITY + slot[None, :])
    factor = 2.0 * tl.load(upstream).to(tl.float64)
    matrix, signs = gradient_matrix(
        products, coefficients, factor, c, classes, number, in_source, in_target, n_c, m_c, of_source, of_target,
        row_numbers, CAPACITY, ORDERS, UNBIASED
    )  # fmt: skip
    high, low = pieces(matrix)
    of_difference = signs * (factor * tl.load(coefficients + c)).to(tl.float32)

    pointers = row_pointers(source, target, number, n, source_stride, target_stride, ALIGNED)
    gradients = row_pointers(source_gradient, target_gradient, number, n, size, size, ALIGNED)
    source_means = means + c.to(tl.int64) * size
    target_means = source_means + classes.to(tl.int64) * size
    loaded, limit = number < tl.where(in_both, NOWHERE, 0), tl.where(in_both, size, 0)
    written = wanted_rows(number, n, WANTED)
    for start in range(part * columns_each, min(size, (part + 1) * columns_each), BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = load_rows(pointers, columns, loaded, size, EVEN)
        source_mean = tl.load(source_means + columns, mask=columns < limit, other=0.0)
        target_mean = tl.load(target_means + columns, mask=columns < limit, other=0.0)
        x, difference = centred(x, source_mean, target_mean, in_source, in_target, n_c, m_c, UNBIASED)
        x_high, x_low = pieces(x)
        result = tl.dot(low, x_high)
        result = tl.dot(high, x_low, result)
        result = tl.dot(high, x_high, result)
        if not UNBIASED:
            result += of_difference[:, None] * difference[None, :]
        mask = written[:, None] if EVEN else written[:, None] & (columns < size)[None, :]
        tl.store(gradients[:, None] + columns[None, :], result.to(source_gradient.dtype.element_ty), mask=mask)


@triton.jit
def wanted_rows(number, n, WANTED: tl.constexpr):
    """Return which rows need a gradient; slots without a row do not."""
    wanted = number < NOWHERE
    if WANTED == 1:
        wanted = number < n
    elif WANTED == 2:
        wanted = wanted & (number >= n)
    return wanted
