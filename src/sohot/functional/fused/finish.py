"""What follows the Gram matrices: the distances of each class and, in the last program to arrive, the loss.

That program finds everything that the others have written, and puts the counter back to zero for the next launch. It
sums what is in memory, in order, so it does not matter which program it is.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import triton
import triton.language as tl

from .distances import distances_of_class, weigh
from .large import large_distances


@triton.jit
def is_last(counter, programs):
    """Whether all other programs have been here; the last resets the counter."""
    tl.debug_barrier()  # all threads of this program have written
    last = tl.atomic_add(counter, 1, sem="acq_rel") == programs - 1
    if last:
        tl.store(counter, 0)
    return last


@triton.jit
def finish_classes(
    source,
    target,
    labelled,
    kept,
    counters,
    results,
    weighing,
    n,
    m,
    size,
    source_stride,
    target_stride,
    one,
    CAPACITY: tl.constexpr,
    PARTS: tl.constexpr,
    ORDERS: tl.constexpr,
    UNBIASED: tl.constexpr,
    RELATIVE: tl.constexpr,
    LARGE: tl.constexpr,
    CLASSES: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Compute the distances of class `program_id(0)`; after the last class, the loss.

    LARGE: a class may have more than CAPACITY rows. CLASSES: how many the loss takes together; AT_ONCE: these are all.
    """
    c, classes = tl.program_id(0), tl.num_programs(0)
    slots, _, _, numbers, _, row_numbers = kept
    is_large = tl.load(slots + 2 * classes * CAPACITY + c) > CAPACITY
    if LARGE and is_large:
        large_distances(
            source, target, labelled, kept, n, m, size, source_stride, target_stride, one, c, classes, CAPACITY,
            ORDERS, UNBIASED
        )  # fmt: skip
    else:
        of_rows = labelled[2], labelled[3]
        distances_of_class(kept, of_rows, n, c, classes, CAPACITY, PARTS, ORDERS, UNBIASED, RELATIVE)
    if is_last(counters, classes):
        weigh(numbers, results, weighing, row_numbers, classes, n + m, ORDERS, UNBIASED, CLASSES, AT_ONCE)
