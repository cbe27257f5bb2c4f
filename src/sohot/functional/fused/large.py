"""Classes with more rows than one program holds: the same sums by tiles of the Gram matrix, one program per class.

Only the device knows which classes these are. The sums are correct for any number of rows and fast for a few tiles; if
all classes are large, the plain products of `gram` are better.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: B007, N803

import triton
import triton.language as tl

from .distances import parts_of
from .rows import NOWHERE, also_absent, find_rows, load_rows, row_pointers, wanted_rows
from .tiles import centred_tile, first_place, rows_of_tile, tile_pair, weigh_class, weights_of_tile
from .weights import given_weights, positive, totals_of

BLOCK = tl.constexpr(32)  # columns per step
LABELS = tl.constexpr(256)  # labels read per step


@triton.jit
def large_distances(
    source,
    target,
    labelled,
    kept,
    n,
    m,
    size,
    source_stride,
    target_stride,
    one,
    c,
    classes,
    CAPACITY: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
):
    """List the rows of large class `c`, take their means, and sum the powers of its Gram matrix over all tiles."""
    slots, _, means, numbers, _, row_numbers = kept
    of_rows = labelled[2], labelled[3]
    filled = slots + 2 * classes * CAPACITY
    rows = tl.load(filled + c)
    distances, _, counts, energies = parts_of(numbers, classes, ORDERS)
    listed = filled + classes + first_place(filled, c, LABELS)
    _, found = find_rows(labelled, listed, c, n, m, rows, LABELS, False)
    tl.debug_barrier()
    tiles = tl.cdiv(rows, CAPACITY)
    n_c = found.to(tl.float32)
    m_c = (rows - found).to(tl.float32)
    if row_numbers is not None:
        n_c, m_c = weigh_class(
            listed, rows, tiles, of_rows, row_numbers, c, classes, n, CAPACITY
        )  # fmt: skip
        tl.debug_barrier()
    tl.store(counts + c, n_c.to(tl.float64))
    tl.store(counts + classes + c, m_c.to(tl.float64))
    for k in tl.static_range(len(ORDERS)):
        tl.store(distances + (k + 1) * classes + c, 0.0)
    shared = (n_c > 0) & (m_c > 0)
    tiles, columns_summed = tl.where(shared, tiles, 0), tl.where(shared, size, 0)

    # U-statistics are centred on the mean of all rows without weights, see `gram`.
    source_total, target_total = n_c, m_c
    if row_numbers is not None and not UNBIASED:
        source_total, target_total, _, _ = totals_of(row_numbers, c, classes, n_c, m_c, tl.float32)
    means += c.to(tl.int64) * size
    other_means = means + classes.to(tl.int64) * size
    squares = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, columns_summed, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        source_sum = tl.zeros((BLOCK,), tl.float32)
        target_sum = tl.zeros((BLOCK,), tl.float32)
        for tile in range(tiles):
            number, in_source, in_target = rows_of_tile(listed, rows, tile, n, CAPACITY)
            if not UNBIASED:
                in_source, in_target = weights_of_tile(
                    number, in_source, in_target, of_rows, row_numbers, c, classes, n
                )
            pointers = row_pointers(source, target, number, n, source_stride, target_stride, False)
            x = load_rows(pointers, columns, number < NOWHERE, size, False)
            source_sum += tl.sum(x * in_source[:, None], 0)
            target_sum += tl.sum(x * in_target[:, None], 0)
        tl.store(means + columns, source_sum / source_total, mask=columns < size)
        tl.store(other_means + columns, target_sum / target_total, mask=columns < size)
        difference = (source_sum / source_total - target_sum / target_total).to(tl.float64)
        squares += difference * difference
    tl.debug_barrier()

    energy = tl.zeros((CAPACITY,), tl.float64)
    if row_numbers is not None:
        source_largest, target_largest = tl.load(row_numbers + 6 * classes + c), tl.load(row_numbers + 7 * classes + c)
        largest = positive(tl.maximum(source_largest, target_largest))
    if UNBIASED:
        squares = tl.zeros((CAPACITY,), tl.float64)
    for tile in range(tiles * tiles):
        products, pairs, number, others, _sources, _targets = tile_pair(
            source, target, listed, rows, tile, means, other_means, n_c, m_c, of_rows, row_numbers, c, classes, n,
            size, source_stride, target_stride, one, CAPACITY, BLOCK, UNBIASED
        )  # fmt: skip
        same = (number[:, None] == others[None, :]) & (number < NOWHERE)[:, None]
        own_products = tl.where(same, products, 0.0)
        if row_numbers is not None:
            of_energy = given_weights(number, of_rows, n)
            own_products *= (of_energy / largest)[:, None]
        energy += tl.sum(own_products, 1)
        if UNBIASED:
            squares += tl.sum(pairs * products, 1)
        for k in tl.static_range(len(ORDERS)):
            power = products
            for step in tl.static_range(ORDERS[k] - 1):
                power = power * products
            term = tl.sum(tl.sum(pairs * power, 1), 0)
            # Summed in memory: no other program touches this number.
            so_far = tl.load(distances + (k + 1) * classes + c)
            tl.store(distances + (k + 1) * classes + c, so_far + term)
            tl.debug_barrier()
    tl.store(energies + c, tl.sum(energy, 0))
    tl.store(distances + c, tl.sum(squares, 0))


@triton.jit
def large_gradient(
    source,
    target,
    of_rows,
    kept,
    upstream,
    source_gradient,
    target_gradient,
    n,
    size,
    source_stride,
    target_stride,
    one,
    c,
    classes,
    CAPACITY: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    WANTED: tl.constexpr,
):
    """Write the gradient for the rows of large class `c`: tile by tile, then subtract its mean in each domain.

    WANTED: 1 for the source, 2 for the target, 3 for both.
    """
    slots, _, means, numbers, _, row_numbers = kept
    filled = slots + 2 * classes * CAPACITY
    rows = tl.load(filled + c)
    _, coefficients, counts, _ = parts_of(numbers, classes, ORDERS)
    listed = filled + classes + first_place(filled, c, LABELS)
    n_c, m_c = tl.load(counts + c).to(tl.float32), tl.load(counts + classes + c).to(tl.float32)
    tiles = tl.cdiv(rows, CAPACITY)
    shared = (n_c > 0) & (m_c > 0)
    means += c.to(tl.int64) * size
    other_means = means + classes.to(tl.int64) * size
    factor = 2.0 * tl.load(upstream).to(tl.float64)
    for tile in range(tl.where(shared, tiles * tiles, 0)):
        products, pairs, number, others, other_sources, other_targets = tile_pair(
            source, target, listed, rows, tile, means, other_means, n_c, m_c, of_rows, row_numbers, c, classes, n,
            size, source_stride, target_stride, one, CAPACITY, BLOCK, UNBIASED
        )  # fmt: skip
        inner = 0.0 * products
        if UNBIASED:
            inner += tl.load(coefficients + c)
        for k in tl.static_range(len(ORDERS)):
            power = tl.load(coefficients + (k + 1) * classes + c) * ORDERS[k] * products
            for step in tl.static_range(ORDERS[k] - 2):
                power = power * products
            inner += power
        inner *= factor * pairs
        pointers = row_pointers(source, target, others, n, source_stride, target_stride, False)
        number, _sources, _targets = rows_of_tile(listed, rows, tile // tiles, n, CAPACITY)
        written = also_absent(number)  # rows of weight 0 get zeros
        gradients = row_pointers(source_gradient, target_gradient, written, n, size, size, False)
        out = wanted_rows(written, n, WANTED)
        for start in range(0, size, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = centred_tile(
                pointers, others, other_sources, other_targets, means, other_means, columns, n_c, m_c, size, UNBIASED
            )
            result = tl.dot(inner.to(tl.float32), x, input_precision="tf32x3")
            mask = out[:, None] & (columns < tl.where(tile % tiles > 0, size, 0))[None, :]
            places = gradients[:, None] + columns[None, :]
            result += tl.load(places, mask=mask, other=0.0).to(tl.float32)
            mask = out[:, None] & (columns < size)[None, :]
            tl.store(places, result.to(source_gradient.dtype.element_ty), mask=mask)
        tl.debug_barrier()

    weight = (factor * tl.load(coefficients + c)).to(tl.float32)
    source_total, target_total, _, _ = totals_of(
        row_numbers, c, classes, tl.maximum(n_c, 1.0), tl.maximum(m_c, 1.0), tl.float32
    )
    for start in range(0, size, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        source_sum = tl.zeros((BLOCK,), tl.float32)
        target_sum = tl.zeros((BLOCK,), tl.float32)
        inside = columns < tl.where(shared, size, 0)
        for tile in range(tiles):
            number, in_source, in_target = rows_of_tile(listed, rows, tile, n, CAPACITY)
            gradients = row_pointers(source_gradient, target_gradient, number, n, size, size, False)
            mask = wanted_rows(number, n, WANTED)[:, None] & inside[None, :]
            result = tl.load(gradients[:, None] + columns[None, :], mask=mask, other=0.0).to(tl.float32)
            source_sum += tl.sum(result * in_source[:, None], 0)
            target_sum += tl.sum(result * in_target[:, None], 0)
        tl.debug_barrier()
        if UNBIASED:
            source_mean = (source_sum + target_sum) / tl.maximum(n_c + m_c, 1.0)
            target_mean = source_mean
        else:
            source_mean, target_mean = source_sum / source_total, target_sum / target_total
            difference = tl.load(means + columns, mask=inside, other=0.0)
            difference -= tl.load(other_means + columns, mask=inside, other=0.0)
            source_mean -= difference * (weight / source_total)
            target_mean += difference * (weight / target_total)
        for tile in range(tiles):
            number, in_source, in_target = rows_of_tile(listed, rows, tile, n, CAPACITY)
            written = also_absent(number)
            gradients = row_pointers(source_gradient, target_gradient, written, n, size, size, False)
            out = wanted_rows(written, n, WANTED)
            if not UNBIASED:
                in_source, in_target = weights_of_tile(
                    number, in_source, in_target, of_rows, row_numbers, c, classes, n
                )
            places = gradients[:, None] + columns[None, :]
            result = tl.load(places, mask=out[:, None] & inside[None, :], other=0.0).to(tl.float32)
            result -= in_source[:, None] * source_mean[None, :] + in_target[:, None] * target_mean[None, :]
            mask = out[:, None] & (columns < size)[None, :]
            tl.store(places, result.to(source_gradient.dtype.element_ty), mask=mask)
