"""A head on the features of a backbone, loaded together with the backbone: it labels images as a run does."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ..data.input_spec import InputSpec
from ..heads.folding import fold
from ..networks.backbone import Backbone
from ..networks.inference import run_views
from ..selection.calibration import Calibration
from .feature_network import FeatureNetwork
from .stored_head import StoredHead, read_head
from .trust import refuse_code


@dataclass(frozen=True)
class LoadedHead:
    """A head and its backbone in memory, a `LoadedModel`.

    Attributes:
        head: The head.
        network: What makes its features.
        backbone: That network, in evaluation mode.
        device: Where the backbone is; the head, which is small, stays on the CPU.
    """

    head: StoredHead
    network: FeatureNetwork
    backbone: Backbone
    device: torch.device

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.head.classes

    @property
    def input(self) -> InputSpec:
        """Input of the backbone."""
        return self.network.input

    @property
    def views(self) -> int:
        """Views of an image that its features are averaged over."""
        return self.network.views

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.head.fit.settings.resolved_method().name

    @property
    def step(self) -> int:
        """Steps of its training."""
        return self.head.fit.settings.steps

    @property
    def calibration(self) -> Calibration | None:
        """None: a head keeps the temperature, but not the held-out answers that it was fitted to."""
        return None

    @property
    def temperature(self) -> float:
        """Its logits are calibrated already."""
        return 1.0

    @property
    def folded_temperature(self) -> float:
        """The temperature of the head."""
        return self.head.fit.temperature

    def caution(self) -> str | None:
        """Say nothing: a head is written when it is finished."""
        return None

    def logits(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """Classify batches of images: exactly what the head makes of their features."""
        return (logits for _, logits in self.features_and_logits(batches))

    def features_and_logits(self, batches: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Pass batches of images through the backbone and the head."""
        features = run_views(self.backbone, batches, self.views, self.device)
        return ((rows, self.head.fit.predict_logits(rows)) for rows in features)

    def module(self) -> nn.Module:
        """Return backbone and head as one module.

        Raises:
            ValueError: The head looks at more than the centre of an image, which is all that the module gets.
        """
        if self.views > 2:
            raise ValueError(
                f"{self.head.path} averages {self.views} views of an image, but an exported model gets the centre "
                "alone: train it on features of 1 or 2 views"
            )
        features = self.backbone if self.views == 1 else MirrorMean(self.backbone)
        return nn.Sequential(features, fold(self.head.fit)).eval()


class MirrorMean(nn.Module):
    """Features averaged over an image and its mirror image, which are the first two views.

    Args:
        network: Maps images to features.

    Example:
        >>> MirrorMean(nn.Flatten())(torch.tensor([[[[1.0, 3.0]]]]))
        tensor([[2., 2.]])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) to features."""
        features: Tensor = (self.network(images) + self.network(images.flip(3))) / 2
        return features


def open_head(
    path: Path, device: torch.device | None = None, *, weights: Path | None = None, trust: bool = False
) -> LoadedHead:
    """Load a head and build the backbone that made its features.

    Args:
        path: Folder or file of the head.
        device: Where to put the backbone; None for the CPU.
        weights: File of the backbone's weights, if it needs one.
        trust: Import the Python file that the head names, if the backbone is a network of your own.

    Raises:
        FileNotFoundError: There is no such file.
        UntrustedCode: It names a Python file, and `trust` is false.
        ValueError: It is not a head, does not know its backbone, or the backbone is another one here.
    """
    head = read_head(path)
    if not head.network:
        raise ValueError(
            f"{path} does not say which network made its features: it labels feature files (.npz), but no images"
        )
    if not trust:
        refuse_code(head.network, path)
    try:
        network = FeatureNetwork.from_json(head.network)
        backbone = network.build(weights)
        if backbone.feature_size != head.width:
            raise ValueError(f"it takes {head.width} features, but its network makes {backbone.feature_size}")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    place = device or torch.device("cpu")
    backbone.to(place).eval()
    return LoadedHead(head, network, backbone, place)
