"""AlexNet and VGG16, the networks of the paper. Their features are fc7, 4096 numbers.

Dropout: the original networks drop half of what leaves fc6 and fc7. Zeros drawn at random inflate the scatters of high
order, so by default (`dropout="classifier"`) nothing is dropped on the way to the features: the alignment sees them
without noise, and the classifier sees them with dropout. "everywhere" drops behind fc6 and fc7 as the original
networks do, and the alignment sees it too. "none" drops nothing.

ReLU: features are taken before the ReLU of fc7 by default. The classifier stands behind it in any case.
"""

from typing import Any

from torch import nn

from .._torchvision import import_torchvision
from .backbone import Backbone
from .grey import fit_channels
from .imagenet import imagenet_spec, torchvision_weights
from .options import BackboneOptions
from .splitting import group_stages
from .weights import load_weights

DROPOUT = 0.5


def build_alexnet(options: BackboneOptions) -> Backbone:
    """Build torchvision's AlexNet up to fc7."""
    return _build(options, "alexnet", "AlexNet_Weights")


def build_vgg16(options: BackboneOptions) -> Backbone:
    """Build torchvision's VGG16 (without batch normalisation) up to fc7."""
    return _build(options, "vgg16", "VGG16_Weights")


def _build(options: BackboneOptions, model: str, enum: str) -> Backbone:
    tap = options.choose_tap("before-relu", "after-relu")
    network = getattr(import_torchvision().models, model)(weights=None)
    loaded = load_weights(network, options, lambda: torchvision_weights(enum), classifier=("classifier.6.",))
    stages = group_stages(_layers(network, tap, options.dropout == "everywhere"))
    convolutions = [place for place, stage in enumerate(stages) if _holds_convolution(stage)]
    row, spec = fit_channels(stages, imagenet_spec(options.size), options.channels)
    return Backbone(
        model,
        row,
        spec,
        paper=convolutions[-2],
        tap=tap,
        activation=nn.ReLU() if tap == "before-relu" else None,
        dropout=DROPOUT if options.dropout == "classifier" else 0.0,
        pretrained=loaded,
    )


def _layers(network: Any, tap: str, everywhere: bool) -> list[nn.Module]:
    """The network as a row of layers, from the image to fc7."""
    fc6, fc7 = [layer for layer in network.classifier if isinstance(layer, nn.Linear)][:2]
    layers = [*network.features, network.avgpool, nn.Flatten(), fc6, nn.ReLU(inplace=True)]
    if everywhere:
        layers.append(nn.Dropout(DROPOUT))
    layers.append(fc7)
    if tap == "after-relu":
        layers.append(nn.ReLU())
    if everywhere:  # dropout and ReLU can change places, so the tap decides about the ReLU alone
        layers.append(nn.Dropout(DROPOUT))
    return layers


def _holds_convolution(stage: nn.Module) -> bool:
    return any(isinstance(module, nn.Conv2d) for module in stage.modules())
