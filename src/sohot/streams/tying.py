"""Two networks that start as one."""

import torch

from .backbone import Backbone


@torch.no_grad()
def tie(source: Backbone, target: Backbone) -> None:
    """Start the source as a copy of the target, as far as two builds of one architecture go.

    Tensors of one name and shape are copied; a first layer for other input channels stays its own. Backbones of
    different names are left alone, and so is a pair of a trained and an untrained one.
    """
    if source.name != target.name or source.pretrained != target.pretrained:
        return
    theirs = target.state_dict()
    for name, tensor in source.state_dict().items():
        if name in theirs and theirs[name].shape == tensor.shape:
            tensor.copy_(theirs[name])
