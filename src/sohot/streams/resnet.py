"""ResNet-50 of torchvision; features are its 2048 pooled outputs."""

from torch import nn

from .._torchvision import import_torchvision
from .backbone import Backbone
from .imagenet import imagenet_spec, torchvision_weights
from .looking import from_network
from .options import BackboneOptions
from .weights import load_weights


def build_resnet50(options: BackboneOptions) -> Backbone:
    """Build torchvision's ResNet-50 without its classifier."""
    network = import_torchvision().models.resnet50(weights=None)
    loaded = load_weights(network, options, lambda: torchvision_weights("ResNet50_Weights"), classifier=("fc.",))
    network.fc = nn.Identity()
    return from_network("resnet50", network, imagenet_spec(options.size), options, pretrained=loaded)
