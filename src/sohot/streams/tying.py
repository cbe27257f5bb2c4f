"""Two networks that start as one."""

import torch

from .backbone import Backbone


@torch.no_grad()
def tie(source: Backbone, target: Backbone) -> None:
    """Start the source as a copy of the target where both are builds of one architecture.

    All tensors are copied but those of another shape (a first layer made for other input channels). Backbones of
    different names are left alone, and so is a pair of a trained and an untrained one.
    """
    ours, theirs = source.state_dict(), target.state_dict()
    if source.name != target.name or source.pretrained != target.pretrained or len(ours) != len(theirs):
        return
    for own, other in zip(ours.values(), theirs.values(), strict=True):  # names shift with an adapter, the order stays
        if own.shape == other.shape:
            own.copy_(other)
