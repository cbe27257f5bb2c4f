"""Kernel functions on small data: distances from Gram matrices, the loss from distances, and back to a matrix.

Everything here is per class or a single number; features are not touched.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: B007, N803

import triton
import triton.language as tl

from .references import about_one_origin, centred_together, doubly_centred, relative_matrix
from .rows import NOWHERE, apart_factor, pair_weights, sections


@triton.jit
def numbers_of(numbers, classes, ORDERS: tl.constexpr):
    """Return where the parts start among the float64 numbers of all classes.

    Raw distances (1 + orders, C), coefficients (1 + orders, C), rows of each domain (2, C) and energies (C,).
    """
    terms = (1 + len(ORDERS)) * classes
    counts = numbers + 2 * terms
    return numbers, numbers + terms, counts, counts + 2 * classes


@triton.jit
def members(listed, n, CAPACITY: tl.constexpr, TYPE: tl.constexpr):
    """Return the rows of a class, and which slots hold source and target rows."""
    number = tl.load(listed + tl.arange(0, CAPACITY))
    return number, (number < n).to(TYPE), ((number >= n) & (number < NOWHERE)).to(TYPE)


@triton.jit
def _total(matrix):
    """Sum over both dimensions at once."""
    return tl.sum(tl.ravel(matrix), 0)


@triton.jit
def distances_of_class(
    grams,
    signs,
    slots,
    numbers,
    n,
    c,
    classes,
    CAPACITY: tl.constexpr,
    PARTS: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    RELATIVE: tl.constexpr,
):
    """Add up the parts of the Gram matrix of class `c`, centre it and take its powers; all in float64.

    The complete matrix replaces its first part, in float32, for the gradient. RELATIVE: see `references`.
    """
    distances, _, counts, energies = numbers_of(numbers, classes, ORDERS)
    slot = tl.arange(0, CAPACITY)
    number, in_source, in_target = members(slots + (classes + c) * CAPACITY, n, CAPACITY, tl.float64)
    place = c.to(tl.int64) * CAPACITY * CAPACITY + slot[:, None] * CAPACITY + slot[None, :]
    products = tl.zeros((CAPACITY, CAPACITY), tl.float64)
    for part in tl.static_range(PARTS):
        products += tl.load(grams + classes.to(tl.int64) * part * CAPACITY * CAPACITY + place).to(tl.float64)
    tl.debug_barrier()

    both = tl.sum((number < n).to(tl.int32) + 0x10000 * ((number >= n) & (number < NOWHERE)).to(tl.int32), 0)
    n_c, m_c = (both & 0xFFFF).to(tl.float64), (both >> 16).to(tl.float64)
    tl.store(counts + c, n_c)
    tl.store(counts + classes + c, m_c)
    source_rows, target_rows = tl.maximum(n_c, 1.0), tl.maximum(m_c, 1.0)
    source_share, target_share = in_source * (1.0 / source_rows), in_target * (1.0 / target_rows)
    signed = source_share - target_share
    tl.store(signs + c * CAPACITY + slot, signed.to(tl.float32))
    factor = tl.where(in_source > 0, apart_factor(source_rows), apart_factor(target_rows))
    pairs = pair_weights(number, signed, factor, number, signed, UNBIASED)

    if RELATIVE:
        products = about_one_origin(products, number, n)
    if UNBIASED:
        products = centred_together(products, in_source + in_target, tl.maximum(n_c + m_c, 1.0))
        square = _total(pairs * products)
    else:
        square = _total(pairs * products)
        square = tl.where(square < 0.0, 0.0, square)
        products = doubly_centred(products, in_source, in_target, source_share, target_share)
    tl.store(distances + c, square)
    tl.store(grams + place, products.to(tl.float32))
    tl.store(
        energies + c,
        _total(tl.where(slot[:, None] == slot[None, :], products * (in_source + in_target)[:, None], 0.0)),
    )
    for k in tl.static_range(len(ORDERS)):
        power = products
        for step in tl.static_range(ORDERS[k] - 1):  # the compiler reuses powers that orders share
            power = power * products
        tl.store(distances + (k + 1) * classes + c, _total(pairs * power))


@triton.jit
def finish_classes(
    kept,
    loss,
    results,
    sigmas,
    weights,
    weights_row,
    weights_column,
    scale,
    n,
    rows,
    CAPACITY: tl.constexpr,
    PARTS: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    RELATIVE: tl.constexpr,
    BLOCK: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Compute the distances of class `program_id(0)`; the last program to arrive computes the loss.

    It finds everything that the others have written, and sums what is in memory, in order: so it does not matter which
    program it is. BLOCK: how many classes the loss takes together; AT_ONCE: these are all.
    """
    c, classes = tl.program_id(0), tl.num_programs(0)
    grams, signs, slots, filled, numbers = sections(kept, classes, CAPACITY, PARTS)
    distances_of_class(grams, signs, slots, numbers, n, c, classes, CAPACITY, PARTS, ORDERS, UNBIASED, RELATIVE)
    tl.debug_barrier()  # all threads of this program have written
    if tl.atomic_add(filled + classes, 1, sem="acq_rel") == classes - 1:
        weigh(
            numbers, loss, results, sigmas, weights, weights_row, weights_column, scale, classes, rows, ORDERS,
            UNBIASED, BLOCK, AT_ONCE
        )  # fmt: skip


@triton.jit
def weigh(
    numbers,
    loss,
    results,
    sigmas,
    weights,
    weights_row,
    weights_column,
    scale,
    classes,
    rows,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    BLOCK: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Turn the distances of all classes into the loss, its parts and the coefficients of its gradient; one program.

    The results are the distances (1 + orders, C), the terms (1 + orders,), the spread and, if there are weights, the
    derivative of the loss in each of them (1 + orders, C).
    """
    raw_distances, coefficients, counts, energies = numbers_of(numbers, classes, ORDERS)
    terms = results + (1 + len(ORDERS)) * classes
    spread = terms + (1 + len(ORDERS))
    last = 1 if AT_ONCE else classes
    raw = ()  # loaded before anything is stored: the compiler cannot do so by itself
    for k in tl.static_range(len(ORDERS) + 1):
        first = tl.arange(0, BLOCK)
        raw += (tl.load(raw_distances + k * classes + first, mask=first < classes, other=0.0),)
    nothing = tl.zeros((BLOCK,), tl.float64)
    energy, taken, shared, seen = nothing, nothing, nothing, nothing
    for start in range(0, last, BLOCK):
        c = start + tl.arange(0, BLOCK)
        n_c = tl.load(counts + c, mask=c < classes, other=0.0)
        m_c = tl.load(counts + classes + c, mask=c < classes, other=0.0)
        both = (n_c > 0) & (m_c > 0)
        shared += both.to(tl.float64)
        taken += tl.where(both, n_c + m_c, 0.0)
        seen += n_c + m_c
        energy += tl.load(energies + c, mask=c < classes, other=0.0)
    energy, taken, shared, seen = tl.sum(energy, 0), tl.sum(taken, 0), tl.sum(shared, 0), tl.sum(seen, 0)
    energy = energy / tl.where(taken > 0, taken, 1.0)
    tl.store(spread, tl.sqrt(energy).to(tl.float32))
    # A `scale` of 0 means the root of the energy. A row of no class, or one too many for its class, makes everything
    # NaN: no other signal is possible.
    square = tl.where(energy > 0, energy, 1.0)
    if scale is not None:
        divisor = tl.load(scale).to(tl.float64)
        square = tl.where(divisor > 0, divisor * divisor, square)
    else:
        square = 1.0 + 0.0 * square
    square = tl.where(seen == rows, square, float("nan"))

    total = nothing * square  # NaN also if the domains share no class
    of_square, of_shared = 1.0 / square, 1.0 / tl.maximum(shared, 1.0)
    for k in tl.static_range(len(ORDERS) + 1):
        shrink = of_square
        if k > 0:
            for step in tl.static_range(ORDERS[k - 1] - 1):
                shrink *= of_square
            needed = 3 if (ORDERS[k - 1] % 2 == 1) and not UNBIASED else 2  # rows, as in `term_shares`
        else:
            needed = 1
        term = nothing
        for start in range(0, last, BLOCK):
            c = start + tl.arange(0, BLOCK)
            inside = c < classes
            n_c = tl.load(counts + c, mask=inside, other=0.0)
            m_c = tl.load(counts + classes + c, mask=inside, other=0.0)
            defined = tl.minimum(n_c, m_c) >= needed
            distance = raw[k] if AT_ONCE else tl.load(raw_distances + k * classes + c, mask=inside, other=0.0)
            distance = tl.where(defined, distance * shrink, 0.0)
            weight = tl.where(defined, sigmas[k] * of_shared, 0.0)
            if weights is not None:
                slopes = spread + 1 + k * classes
                tl.store(slopes + c, (weight * distance).to(tl.float32), mask=inside)
                zeta = tl.load(weights + k * weights_row + c * weights_column, mask=inside, other=1.0)
                weight *= zeta.to(tl.float64)
            tl.store(results + k * classes + c, distance.to(tl.float32), mask=inside)
            tl.store(coefficients + k * classes + c, weight * shrink, mask=inside)
            term += weight * distance
        tl.store(terms + k, tl.sum(term, 0).to(tl.float32))
        total += term
    tl.store(loss, tl.sum(total, 0).to(tl.float32))


@triton.jit
def gradient_matrix(
    grams,
    signs,
    numbers,
    factor,
    c,
    classes,
    number,
    n,
    CAPACITY: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    RELATIVE: tl.constexpr,
):
    """The matrix that turns rows as they were loaded into their gradient (`_gradient_matrix` of `gram`), in float32.

    Also returns a factor that brings these rows into the reach of float16. Products are first scaled to at most 1, so
    that no power overflows float32 unless the gradient itself does.
    """
    distances, coefficients, _, _ = numbers_of(numbers, classes, ORDERS)
    slot = tl.arange(0, CAPACITY)
    products = tl.load(grams + c.to(tl.int64) * CAPACITY * CAPACITY + slot[:, None] * CAPACITY + slot[None, :])
    signed = tl.load(signs + c * CAPACITY + slot)
    largest = tl.maximum(tl.max(tl.max(tl.abs(products), 1), 0), 1e-30)
    products = products / largest
    largest = largest.to(tl.float64)
    inner = tl.zeros((CAPACITY, CAPACITY), tl.float32)
    for k in tl.static_range(len(ORDERS)):
        coefficient = tl.load(coefficients + (k + 1) * classes + c) * factor * ORDERS[k] * largest
        power = products
        for step in tl.static_range(ORDERS[k] - 2):
            power = power * products
            coefficient *= largest
        inner += coefficient.to(tl.float32) * power
    in_source, in_target = (number < n).to(tl.float32), ((number >= n) & (number < NOWHERE)).to(tl.float32)
    of_means, apart_rows = (tl.load(coefficients + c) * factor).to(tl.float32), signed
    if UNBIASED:
        n_c, m_c = tl.sum(in_source, 0), tl.sum(in_target, 0)
        apart_rows = tl.where(in_source > 0, apart_factor(n_c), apart_factor(m_c))
        inner += of_means
    inner *= pair_weights(number, signed, apart_rows, number, signed, UNBIASED)
    # A row is at most √largest from the mean of its class and domain, and from another as far as the two means at most.
    reach = 2.0 * tl.sqrt(largest)
    if UNBIASED:
        inner = centred_together(inner, in_source + in_target, tl.maximum(n_c + m_c, 1.0))
    else:
        source_share, target_share = tl.maximum(signed, 0.0), tl.maximum(-signed, 0.0)
        inner = doubly_centred(inner, source_share, target_share, in_source, in_target)
        reach += tl.sqrt(tl.load(distances + c))
    matrix = relative_matrix(inner, signed * of_means, signed, number, n, UNBIASED, RELATIVE)
    return matrix, (2.0**15 / reach).to(tl.float32)
