"""Launch the kernels, forward and backward, without waiting for the device."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..terms import NO_MORE, RowsNeeded
from .layout import Layout, are_aligned, choose_layout, columns_each, power_of_two, processors

MOST_KERNELS = 1024
_compiled: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}


def launch(
    kernel: Any, grid: tuple[int, int, int], key: Hashable, arguments: tuple[Any, ...], **constants: Any
) -> None:
    """Launch a kernel on the current stream.

    Args:
        kernel: A function under `triton.jit` whose constants come last.
        grid: Number of programs.
        key: Equal only if types, alignments, sizes and constants (all that a kernel is compiled for) are equal.
        arguments: All its arguments except the constants, in order.
        constants: Its constants and compiler options.
    """
    name = id(kernel), key  # kernels live as long as their modules; hashing one takes longer than a launch
    found = _compiled.get(name)
    if found is not None:
        compiled, values = found
        compiled[grid](*arguments, *values)
        return
    compiled = kernel[grid](*arguments, **constants)
    if compiled is None:  # interpreted
        return
    if len(_compiled) >= MOST_KERNELS:  # ever-changing batch sizes: start over; the kernels themselves stay cached
        _compiled.clear()
    _compiled[name] = compiled, tuple(constants[name] for name in kernel.arg_names[len(arguments) :])


LABELS_AT_ONCE = 256
FEW_COLUMNS = 512
LARGE_BLOCK = 32  # columns per step for classes with more rows than a program holds


class Batch(NamedTuple):
    """Rows of both domains, their classes and their weights."""

    source: Tensor
    source_labels: Tensor
    target: Tensor
    target_labels: Tensor
    row_weights: Tensor | None  # (2, n + m), see `weights`; None for equal weights


class Saved(NamedTuple):
    """What the gradient needs besides the features."""

    slots: Tensor  # int32: rows of each class as found and sorted, both (C, capacity); counts (C,); a list (n + m,)
    grams: Tensor  # (parts, C, capacity, capacity), the total in the first
    means: Tensor  # (2, C, d) of each class, source and target
    numbers: Tensor  # float64 (…, C), see `parts_of`
    by_weights: Tensor  # (1 + orders, C) derivative of the loss in each weight; empty without weights
    row_weights: Tensor  # (2, n + m), as in `Batch`; empty for equal weights
    row_numbers: Tensor  # float64 (6, C), see `store_weights`; empty for equal weights

    @property
    def weighting(self) -> tuple[Tensor, Tensor] | tuple[None, None]:
        """Weights of rows and their sums, if there are any."""
        return (self.row_weights, self.row_numbers) if self.row_weights.numel() else (None, None)


def launch_forward(
    batch: Batch,
    weights: Tensor | None,
    scale: Tensor | None,
    sigmas: list[float],
    orders: list[int],
    unbiased: bool,
    classes: int,
    needed: RowsNeeded = NO_MORE,
    layout: Layout | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Saved]:
    """Compute the fields of `functional.alignment.Alignment`, and what the gradient needs."""
    rows, (_, size), device = len(batch.source) + len(batch.target), batch.source.shape, batch.source.device
    if layout is None:
        layout = choose_layout(rows, classes, size, processors(device))
    capacity, terms = layout.capacity, len(sigmas)
    new_slots = torch.empty if layout.scan else torch.zeros
    saved = Saved(
        new_slots(classes * (2 * capacity + 1) + rows, dtype=torch.int32, device=device),
        _floats(device, layout.parts, classes, capacity, capacity),
        _floats(device, 2, classes, size),
        torch.empty(2 * terms + 3 + layout.parts, classes, dtype=torch.float64, device=device),
        _floats(device, *((0,) if weights is None else (terms, classes))),
        _floats(device, 0) if batch.row_weights is None else batch.row_weights,
        torch.empty((0, 0) if batch.row_weights is None else (6, classes), dtype=torch.float64, device=device),
    )
    key = _key(layout, tuple(orders), unbiased, *batch, weights, scale)
    _measure(batch, saved, tuple(orders), unbiased, classes, layout, key)
    loss, spread = _floats(device), _floats(device)
    contributions, distances = _floats(device, terms), _floats(device, terms, classes)

    from .distances import weigh

    launch(
        weigh,
        (1, 1, 1),
        (key, classes),
        (
            saved.numbers,
            weights,
            scale,
            loss,
            contributions,
            distances,
            spread,
            saved.by_weights,
            tuple(sigmas),
            saved.weighting[1],
            classes,
            rows,
            needed.full,
            needed.scatter,
            0 if weights is None else weights.stride(0),
            0 if weights is None or weights.shape[1] == 1 else weights.stride(1),
        ),
        ORDERS=tuple(orders),
        UNBIASED=unbiased,
        BLOCK=min(1024, max(32, power_of_two(classes))),
    )
    return loss, contributions, distances, spread, saved


def _key(layout: Layout, orders: tuple[int, ...], unbiased: bool, *tensors: Tensor | None) -> tuple[object, ...]:
    """Everything that determines how the kernels are compiled."""
    kinds = [x if x is None else (x.dtype, x.shape, x.stride(), x.data_ptr() % 16, x.device.index) for x in tensors]
    return layout, orders, unbiased, *kinds


def _floats(device: torch.device, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=device)


def _measure(
    batch: Batch,
    saved: Saved,
    orders: tuple[int, ...],
    unbiased: bool,
    classes: int,
    layout: Layout,
    key: tuple[object, ...],
) -> None:
    """Find the rows of each class, multiply them and compute distances from the products."""
    from . import distances, large, passes, rows

    source, source_labels, target, target_labels, row_weights = batch
    (n, size), m, strides = source.shape, target.shape[0], (source.stride(0), target.stride(0))
    if not layout.scan:
        for labels, first, count in ((source_labels, 0, n), (target_labels, n, m)):
            launch(
                rows.place_rows,
                (-(-count // LABELS_AT_ONCE), 1, 1),
                (key, classes, first),
                (labels, first, saved.slots, count, classes),
                CAPACITY=layout.capacity,
                BLOCK=LABELS_AT_ONCE,
            )
    data = source, target, source_labels, target_labels, saved.slots
    constants = {"CAPACITY": layout.capacity, "ORDERS": orders, "UNBIASED": unbiased}
    launch(
        passes.gram,
        (classes, layout.parts, 1),
        key,
        (
            *data,
            saved.grams,
            saved.means,
            saved.numbers,
            row_weights,
            n,
            m,
            size,
            columns_each(size, layout.block, layout.parts),
            *strides,
            1.0,
        ),
        BLOCK=layout.block,
        LABELS=layout.scan,
        EVEN=size % layout.block == 0,
        FEW_COLUMNS=size < FEW_COLUMNS,
        ALIGNED=are_aligned(source, target),
        num_warps=layout.warps,
        num_stages=layout.stages,
        **constants,
    )
    launch(
        distances.distances_of_class,
        (classes, 1, 1),
        key,
        (saved.grams, saved.slots, saved.numbers, *saved.weighting, n, n + m),
        PARTS=layout.parts,
        num_warps=8 if layout.capacity >= 64 else 4,
        **constants,
    )
    if n + m > layout.capacity:  # a class may be large: only the device knows
        launch(
            large.large_distances,
            (classes, 1, 1),
            key,
            (*data, saved.means, saved.numbers, *saved.weighting, n, m, size, *strides, 1.0),
            BLOCK=LARGE_BLOCK,
            LABELS=LABELS_AT_ONCE,
            num_stages=1,
            **constants,
        )


def launch_backward(
    source: Tensor,
    target: Tensor,
    saved: Saved,
    upstream: Tensor,
    orders: list[int],
    unbiased: bool,
    wanted: tuple[bool, bool],
    layout: Layout | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the gradient of the loss in the features of the wanted domains; empty for the other."""
    from . import large, passes

    (n, size), m, classes = source.shape, target.shape[0], saved.numbers.shape[1]
    if layout is None:
        layout = choose_layout(n + m, classes, size, processors(source.device))
    if unbiased:  # rows are centred on the mean of both domains, so large classes need both
        wanted = True, True
    # The kernels leave out rows of weight 0, whose gradient is 0.
    new = torch.empty if saved.weighting[0] is None else torch.zeros
    by_source = new(source.shape if wanted[0] else 0, dtype=source.dtype, device=source.device)
    by_target = new(target.shape if wanted[1] else 0, dtype=target.dtype, device=target.device)
    gradients, strides = (by_source, by_target), (source.stride(0), target.stride(0))
    constants = {"CAPACITY": layout.capacity, "ORDERS": tuple(orders), "UNBIASED": unbiased}
    constants["WANTED"] = wanted[0] + 2 * wanted[1]
    key = _key(layout, tuple(orders), unbiased, source, target, upstream, by_source, by_target, saved.weighting[0])
    launch(
        passes.gradient,
        (classes, layout.gradient_parts, 1),
        key,
        (
            source,
            target,
            saved.slots,
            saved.grams,
            saved.means,
            saved.numbers,
            *saved.weighting,
            upstream,
            *gradients,
            n,
            size,
            columns_each(size, layout.gradient_block, layout.gradient_parts),
            *strides,
        ),
        BLOCK=layout.gradient_block,
        EVEN=size % layout.gradient_block == 0,
        ALIGNED=are_aligned(source, target) and size * source.element_size() % 16 == 0,
        num_warps=layout.gradient_warps,
        num_stages=layout.gradient_stages,
        maxnreg=layout.gradient_registers,
        **constants,
    )
    if n + m > layout.capacity:
        launch(
            large.large_gradient,
            (classes, 1, 1),
            key,
            (
                source,
                target,
                saved.slots,
                saved.means,
                saved.numbers,
                *saved.weighting,
                upstream,
                *gradients,
                n,
                size,
                *strides,
                1.0,
            ),
            BLOCK=LARGE_BLOCK,
            LABELS=LABELS_AT_ONCE,
            num_stages=1,
            **constants,
        )
    return by_source, by_target
