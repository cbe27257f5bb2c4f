"""Weights of the rows of a stack, in the slots of its layout."""

from torch import Tensor

from ..functional.checks import check_weight_range
from ..functional.row_weights import RowWeights
from .layout import StackLayout


def slot_weights(weights: Tensor, layout: StackLayout) -> RowWeights:
    """Give every slot of every fit its weight, 0 to a slot without a row.

    Args:
        weights: Weights of the slots, at least 0, (F, slots), or (slots,) if all fits have the same; what stands in a
            slot without a row does not matter. `StackLayout.fill` puts weights of rows into slots.
        layout: The layout of the rows.

    Returns:
        In float64 on the CPU, (F, source slots) and (F, target slots).

    Example:
        >>> import torch
        >>> from sohot.heads.layout import lay_out
        >>> layout = lay_out([(torch.tensor([0, 1, 1]), torch.tensor([0, 1]))], num_classes=2)
        >>> slot_weights(torch.full((6,), 0.5), layout)
        RowWeights(source=tensor([[0.5000, 0.0000, 0.5000, 0.5000]], dtype=torch.float64), \
target=tensor([[0.5000, 0.5000]], dtype=torch.float64))
    """
    fits = len(layout.source_slots)
    if tuple(weights.shape) not in ((layout.slots,), (fits, layout.slots)):
        raise ValueError(
            f"weights must have the shape ({fits}, {layout.slots}) or ({layout.slots},), one for each slot, "
            f"got {tuple(weights.shape)}"
        )
    check_weight_range(weights.detach().flatten(), "weights")
    spread = layout.taken().double() * weights.detach().cpu()
    return RowWeights(spread[:, : layout.sizes[0]], spread[:, layout.sizes[0] :])
