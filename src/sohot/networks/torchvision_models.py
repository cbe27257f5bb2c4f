"""torchvision's ImageNet networks: AlexNet and VGG16, whose features are fc7 as in the paper, and ResNet-50."""

from typing import Any

from torch import nn

from .._torchvision import import_torchvision
from ..data.input_spec import InputSpec
from .any_network import from_network
from .backbone import Backbone, BackboneOptions
from .grey import fit_channels
from .stages import group_stages
from .weights import State, load_weights

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ENUMS = {"alexnet": "AlexNet_Weights", "vgg16": "VGG16_Weights", "resnet50": "ResNet50_Weights"}
"""Where torchvision lists the weights of each network."""


def imagenet_spec(size: int | None = None) -> InputSpec:
    """Describe the usual input: 224 pixels out of 256, unless another size is given.

    >>> imagenet_spec().size, imagenet_spec(112).resize
    (224, 128)
    """
    side = size or 224
    return InputSpec(side, MEAN, STD, resize=round(side * 256 / 224), interpolation="bilinear")


def torchvision_weights(enum: str) -> State:
    """Download weights from torchvision (which caches them); they are read without unpickling objects."""
    entry = getattr(import_torchvision().models, enum).IMAGENET1K_V1
    state: State = entry.get_state_dict(progress=False, check_hash=True, weights_only=True)
    return state


DROPOUT = 0.5


def build_alexnet(options: BackboneOptions) -> Backbone:
    """Build torchvision's AlexNet up to fc7."""
    return _build(options, "alexnet")


def build_vgg16(options: BackboneOptions) -> Backbone:
    """Build torchvision's VGG16 (without batch normalisation) up to fc7."""
    return _build(options, "vgg16")


def _build(options: BackboneOptions, model: str) -> Backbone:
    tap = options.choose_tap("before-relu", "after-relu")
    network = getattr(import_torchvision().models, model)(weights=None)
    loaded = load_weights(network, options, lambda: torchvision_weights(ENUMS[model]), classifier=("classifier.6.",))
    stages = group_stages(_layers(network, tap, options.dropout == "everywhere"))
    convolutions = [index for index, stage in enumerate(stages) if _holds_convolution(stage)]
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
    """The network as a sequence of layers, from the image to fc7."""
    fc6, fc7 = [layer for layer in network.classifier if isinstance(layer, nn.Linear)][:2]
    layers = [*network.features, network.avgpool, nn.Flatten(), fc6, nn.ReLU(inplace=True)]
    if everywhere:
        layers.append(nn.Dropout(DROPOUT))
    layers.append(fc7)
    if tap == "after-relu":
        layers.append(nn.ReLU())
    if everywhere:  # dropout and ReLU commute, so the tap only decides about the ReLU
        layers.append(nn.Dropout(DROPOUT))
    return layers


def _holds_convolution(stage: nn.Module) -> bool:
    return any(isinstance(module, nn.Conv2d) for module in stage.modules())


def build_resnet50(options: BackboneOptions) -> Backbone:
    """Build torchvision's ResNet-50 without its classifier."""
    network = import_torchvision().models.resnet50(weights=None)
    loaded = load_weights(network, options, lambda: torchvision_weights(ENUMS["resnet50"]), classifier=("fc.",))
    network.fc = nn.Identity()
    return from_network("resnet50", network, imagenet_spec(options.size), options, pretrained=loaded)
