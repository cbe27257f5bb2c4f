"""The two passes over the features: Gram matrices forward, gradient rows backward.

A program holds all rows of one class and, step by step, some of their columns. Rows need no centring: small matrices do
it, see `references`. Products of float32 numbers run on matrix units in pieces, see `pieces`: a Gram matrix needs
high highᵀ + 2 high lowᵀ, made symmetric, and low lowᵀ on its diagonal, where all its products are positive, or
everywhere if there are too few columns to average it out. Very few columns need all digits. Half precision needs one
product.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import triton
import triton.language as tl

from .distances import gradient_matrix, members
from .pieces import halves, pieces, twice, whole
from .references import first_rows, load_with_origins, references, relative_rows
from .rows import NOWHERE, list_rows, row_pointers, sections, wanted_rows


@triton.jit
def gram(
    source,
    target,
    source_labels,
    target_labels,
    kept,
    n,
    m,
    size,
    source_stride,
    target_stride,
    one,
    columns_each,
    CAPACITY: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
    LABELS: tl.constexpr,
    AT_ONCE: tl.constexpr,
    RELATIVE: tl.constexpr,
    EVEN: tl.constexpr,
    ALIGNED: tl.constexpr,
    FEW_COLUMNS: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """Multiply the rows of class `program_id(0)` with each other, over part `program_id(1)` of the columns."""
    c, part, classes = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    grams, _, slots, filled, _ = sections(kept, classes, CAPACITY, PARTS)
    tl.store(filled + classes, 0, mask=c + part == 0)  # the counter of the next kernel
    found = list_rows(source_labels, target_labels, slots, filled, c, classes, n, m, CAPACITY, LABELS, AT_ONCE)
    slot = tl.arange(0, CAPACITY)
    number = tl.load(slots + (classes + c) * CAPACITY + slot)
    first_source, first_target = first_rows(number, n)
    in_both = (first_source < n) & (first_target < NOWHERE)
    first = part * columns_each
    last = tl.where(in_both & (found <= CAPACITY), min(size, first + columns_each), first)
    pointers = row_pointers(source, target, number, n, source_stride, target_stride, ALIGNED)
    if RELATIVE:
        origins = references(source, target, number, n, source_stride, target_stride, ALIGNED)
        products = relative_products(
            pointers, origins, number, first, last, size, one, CAPACITY, BLOCK, EVEN, FEW_COLUMNS, AHEAD
        )
    else:
        products = half_products(pointers, number, first, last, size, one, CAPACITY, BLOCK, EVEN)
    place = (part * classes + c).to(tl.int64) * (CAPACITY * CAPACITY) + slot[:, None] * CAPACITY + slot[None, :]
    tl.store(grams + place, products)


@triton.jit
def relative_products(
    pointers,
    origins,
    number,
    first,
    last,
    size,
    one,
    CAPACITY: tl.constexpr,
    BLOCK: tl.constexpr,
    EVEN: tl.constexpr,
    FEW_COLUMNS: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """Multiply rows of float32, as `references` takes them, with each other.

    AHEAD: load each step's columns during the step before, instead of several steps ahead into shared memory.
    """
    total = tl.zeros((CAPACITY, CAPACITY), tl.float32)
    low_squares = tl.zeros((CAPACITY, BLOCK // 4), tl.float32)
    taken, columns = number < NOWHERE, first + tl.arange(0, BLOCK)
    if AHEAD:
        ahead = load_with_origins(pointers, origins, columns, taken & (first < last), first < last, size, EVEN)
    for start in range(first, last, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        if AHEAD:
            loaded, more = ahead, start + BLOCK < last
            ahead = load_with_origins(pointers, origins, columns + BLOCK, taken & more, more, size, EVEN)
        else:
            loaded = load_with_origins(pointers, origins, columns, taken, True, size, EVEN)
        x = relative_rows(loaded, origins)
        if FEW_COLUMNS == 2:
            products = tl.dot(x, tl.trans(x), input_precision="tf32x3")
        else:
            high, low, rest = pieces(x)
            products = tl.dot(high, tl.trans(high))
            products = tl.dot(high, tl.trans(twice(low)), products)
            if FEW_COLUMNS == 1:
                products = tl.dot(low, tl.trans(low), products)
            else:
                low_squares += tl.sum(tl.reshape(rest * rest, (CAPACITY, BLOCK // 4, 4)), 2)
        total += products * one  # a factor keeps the compiler from merging the two sums
    slot = tl.arange(0, CAPACITY)
    diagonal = tl.where(slot[:, None] == slot[None, :], tl.sum(low_squares, 1)[:, None], 0.0)
    return 0.5 * (total + tl.trans(total)) + diagonal


@triton.jit
def half_products(
    pointers, number, first, last, size, one, CAPACITY: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr
):
    """Multiply rows of half precision with each other."""
    total = tl.zeros((CAPACITY, CAPACITY), tl.float32)
    for start in range(first, last, BLOCK):
        x = load_half(pointers, start + tl.arange(0, BLOCK), number < NOWHERE, size, EVEN)
        total += tl.dot(x, tl.trans(x)) * one
    return total


@triton.jit
def load_half(pointers, columns, taken, size, EVEN: tl.constexpr):
    """Load some columns of rows of half precision."""
    mask = taken[:, None] if EVEN else taken[:, None] & (columns < size)[None, :]
    return whole(tl.load(pointers[:, None] + columns[None, :], mask=mask, other=0.0))


@triton.jit
def gradient(
    source,
    target,
    kept,
    upstream,
    source_gradient,
    target_gradient,
    n,
    size,
    source_stride,
    target_stride,
    columns_each,
    CAPACITY: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    RELATIVE: tl.constexpr,
    EVEN: tl.constexpr,
    ALIGNED: tl.constexpr,
    WANTED: tl.constexpr,
):
    """Write the gradient of part `program_id(1)` of the columns for the rows of class `program_id(0)`.

    WANTED: 1 for the source, 2 for the target, 3 for both.
    """
    c, part, classes = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    first, last = part * columns_each, min(size, (part + 1) * columns_each)
    grams, signs, slots, _, numbers = sections(kept, classes, CAPACITY, PARTS)
    number, _, _ = members(slots + (classes + c) * CAPACITY, n, CAPACITY, tl.float32)
    factor = 2.0 * tl.load(upstream).to(tl.float64)
    matrix, reach = gradient_matrix(
        grams, signs, numbers, factor, c, classes, number, n, CAPACITY, ORDERS, UNBIASED, RELATIVE
    )
    of_rows = tl.maximum(tl.max(tl.abs(matrix), 1), 1e-30)
    high, low = halves(matrix / of_rows[:, None], tl.float16 if RELATIVE else source.dtype.element_ty)

    first_source, first_target = first_rows(number, n)
    in_both = (first_source < n) & (first_target < NOWHERE)  # rows of other classes get zeros
    loaded = number < tl.where(in_both, NOWHERE, 0)
    pointers = row_pointers(source, target, number, n, source_stride, target_stride, ALIGNED)
    if RELATIVE:
        origins = references(source, target, number, n, source_stride, target_stride, ALIGNED)
        of_rows *= 1.0 / reach
    gradients = row_pointers(source_gradient, target_gradient, number, n, size, size, ALIGNED)
    written = wanted_rows(number, n, WANTED)
    for start in range(first, last, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        if RELATIVE:
            x = relative_rows(load_with_origins(pointers, origins, columns, loaded, in_both, size, EVEN), origins)
            x, x_low = halves(x * reach, tl.float16)
            result = tl.dot(high, x, tl.dot(high, x_low, tl.dot(low, x)))
        else:
            x = load_half(pointers, columns, loaded, size, EVEN)
            result = tl.dot(high, x, tl.dot(low, x))
        result *= of_rows[:, None]
        mask = written[:, None] if EVEN else written[:, None] & (columns < size)[None, :]
        tl.store(gradients[:, None] + columns[None, :], result.to(source_gradient.dtype.element_ty), mask=mask)
