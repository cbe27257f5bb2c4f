"""One-channel images for a network made for three."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from ..data.input_spec import InputSpec


class GreyToColour(nn.Module):
    """Show a grey image as the equivalent colour image, normalised as the network expects.

    A grey value g enters as (g − m)/s, with m and s the means of the network's own; the network gets (g − m_c)/s_c in
    each channel c. Its first convolution thus acts on g with the sum of its weights over the channels, as on the
    same image saved in colour: trained weights work unchanged on depth images and grey sketches, borders included, and
    one weight file fits both.

    Args:
        colour: Input format of the network, three channels.

    Example:
        >>> colour = InputSpec(size=2, mean=(0.4, 0.5, 0.6), std=(0.1, 0.2, 0.3), resize=2)
        >>> adapter = GreyToColour(colour)
        >>> adapter.input.mean, adapter.input.std
        ((0.5,), (0.2,))
        >>> adapter(torch.zeros(1, 1, 1, 1)).flatten()
        tensor([ 1.0000,  0.0000, -0.3333])
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, colour: InputSpec) -> None:
        super().__init__()
        mean, std = sum(colour.mean) / 3, round(sum(colour.std) / 3, 12)
        self.input = replace(colour, mean=(mean,), std=(std,))
        scale = torch.tensor([std / theirs for theirs in colour.std])
        shift = torch.tensor([(mean - m) / s for m, s in zip(colour.mean, colour.std, strict=True)])
        self.register_buffer("scale", scale.view(3, 1, 1), persistent=False)
        self.register_buffer("shift", shift.view(3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Map (B, 1, H, W) to (B, 3, H, W)."""
        return images * self.scale + self.shift


def fit_channels(stages: list[nn.Module], spec: InputSpec, channels: int) -> tuple[list[nn.Module], InputSpec]:
    """Adapt a sequence of stages to this number of channels; the number of stages does not change.

    Args:
        stages: Stages of a network.
        spec: Input format of the network.
        channels: Channels to accept: the same number, or 1 instead of 3.
    """
    if channels == spec.channels:
        return stages, spec
    if channels != 1:
        raise ValueError(f"channels={channels}: this network accepts images of {spec.channels} channel")
    adapter = GreyToColour(spec)
    return [nn.Sequential(adapter, stages[0]), *stages[1:]], adapter.input
