"""A backbone from an arbitrary network: split by watching it run."""

import copy

import torch
from torch import Tensor, nn

from ..data.input_spec import InputSpec
from .backbone import Backbone, BackboneOptions
from .grey import fit_channels
from .stages import agree, first_of_last_two_blocks, group_stages, is_called_plainly, split_in_stages


class TokenFeatures(nn.Module):
    """A vision transformer of timm whose features are its class token and the mean of its patch tokens, side by side.

    Args:
        network: The transformer; its first token is that of the class.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.pooling = _ClassAndPatches(int(network.num_prefix_tokens))  # type: ignore[arg-type]

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) to features (B, 2 · width)."""
        features: Tensor = self.pooling(self.network.forward_features(images))  # type: ignore[operator]
        return features


class _ClassAndPatches(nn.Module):
    """Tokens (B, tokens, width), the first `prefix` of which are not patches, to features (B, 2 · width)."""

    def __init__(self, prefix: int) -> None:
        super().__init__()
        self.prefix = prefix

    def forward(self, tokens: Tensor) -> Tensor:
        return torch.cat([tokens[:, 0], tokens[:, self.prefix :].mean(1)], dim=1)


def with_token_features(network: nn.Module) -> nn.Module:
    """Let a vision transformer give class token and patch mean, if both pass its last norm; return others as they are.

    A transformer that normalises after pooling (`fc_norm`), or pools by attention, was trained to use that alone.
    """
    tokens = getattr(network, "num_prefix_tokens", 0) > 0 and getattr(network, "cls_token", None) is not None
    pools = isinstance(getattr(network, "fc_norm", None), nn.Identity) and getattr(network, "attn_pool", None) is None
    return TokenFeatures(network) if tokens and pools else network


_HEAD = ("fc_norm", "head_drop", "head", "head_dist", "attn_pool")
"""What such a network calls after its last block and norm, apart from the pooling of tokens, which is code."""


@torch.no_grad()
def split_transformer(network: nn.Module, images: Tensor) -> list[nn.Module] | None:
    """Split a network that has the form of timm's vision transformers: patches to tokens, blocks, norm, pooling.

    What happens between patches and blocks (positions, class token) and the pooling are code, not modules: the first
    stage is the network itself without blocks, and the last one ends with the network reduced to its head.

    Args:
        network: Any network that maps images to features.
        images: A few images to try the split on.

    Returns:
        The stages, or None if the network has another form or the stages do not compute the same.
    """
    whole, pooling = network, None
    if isinstance(network, TokenFeatures):
        network, pooling = network.network, network.pooling
    blocks, norm = getattr(network, "blocks", None), getattr(network, "norm", None)
    if not isinstance(blocks, (nn.Sequential, nn.ModuleList)) or not isinstance(norm, nn.Module):
        return None
    if not hasattr(network, "forward_features") or not hasattr(network, "forward_head"):
        return None
    whole.eval()
    if not is_called_plainly(network, list(blocks), images):
        return None
    kept = {name for name, module in network.named_children() if name not in ("blocks", "norm", *_HEAD)}
    layers = [_Part(network, "forward_features", kept), *blocks, norm]
    if pooling is None:
        head = _Part(network, "forward_head", {*_HEAD})
        head.network._parameters, head.network._buffers = {}, {}
        pooling = head
    layers.append(pooling)
    try:
        same = agree(nn.Sequential(*layers)(images), whole(images))
    except (RuntimeError, TypeError, AttributeError, ValueError):
        return None
    return group_stages(layers) if same else None


class _Part(nn.Module):
    """One method of a network, with some of the network's modules kept and the others replaced by the identity."""

    def __init__(self, network: nn.Module, method: str, kept: set[str]) -> None:
        super().__init__()
        self.network = copy.copy(network)
        self.network._modules = {
            name: module if module is None or name in kept else nn.Sequential()
            for name, module in network._modules.items()
        }
        self.method = method
        self.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = getattr(self.network, self.method)(inputs)
        return outputs


def from_network(
    name: str, network: nn.Module, spec: InputSpec, options: BackboneOptions, *, pretrained: bool
) -> Backbone:
    """Make a backbone of a network without a classifier; it is one stage if no split computes the same.

    Args:
        name: Name of the backbone.
        network: Maps images to features.
        spec: Input format of the network.
        options: `channels`, `tap` and `dropout` are used here. Dropout and stochastic depth inside the network are
            switched off unless `dropout` is "everywhere".
        pretrained: Whether the network holds trained weights.
    """
    tap = options.choose_tap("output")
    if options.dropout != "everywhere":
        _silence(network)
    whole = Backbone(name, [network], spec)  # raises a clear error if the network does not accept such images
    images = torch.randn(2, spec.channels, spec.size, spec.size, generator=torch.Generator().manual_seed(0))
    stages: list[nn.Module] = [network] if isinstance(network, TokenFeatures) else split_in_stages(network, images)
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
