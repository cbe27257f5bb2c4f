"""Kernel functions on small data: distances from Gram matrices, the loss from distances, and back to a matrix.

Everything here is per class or a single number; features are not touched.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: B007, N803

import triton
import triton.language as tl

from .references import about_one_origin, centred_together, doubly_centred, relative_matrix
from .rows import NOWHERE, pair_weights
from .weights import apart_factors, given_weights, positive, relative_weights, store_weights, totals_of
from .zeta import class_weights, move_scale


@triton.jit
def parts_of(numbers, classes, ORDERS: tl.constexpr):
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
    kept,
    of_rows,
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
    slots, grams, _, numbers, signs, row_numbers = kept
    distances, _, counts, energies = parts_of(numbers, classes, ORDERS)
    slot = tl.arange(0, CAPACITY)
    listed = slots + (classes + c) * CAPACITY
    number, in_source, in_target = members(listed, n, CAPACITY, tl.float64)
    place = c.to(tl.int64) * CAPACITY * CAPACITY + slot[:, None] * CAPACITY + slot[None, :]
    products = tl.zeros((CAPACITY, CAPACITY), tl.float64)
    for part in tl.static_range(PARTS):
        products += tl.load(grams + classes.to(tl.int64) * part * CAPACITY * CAPACITY + place).to(tl.float64)
    tl.debug_barrier()

    both = tl.sum((number < n).to(tl.int32) + 0x10000 * ((number >= n) & (number < NOWHERE)).to(tl.int32), 0)
    n_c, m_c = (both & 0xFFFF).to(tl.float64), (both >> 16).to(tl.float64)
    tl.store(counts + c, n_c)
    tl.store(counts + classes + c, m_c)
    of_source, of_target, of_energy = in_source, in_target, in_source + in_target
    source_total, target_total = tl.maximum(n_c, 1.0), tl.maximum(m_c, 1.0)
    source_rows, target_rows = source_total, target_total
    if row_numbers is not None:
        weights = given_weights(number, of_rows, n)
        source_largest, target_largest = tl.max(weights * in_source, 0), tl.max(weights * in_target, 0)
        relative = relative_weights(weights, in_source, source_largest, target_largest)
        of_source, of_target = in_source * relative, in_target * relative
        of_energy *= weights / positive(tl.maximum(source_largest, target_largest))
        source_total, target_total = tl.sum(of_source, 0), tl.sum(of_target, 0)
        source_rows, target_rows = store_weights(
            row_numbers,
            c,
            classes,
            (source_total, tl.sum(of_source * of_source, 0), source_largest),
            (target_total, tl.sum(of_target * of_target, 0), target_largest),
            tl.where((n_c > 0) & (m_c > 0), tl.sum(of_energy, 0), 0.0),
            tl.load(slots + 2 * classes * CAPACITY + c).to(tl.float64),
        )
        source_total, target_total = positive(source_total), positive(target_total)
    source_share, target_share = of_source * (1.0 / source_total), of_target * (1.0 / target_total)
    signed = source_share - target_share
    tl.store(signs + c * CAPACITY + slot, signed.to(tl.float32))
    factor = apart_factors(in_source, source_rows, target_rows, tl.float64)
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
    tl.store(energies + c, _total(tl.where(slot[:, None] == slot[None, :], products * of_energy[:, None], 0.0)))
    for k in tl.static_range(len(ORDERS)):
        power = products
        for step in tl.static_range(ORDERS[k] - 1):  # the compiler reuses powers that orders share
            power = power * products
        tl.store(distances + (k + 1) * classes + c, _total(pairs * power))


@triton.jit
def largest_of_class(row_numbers, c, classes):
    """Return the largest weights of the rows of some classes."""
    of_source = tl.load(row_numbers + 6 * classes + c, mask=c < classes, other=0.0)
    of_target = tl.load(row_numbers + 7 * classes + c, mask=c < classes, other=0.0)
    return tl.maximum(of_source, of_target)


@triton.jit
def weigh(
    numbers,
    results,
    weighing,
    row_numbers,
    classes,
    rows,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    BLOCK: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Turn the distances of all classes into the loss, its terms and the coefficients of its gradient; one program.

    AT_ONCE: all classes are in one block.
    """
    loss, terms, distances, spread, divisor, by_weights, used_weights = results
    sigmas, _, _, _, scale, momentum, _, _, full_rows, scatter_rows = weighing
    raw_distances, coefficients, counts, energies = parts_of(numbers, classes, ORDERS)
    last = 1 if AT_ONCE else classes
    raw = ()  # loaded before anything is stored: the compiler cannot do so by itself
    for k in tl.static_range(len(ORDERS) + 1):
        first = tl.arange(0, BLOCK)
        raw += (tl.load(raw_distances + k * classes + first, mask=first < classes, other=0.0),)
    nothing = tl.zeros((BLOCK,), tl.float64)
    energy, taken, shared, seen = nothing, nothing, nothing, nothing
    largest = tl.full((), 1.0, tl.float64)
    if row_numbers is not None:
        most = nothing
        for start in range(0, last, BLOCK):
            most = tl.maximum(most, largest_of_class(row_numbers, start + tl.arange(0, BLOCK), classes))
        largest = positive(tl.max(most, 0))
    for start in range(0, last, BLOCK):
        c = start + tl.arange(0, BLOCK)
        n_c = tl.load(counts + c, mask=c < classes, other=0.0)
        m_c = tl.load(counts + classes + c, mask=c < classes, other=0.0)
        both = (n_c > 0) & (m_c > 0)
        of_energy = tl.load(energies + c, mask=c < classes, other=0.0)
        shared += both.to(tl.float64)
        if row_numbers is None:
            taken += tl.where(both, n_c + m_c, 0.0)
            seen += n_c + m_c
        else:
            share = largest_of_class(row_numbers, c, classes) / largest
            of_energy *= share
            of_rows = tl.load(row_numbers + 4 * classes + c, mask=c < classes, other=0.0)
            taken += of_rows * share
            seen += tl.load(row_numbers + 5 * classes + c, mask=c < classes, other=0.0)
        energy += of_energy
    energy, taken, shared, seen = tl.sum(energy, 0), tl.sum(taken, 0), tl.sum(shared, 0), tl.sum(seen, 0)
    energy = energy / tl.where(taken > 0, taken, 1.0)
    own_scale = tl.sqrt(energy).to(tl.float32)
    tl.store(spread, own_scale)
    # A `scale` of 0 means the root of the energy. A row of no class makes everything NaN: no other signal is possible.
    square = tl.where(energy > 0, energy, 1.0)
    if scale is not None:
        given = tl.load(scale).to(tl.float64)
        square = tl.where(given > 0, given * given, square)
        if momentum is not None:
            move_scale(scale, given, own_scale.to(tl.float64), momentum)
    else:
        square = 1.0 + 0.0 * square
    tl.store(divisor, tl.sqrt(square))
    square = tl.where(seen == rows, square, float("nan"))

    total, penalties = nothing, nothing
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
            effective = tl.minimum(n_c, m_c)
            defined = effective >= needed
            if row_numbers is not None:
                source_rows = tl.load(row_numbers + 2 * classes + c, mask=inside, other=0.0)
                target_rows = tl.load(row_numbers + 3 * classes + c, mask=inside, other=0.0)
                effective = tl.minimum(source_rows, target_rows)
            if k > 0:
                defined = defined & ((effective >= scatter_rows) | (scatter_rows <= 1.0))
            distance = raw[k] if AT_ONCE else tl.load(raw_distances + k * classes + c, mask=inside, other=0.0)
            distance = tl.where(defined, distance * shrink, 0.0)
            weight = tl.where(defined, sigmas[k] * of_shared, 0.0)
            weight *= tl.where(full_rows > 1.0, tl.minimum(effective / full_rows, 1.0), 1.0)
            zeta, penalty = class_weights(k, c, classes, weight, distance, weighing, by_weights, used_weights)
            weight *= zeta
            penalties += penalty
            tl.store(distances + k * classes + c, distance.to(tl.float32), mask=inside)
            tl.store(coefficients + k * classes + c, weight * shrink, mask=inside)
            term += weight * distance
        tl.store(terms + k, tl.sum(term, 0).to(tl.float32))
        total += term
    tl.store(terms + len(ORDERS) + 1, tl.sum(penalties, 0).to(tl.float32))
    tl.store(loss, tl.sum(total + penalties, 0).to(tl.float32))


@triton.jit
def gradient_matrix(
    kept,
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
    _, grams, _, numbers, signs, row_numbers = kept
    _, coefficients, _, _ = parts_of(numbers, classes, ORDERS)
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
        _, _, source_rows, target_rows = totals_of(row_numbers, c, classes, n_c, m_c, tl.float32)
        apart_rows = apart_factors(in_source, source_rows, target_rows, tl.float32)
        inner += of_means
    inner *= pair_weights(number, signed, apart_rows, number, signed, UNBIASED)
    # A row is at most √largest from the mean of its class and domain, and from another as far as the two means at most.
    reach = 2.0 * tl.sqrt(largest)
    if UNBIASED:
        inner = centred_together(inner, in_source + in_target, tl.maximum(n_c + m_c, 1.0))
    else:
        source_share, target_share = tl.maximum(signed, 0.0), tl.maximum(-signed, 0.0)
        inner = doubly_centred(inner, source_share, target_share, in_source, in_target)
        reach += tl.sqrt(tl.load(numbers + c))  # the first numbers are the squared distances of the means
    matrix = relative_matrix(inner, signed * of_means, signed, number, n, UNBIASED, RELATIVE)
    return matrix, (2.0**15 / reach).to(tl.float32)
