"""Which kernels run, on what grids and with which arguments, and the arrays that they share."""

from typing import NamedTuple

import torch

from ..settings import Settings
from .layout import Layout, columns_each, power_of_two
from .prepared import Launch
from .store import Section

LABELS_AT_ONCE = 256
FEW_COLUMNS = 512
LARGE_BLOCK = 32  # columns per step for classes with more rows than a program holds


class Problem(NamedTuple):
    """Everything about a call that kernels are compiled for, forward and backward; never values."""

    source_rows: int
    target_rows: int
    size: int  # columns
    classes: int
    orders: tuple[int, ...]
    unbiased: bool
    strides: tuple[int, int]  # of the rows of both domains
    bytes_each: int  # of a feature
    are_aligned: bool  # all rows start at multiples of 16 bytes
    are_weighted: bool  # rows have weights
    layout: Layout

    @property
    def rows(self) -> int:
        """Rows of both domains."""
        return self.source_rows + self.target_rows

    @property
    def terms(self) -> int:
        """Terms of the loss: the means, then the orders."""
        return 1 + len(self.orders)

    @property
    def may_be_large(self) -> bool:
        """Whether a class may have more rows than a program holds: only the device knows."""
        return self.rows > self.layout.capacity


def results(settings: Settings, has_weights: bool) -> dict[str, Section]:
    """What a call finds besides the loss; `has_weights` says whether weights of terms and classes are given."""
    terms, classes = 1 + len(settings.orders), settings.num_classes
    found = {
        "terms": Section(torch.float32, (terms + 1,)),  # of the loss, and the penalty on the weights of classes
        "distances": Section(torch.float32, (terms, classes)),
        "spread": Section(torch.float32, ()),
        "divisor": Section(torch.float64, ()),  # of the features
    }
    if has_weights:
        found["by_weights"] = Section(torch.float32, (terms, classes))  # derivative of the loss in each weight
    if settings.weighting is not None:
        found["used_weights"] = Section(torch.float32, (terms, classes))
    return found


def workspace(problem: Problem) -> dict[str, Section]:
    """What the gradient needs besides the features."""
    classes, terms, layout = problem.classes, problem.terms, problem.layout
    capacity, slots = layout.capacity, classes * (2 * layout.capacity + 1) + problem.rows
    found = {
        # Rows of each class as found and sorted, both (C, capacity); counts (C,); a list (n + m,).
        "slots": Section(torch.int32, (slots,), zeroed=not layout.scan),
        # The total in the first part.
        "grams": Section(torch.float32, (layout.parts, classes, capacity, capacity)),
        # Of each class, source and target.
        "means": Section(torch.float32, (2, classes, problem.size)),
        # See `parts_of`.
        "numbers": Section(torch.float64, (2 * terms + 3 + layout.parts, classes)),
    }
    if problem.are_weighted:  # see `store_weights`
        found["row_numbers"] = Section(torch.float64, (6, classes))
    return found


def forward_launches(problem: Problem, settings: Settings, strides: tuple[int, int]) -> list[Launch]:
    """Find the rows of each class, multiply them, compute distances from the products and the loss from those.

    `strides` are those of the weights of terms and classes.

    Besides the names of `results` and `workspace`: source, source_labels, target, target_labels, weights, zeta_bar and
    scale (if given), row_weights (2, n + m) (if rows have weights, see `weights`) and loss.
    """
    from . import distances, large, passes, rows

    n, m, size, classes, layout = (
        problem.source_rows,
        problem.target_rows,
        problem.size,
        problem.classes,
        problem.layout,
    )
    constants = {"CAPACITY": layout.capacity, "ORDERS": problem.orders, "UNBIASED": problem.unbiased}
    data = "source", "target", "source_labels", "target_labels", "slots"
    launches = []
    if not layout.scan:
        for labels, first, count in (("source_labels", 0, n), ("target_labels", n, m)):
            launches.append(
                Launch(
                    rows.place_rows,
                    (-(-count // LABELS_AT_ONCE), 1, 1),
                    (labels, first, "slots", count, classes),
                    CAPACITY=layout.capacity,
                    BLOCK=LABELS_AT_ONCE,
                )
            )
    columns = columns_each(size, layout.block, layout.parts)
    launches += [
        Launch(
            passes.gram,
            (classes, layout.parts, 1),
            (*data, "grams", "means", "numbers", "row_weights", n, m, size, columns, *problem.strides, 1.0),
            BLOCK=layout.block,
            LABELS=layout.scan,
            EVEN=size % layout.block == 0,
            FEW_COLUMNS=size < FEW_COLUMNS,
            ALIGNED=problem.are_aligned,
            num_warps=layout.warps,
            num_stages=layout.stages,
            **constants,
        ),
        Launch(
            distances.distances_of_class,
            (classes, 1, 1),
            ("grams", "slots", "numbers", "row_weights", "row_numbers", n, n + m),
            PARTS=layout.parts,
            num_warps=8 if layout.capacity >= 64 else 4,
            **constants,
        ),
    ]
    if problem.may_be_large:
        launches.append(
            Launch(
                large.large_distances,
                (classes, 1, 1),
                (*data, "means", "numbers", "row_weights", "row_numbers", n, m, size, *problem.strides, 1.0),
                BLOCK=LARGE_BLOCK,
                LABELS=LABELS_AT_ONCE,
                num_stages=1,
                **constants,
            )
        )
    return [*launches, _weigh(problem, settings, strides)]


def _weigh(problem: Problem, settings: Settings, strides: tuple[int, int]) -> Launch:
    from .distances import weigh

    made = "loss", "terms", "distances", "spread", "divisor", "by_weights", "used_weights"
    sigmas, tensors = settings.sigmas or (1.0,) * problem.terms, ("weights", "zeta_bar", "scale")
    alphas = None if settings.weighting is None else settings.weighting.alphas
    how = sigmas, alphas, *tensors, settings.momentum, *strides, *settings.needed
    return Launch(
        weigh,
        (1, 1, 1),
        ("numbers", made, how, "row_numbers", problem.classes, problem.rows),
        ORDERS=problem.orders,
        UNBIASED=problem.unbiased,
        BLOCK=min(1024, max(32, power_of_two(problem.classes))),
    )


def backward_launches(problem: Problem, wanted: tuple[bool, bool]) -> list[Launch]:
    """Compute the gradient of the loss in the features of the wanted domains.

    Besides the names of `workspace`: source, target, row_weights (if rows have weights), upstream, by_source and
    by_target, the gradients.
    """
    from . import large, passes

    n, size, layout = problem.source_rows, problem.size, problem.layout
    constants = {"CAPACITY": layout.capacity, "ORDERS": problem.orders, "UNBIASED": problem.unbiased}
    constants["WANTED"] = wanted[0] + 2 * wanted[1]
    of_rows = "row_weights", "row_numbers", "upstream", "by_source", "by_target", n, size
    columns = columns_each(size, layout.gradient_block, layout.gradient_parts)
    launches = [
        Launch(
            passes.gradient,
            (problem.classes, layout.gradient_parts, 1),
            ("source", "target", "slots", "grams", "means", "numbers", *of_rows, columns, *problem.strides),
            BLOCK=layout.gradient_block,
            EVEN=size % layout.gradient_block == 0,
            ALIGNED=problem.are_aligned and size * problem.bytes_each % 16 == 0,
            num_warps=layout.gradient_warps,
            num_stages=layout.gradient_stages,
            maxnreg=layout.gradient_registers,
            **constants,
        )
    ]
    if problem.may_be_large:
        launches.append(
            Launch(
                large.large_gradient,
                (problem.classes, 1, 1),
                ("source", "target", "slots", "means", "numbers", *of_rows, *problem.strides, 1.0),
                BLOCK=LARGE_BLOCK,
                LABELS=LABELS_AT_ONCE,
                num_stages=1,
                **constants,
            )
        )
    return launches
