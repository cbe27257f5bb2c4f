"""A backbone from a network nobody described: split by watching it run."""

import torch
from torch import nn

from ..data.input_spec import InputSpec
from .backbone import Backbone
from .grey import fit_channels
from .options import BackboneOptions
from .splitting import first_of_last_two_blocks, split_in_stages
from .transformers import split_transformer


def from_network(
    name: str, network: nn.Module, spec: InputSpec, options: BackboneOptions, *, pretrained: bool
) -> Backbone:
    """Make a backbone of a network without classifier; it is one stage if no split computes the same.

    Args:
        name: Name of the backbone.
        network: Maps images to features.
        spec: What the network takes.
        options: `channels`, `tap` and `dropout` are used here. Dropout and stochastic depth inside the network are
            switched off unless they are asked for "everywhere".
        pretrained: Whether the network holds trained weights.
    """
    tap = options.choose_tap("output")
    if options.dropout != "everywhere":
        _silence(network)
    whole = Backbone(name, [network], spec)  # says clearly if the network does not take such images
    images = torch.randn(2, spec.channels, spec.size, spec.size, generator=torch.Generator().manual_seed(0))
    stages = split_in_stages(network, images)
    if len(stages) == 1:
        stages = split_transformer(network, images) or stages
    row, spec = fit_channels(stages, whole.input, options.channels)
    return Backbone(name, row, spec, paper=first_of_last_two_blocks(stages), tap=tap, pretrained=pretrained)


def _silence(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        elif hasattr(module, "drop_prob"):  # stochastic depth of timm
            module.drop_prob = 0.0  # type: ignore[assignment]
