"""A small network for small images: three convolutional layers and one fully connected, from scratch."""

from itertools import pairwise

from torch import nn

from ..data.input_spec import InputSpec
from .backbone import Backbone, BackboneOptions
from .weights import fill, read_weights

FEATURES = 128


def build_small_cnn(options: BackboneOptions) -> Backbone:
    """Build the network for images of about 32 x 32; about 187,000 parameters, no batch normalisation."""
    tap = options.choose_tap("before-relu", "after-relu")
    size = options.size or 32
    spec = InputSpec(size, (0.5,) * options.channels, (0.5,) * options.channels, resize=size, interpolation="bilinear")
    widths = (options.channels, 32, 64, 64)
    # The largest of four numbers and the ReLU may change places; on a quarter of the numbers the ReLU is quicker.
    stages = [
        nn.Sequential(nn.Conv2d(wide_in, wide_out, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(inplace=True))
        for wide_in, wide_out in pairwise(widths)
    ]
    last = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64 * 16, FEATURES))
    if tap == "after-relu":
        last.append(nn.ReLU())
    backbone = Backbone(
        "small-cnn",
        [*stages, last],
        spec,
        paper=1,
        tap=tap,
        activation=nn.ReLU() if tap == "before-relu" else None,
    )
    if options.weights is not None:
        fill(backbone, read_weights(options.weights), str(options.weights), options.name)
        backbone.pretrained = True
    return backbone
