"""Kernels on small data: distances from Gram matrices, the loss from distances, and back to a matrix.

Everything here is per class or a single number; features are not touched.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: B007, N803

import triton
import triton.language as tl

from .rows import NOWHERE, pair_weights
from .weights import apart_factor, store_weights, totals_of, weights_of, without_absent
from .zeta import class_weights, move_scale


@triton.jit
def parts_of(numbers, classes, ORDERS: tl.constexpr):
    """Return where the parts start among the float64 numbers of all classes.

    Raw distances (1 + orders, C), coefficients (1 + orders, C), rows of each domain (2, C), energies (C,), and the
    squared distances of the means by part of the columns (parts, C).
    """
    terms = (1 + len(ORDERS)) * classes
    counts = numbers + 2 * terms
    return numbers, numbers + terms, counts, counts + 2 * classes, counts + 3 * classes


@triton.jit
def members(listed, n, row_weights, CAPACITY: tl.constexpr, TYPE: tl.constexpr):
    """Return the rows of a class, which slots hold source and target rows, and how many of each."""
    number = without_absent(tl.load(listed + tl.arange(0, CAPACITY)), row_weights)
    in_source, in_target = (number < n).to(TYPE), ((number >= n) & (number < NOWHERE)).to(TYPE)
    return number, in_source, in_target, tl.sum(in_source, 0), tl.sum(in_target, 0)


@triton.jit
def _total(matrix):
    """Sum over both dimensions at once."""
    return tl.sum(tl.ravel(matrix), 0)


@triton.jit
def distances_of_class(
    grams,
    slots,
    numbers,
    row_weights,
    row_numbers,
    n,
    all_rows,
    CAPACITY: tl.constexpr,
    PARTS: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
):
    """Add up the parts of the Gram matrix of class `program_id(0)` and take its powers; all in float64.

    The complete matrix replaces its first part, in float32, for the gradient.
    """
    c, classes = tl.program_id(0), tl.num_programs(0)
    distances, _, counts, energies, mean_squares = parts_of(numbers, classes, ORDERS)
    slot = tl.arange(0, CAPACITY)
    listed = slots + (classes + c) * CAPACITY
    number, in_source, in_target, n_c, m_c = members(listed, n, row_weights, CAPACITY, tl.float64)
    tl.store(counts + c, n_c)
    tl.store(counts + classes + c, m_c)
    place = c.to(tl.int64) * CAPACITY * CAPACITY + slot[:, None] * CAPACITY + slot[None, :]
    products = tl.zeros((CAPACITY, CAPACITY), tl.float64)
    square = tl.full((), 0, tl.float64)
    for part in tl.static_range(PARTS):
        products += tl.load(grams + classes.to(tl.int64) * part * CAPACITY * CAPACITY + place).to(tl.float64)
        square += tl.load(mean_squares + part * classes + c)
    if PARTS > 1:
        tl.debug_barrier()
        tl.store(grams + place, products.to(tl.float32))

    of_source, of_target = weights_of(number, in_source, in_target, row_weights, tl.float64)
    diagonal = tl.where(slot[:, None] == slot[None, :], products, 0.0)
    if row_weights is None:
        source_total, target_total = tl.maximum(n_c, 1.0), tl.maximum(m_c, 1.0)
        source_rows, target_rows = source_total, target_total
    else:
        of_energy = tl.load(row_weights + all_rows + number, mask=number < NOWHERE, other=0.0).to(tl.float64)
        diagonal *= of_energy[:, None]
        source_total, target_total = tl.sum(of_source, 0), tl.sum(of_target, 0)
        source_rows, target_rows = store_weights(
            row_numbers,
            c,
            classes,
            (source_total, tl.sum(of_source * of_source, 0)),
            (target_total, tl.sum(of_target * of_target, 0)),
            tl.where((n_c > 0) & (m_c > 0), tl.sum(of_energy, 0), 0.0),
            tl.load(slots + 2 * classes * CAPACITY + c).to(tl.float64),
        )
        source_total = tl.where(source_total > 0, source_total, 1.0)
        target_total = tl.where(target_total > 0, target_total, 1.0)
    factors = apart_factor(source_rows), apart_factor(target_rows)
    pairs = pair_weights(
        number, of_source, of_target, number, of_source, of_target, source_total, target_total, factors[0], factors[1],
        UNBIASED
    )  # fmt: skip
    tl.store(energies + c, _total(diagonal))
    if UNBIASED:
        tl.store(distances + c, _total(pairs * products))
    else:
        tl.store(distances + c, square)
    for k in tl.static_range(len(ORDERS)):
        power = products
        for step in tl.static_range(ORDERS[k] - 1):  # the compiler reuses powers that orders share
            power = power * products
        tl.store(distances + (k + 1) * classes + c, _total(pairs * power))


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
):
    """Turn the distances of all classes into the loss, its terms and the coefficients of its gradient; one program."""
    loss, terms, distances, spread, divisor, by_weights, used_weights = results
    sigmas, _, _, _, scale, momentum, _, _, full_rows, scatter_rows = weighing
    raw_distances, coefficients, counts, energies, _ = parts_of(numbers, classes, ORDERS)
    nothing = tl.zeros((BLOCK,), tl.float64)
    energy, taken, shared, seen = nothing, nothing, nothing, nothing
    for start in range(0, classes, BLOCK):
        c = start + tl.arange(0, BLOCK)
        n_c = tl.load(counts + c, mask=c < classes, other=0.0)
        m_c = tl.load(counts + classes + c, mask=c < classes, other=0.0)
        both = (n_c > 0) & (m_c > 0)
        energy += tl.load(energies + c, mask=c < classes, other=0.0)
        shared += both.to(tl.float64)
        if row_numbers is None:
            taken += tl.where(both, n_c + m_c, 0.0)
            seen += n_c + m_c
        else:
            taken += tl.load(row_numbers + 4 * classes + c, mask=c < classes, other=0.0)
            seen += tl.load(row_numbers + 5 * classes + c, mask=c < classes, other=0.0)
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
    for k in tl.static_range(len(ORDERS) + 1):
        shrink = 1.0 / square
        if k > 0:
            for step in tl.static_range(ORDERS[k - 1] - 1):
                shrink = shrink / square
            needed = 3 if (ORDERS[k - 1] % 2 == 1) and not UNBIASED else 2  # rows, as in `term_shares`
        else:
            needed = 1
        term = nothing
        for start in range(0, classes, BLOCK):
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
            distance = tl.load(raw_distances + k * classes + c, mask=inside, other=0.0) * shrink
            distance = tl.where(defined, distance, 0.0)
            weight = tl.where(defined, sigmas[k] / tl.maximum(shared, 1.0), 0.0)
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
    products,
    coefficients,
    factor,
    c,
    classes,
    number,
    in_source,
    in_target,
    n_c,
    m_c,
    of_source,
    of_target,
    row_numbers,
    CAPACITY: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
):
    """The matrix that turns centred rows into their gradient (`_gradient_matrix` of `gram`), in float32.

    Products are first scaled to at most 1, so that no power overflows float32 unless the gradient itself does.
    """
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
    source_total, target_total, source_factor, target_factor = totals_of(row_numbers, c, classes, n_c, m_c, tl.float32)
    pairs = pair_weights(
        number, of_source, of_target, number, of_source, of_target, source_total, target_total, source_factor,
        target_factor, UNBIASED
    )  # fmt: skip
    if UNBIASED:
        inner = pairs * (inner + (tl.load(coefficients + c) * factor).to(tl.float32))
        member = in_source + in_target
        inner -= member[:, None] * (tl.sum(inner * member[:, None], 0) / (n_c + m_c))[None, :]
    else:
        inner = pairs * inner
        by_source = tl.sum(inner * in_source[:, None], 0) / source_total
        by_target = tl.sum(inner * in_target[:, None], 0) / target_total
        inner -= of_source[:, None] * by_source[None, :] + of_target[:, None] * by_target[None, :]
    return inner, of_source / source_total - of_target / target_total
