"""Kernels on small data: distances from Gram matrices, the loss from distances, and back to a matrix.

Everything here is per class or a single number; features are not touched.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: B007, N803

import triton
import triton.language as tl

from .rows import NOWHERE, pair_weights


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
def members(listed, n, CAPACITY: tl.constexpr, TYPE: tl.constexpr):
    """Return the rows of a class, which slots hold source and target rows, and how many of each."""
    number = tl.load(listed + tl.arange(0, CAPACITY))
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
    n,
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
    number, in_source, in_target, n_c, m_c = members(slots + (classes + c) * CAPACITY, n, CAPACITY, tl.float64)
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

    n_c, m_c = tl.maximum(n_c, 1.0), tl.maximum(m_c, 1.0)
    pairs = pair_weights(number, in_source, in_target, number, in_source, in_target, n_c, m_c, UNBIASED)
    diagonal = tl.where(slot[:, None] == slot[None, :], products, 0.0)
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
    weights,
    scale,
    loss,
    terms,
    distances,
    spread,
    by_weights,
    sigmas,
    classes,
    rows,
    weights_row,
    weights_column,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Turn the distances of all classes into the loss, its terms and the coefficients of its gradient; one program."""
    raw_distances, coefficients, counts, energies, _ = parts_of(numbers, classes, ORDERS)
    nothing = tl.zeros((BLOCK,), tl.float64)
    energy, taken, shared, seen = nothing, nothing, nothing, nothing
    for start in range(0, classes, BLOCK):
        c = start + tl.arange(0, BLOCK)
        n_c = tl.load(counts + c, mask=c < classes, other=0.0)
        m_c = tl.load(counts + classes + c, mask=c < classes, other=0.0)
        both = (n_c > 0) & (m_c > 0)
        energy += tl.load(energies + c, mask=c < classes, other=0.0)
        taken += tl.where(both, n_c + m_c, 0.0)
        shared += both.to(tl.float64)
        seen += n_c + m_c
    energy, taken, shared, seen = tl.sum(energy, 0), tl.sum(taken, 0), tl.sum(shared, 0), tl.sum(seen, 0)
    energy = energy / tl.maximum(taken, 1.0)
    tl.store(spread, tl.sqrt(energy).to(tl.float32))
    # A `scale` of 0 means the root of the energy. A row of no class makes everything NaN: no other signal is possible.
    square = tl.where(energy > 0, energy, 1.0)
    if scale is not None:
        given = tl.load(scale).to(tl.float64)
        square = tl.where(given > 0, given * given, square)
    else:
        square = 1.0 + 0.0 * square
    square = tl.where(seen == rows, square, float("nan"))

    total = nothing
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
            defined = tl.minimum(n_c, m_c) >= needed
            distance = tl.load(raw_distances + k * classes + c, mask=inside, other=0.0) * shrink
            distance = tl.where(defined, distance, 0.0)
            weight = tl.where(defined, sigmas[k] / tl.maximum(shared, 1.0), 0.0)
            if weights is not None:
                tl.store(by_weights + k * classes + c, (weight * distance).to(tl.float32), mask=inside)
                weight *= tl.load(weights + k * weights_row + c * weights_column, mask=inside, other=0.0).to(tl.float64)
            tl.store(distances + k * classes + c, distance.to(tl.float32), mask=inside)
            tl.store(coefficients + k * classes + c, weight * shrink, mask=inside)
            term += weight * distance
        tl.store(terms + k, tl.sum(term, 0).to(tl.float32))
        total += term
    tl.store(loss, tl.sum(total, 0).to(tl.float32))


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
    pairs = pair_weights(number, in_source, in_target, number, in_source, in_target, n_c, m_c, UNBIASED)
    if UNBIASED:
        inner = pairs * (inner + (tl.load(coefficients + c) * factor).to(tl.float32))
        member = in_source + in_target
        inner -= member[:, None] * (tl.sum(inner * member[:, None], 0) / (n_c + m_c))[None, :]
    else:
        inner = pairs * inner
        of_source = tl.sum(inner * in_source[:, None], 0) / n_c
        of_target = tl.sum(inner * in_target[:, None], 0) / m_c
        inner -= in_source[:, None] * of_source[None, :] + in_target[:, None] * of_target[None, :]
    return inner
