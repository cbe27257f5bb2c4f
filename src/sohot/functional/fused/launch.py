"""Which kernels run, on what grids and with which arguments, and the arrays that they share."""

from typing import NamedTuple

import torch

from ..settings import Settings
from .layout import Layout, columns_each, few_columns, power_of_two
from .prepared import Launch
from .store import Section

LABELS_AT_ONCE = 256


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
        # Of each large class, source and target.
        "means": Section(torch.float32, (2, classes, problem.size)),
        # See `parts_of`.
        "numbers": Section(torch.float64, (2 * terms + 3, classes)),
    }
    # Weight of each row of a class in the difference of its means, negative in the target.
    found["signs"] = Section(torch.float32, (classes, capacity))
    if problem.are_weighted:  # see `store_weights`
        found["row_numbers"] = Section(torch.float64, (8, classes))
    return found


KEPT = ("slots", "grams", "means", "numbers", "signs", "row_numbers")


def forward_launches(problem: Problem, settings: Settings, strides: tuple[int, int]) -> list[Launch]:
    """Find the rows of each class, multiply them, compute distances from the products and the loss from those.

    `strides` are those of the weights of terms and classes.

    Besides the names of `results` and `workspace`: source, source_labels, target, target_labels, weights, zeta_bar,
    scale, source_weights and target_weights (if given), loss and counters.
    """
    from . import finish, passes, rows

    size, layout = problem.size, problem.layout
    labelled = "source_labels", "target_labels", "source_weights", "target_weights"
    counts = problem.source_rows, problem.target_rows
    launches = []
    if not layout.scan:
        place = Launch(
            rows.place_rows,
            (-(-problem.rows // LABELS_AT_ONCE), 1, 1),
            (labelled, "slots", *counts, problem.classes),
            CAPACITY=layout.capacity,
            BLOCK=LABELS_AT_ONCE,
        )
        launches.append(place)
    sizes = *counts, size, *problem.strides, 1.0
    constants = {"CAPACITY": layout.capacity, "RELATIVE": problem.bytes_each == 4}
    gram = Launch(
        passes.gram,
        (problem.classes, layout.parts, 1),
        ("source", "target", labelled, "slots", "grams", *sizes, columns_each(size, layout.block, layout.parts)),
        BLOCK=layout.block,
        LABELS=layout.scan,
        AT_ONCE=problem.rows <= layout.scan,
        EVEN=size % layout.block == 0,
        ALIGNED=problem.are_aligned,
        FEW_COLUMNS=few_columns(size),
        AHEAD=layout.stages == 1,
        num_warps=layout.warps,
        num_stages=layout.stages,
        maxnreg=layout.registers,
        **constants,
    )
    made = "loss", "terms", "distances", "spread", "divisor", "by_weights", "used_weights"
    sigmas, tensors = settings.sigmas or (1.0,) * problem.terms, ("weights", "zeta_bar", "scale")
    alphas = None if settings.weighting is None else settings.weighting.alphas
    how = sigmas, alphas, *tensors, settings.momentum, *strides, *settings.needed
    finish_all = Launch(
        finish.finish_classes,
        (problem.classes, 1, 1),
        ("source", "target", labelled, KEPT, "counters", made, how, *sizes),
        PARTS=layout.parts,
        ORDERS=problem.orders,
        UNBIASED=problem.unbiased,
        LARGE=problem.may_be_large,
        CLASSES=min(1024, max(32, power_of_two(problem.classes))),
        AT_ONCE=problem.classes <= 1024,
        num_warps=layout.finish_warps,
        num_stages=1,
        maxnreg=layout.finish_registers,
        **constants,
    )
    return [*launches, gram, finish_all]


def backward_launches(problem: Problem, wanted: tuple[bool, bool]) -> list[Launch]:
    """Compute the gradient of the loss in the features of the wanted domains.

    Besides the names of `workspace`: source, target, source_weights and target_weights (if given), upstream, by_source
    and by_target, the gradients.
    """
    from . import passes

    size, layout = problem.size, problem.layout
    columns = columns_each(size, layout.gradient_block, layout.gradient_parts)
    sizes = problem.source_rows, size, *problem.strides, 1.0, columns
    gradient = Launch(
        passes.gradient,
        (problem.classes, layout.gradient_parts, 1),
        ("source", "target", ("source_weights", "target_weights"), KEPT, "upstream", "by_source", "by_target", *sizes),
        CAPACITY=layout.capacity,
        BLOCK=layout.gradient_block,
        ORDERS=problem.orders,
        UNBIASED=problem.unbiased,
        RELATIVE=problem.bytes_each == 4,
        EVEN=size % layout.gradient_block == 0,
        ALIGNED=problem.are_aligned and size * problem.bytes_each % 16 == 0,
        LARGE=problem.may_be_large,
        WANTED=wanted[0] + 2 * wanted[1],
        num_warps=layout.gradient_warps,
        num_stages=layout.gradient_stages,
        maxnreg=layout.gradient_registers,
    )
    return [gradient]
