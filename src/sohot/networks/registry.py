"""Backbones by name."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from torch import nn

from ..data.input_spec import InputSpec
from .backbone import Backbone, BackboneOptions
from .efficientnet_lite import SIZES, build_lite
from .names import check_backbone_name, is_folder, is_own
from .recommended import PREFIX, RECOMMENDED
from .timm_folder import build_folder
from .timm_models import build_timm, full_name
from .torchvision_models import build_alexnet, build_resnet50, build_vgg16
from .user_network import build_own
from .weights import fill, packed_for, read_weights

FEATURES = 128


def build_small_cnn(options: BackboneOptions) -> Backbone:
    """Build the network for images of about 32 x 32; about 187,000 parameters, no batch normalisation."""
    tap = options.choose_tap("before-relu", "after-relu")
    size = options.size or 32
    spec = InputSpec(size, (0.5,) * options.channels, (0.5,) * options.channels, resize=size, interpolation="bilinear")
    widths = (options.channels, 32, 64, 64)
    # Max pooling and ReLU commute; ReLU is faster on a quarter of the numbers.
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


Builder = Callable[[BackboneOptions], Backbone]

_BUILDERS: dict[str, Builder] = {
    **dict.fromkeys(SIZES, build_lite),
    **{network.name: build_timm for network in RECOMMENDED if network.timm is not None},
    "alexnet": build_alexnet,
    "vgg16": build_vgg16,
    "resnet50": build_resnet50,
    "small-cnn": build_small_cnn,
}


def create_backbone(
    name: str,
    *,
    weights: Path | str | None = None,
    pretrained: bool = True,
    channels: int = 3,
    tap: str | None = None,
    dropout: str = "classifier",
    size: int | None = None,
) -> Backbone:
    """Build a backbone by its name.

    Args:
        name: A network of `RECOMMENDED`, such as "lite0" (its weights come from the package registry) or
            "dinov2-small"; "alexnet", "vgg16", "resnet50" (torchvision); "small-cnn" (for small images; it has no
            trained weights and starts from scratch); "timm:NAME" for any model of timm; "timm:local-dir:FOLDER" for one
            in a folder: see `build_folder`; or "FILE.py:function" for your own: see `build_own`. Features of a vision
            transformer with a class token are that token and the mean of the patch tokens, side by side; those of
            other networks are what their own classifier would see.
        weights: A file of weights: safetensors, or a torch state dict that holds only tensors.
        pretrained: Without a file: whether to start from the publisher's trained weights (downloaded if needed) or from
            scratch.
        channels: 3 for colour, 1 for grey or depth images. A network for colour sees a grey image as the equivalent
            colour image, so its first layer acts with the sum of its weights over the channels.
        tap: Where features are taken: "before-relu" (default) or "after-relu" of the last fully connected layer for
            alexnet, vgg16 and small-cnn; the others return their "output", what their own classifier would see.
        dropout: "classifier" (the alignment sees features without dropout, the classifier with), "everywhere" (as
            the network has it, in the features too) or "none".
        size: Side of the images, if it differs from the network's own.

    Returns:
        The backbone, on the CPU.

    Example:
        >>> backbone = create_backbone("small-cnn", channels=1)
        >>> backbone.feature_size, backbone.input.size, backbone.tap
        (128, 32, 'before-relu')
    """
    file = None if weights is None else Path(weights)
    options = BackboneOptions(name, file, pretrained, channels, tap, dropout, size)
    build = find_builder(name)
    if file is not None:
        _require_weights_of(name, file)
    return build(options)


def _require_weights_of(name: str, file: Path) -> None:
    """Refuse a file that was packed for another network: that of a sister may fit, and expect other images."""
    packed = packed_for(file)
    if packed is not None and packed != full_name(name):
        raise ValueError(
            f"weights {file} were packed for the backbone {packed}, not for {name}: choose that backbone, or give "
            "other weights"
        )


def find_builder(name: str) -> Builder:
    """Look up the builder of a backbone; a ValueError names the choices."""
    if is_own(name):
        return build_own
    if is_folder(name):
        return build_folder
    if name.startswith(PREFIX):
        return build_timm
    return _BUILDERS[check_backbone_name(name)]
