"""A network as a sequence of stages, from an image to its features, and its options."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ..data.input_spec import InputSpec
from ..functional.plain_checks import check_choice
from ..methods.choices import DROPOUTS, TAPS, TRAINS


@dataclass(frozen=True)
class BackboneOptions:
    """Options of `create_backbone`, checked."""

    name: str
    weights: Path | None = None
    pretrained: bool = True
    channels: int = 3
    tap: str | None = None
    dropout: str = "classifier"
    size: int | None = None

    def __post_init__(self) -> None:
        if self.channels not in (1, 3):
            raise ValueError(f"channels must be 1 (grey, depth) or 3 (colour), got {self.channels!r}")
        if self.tap is not None:
            check_choice(self.tap, TAPS, "tap")
        check_choice(self.dropout, DROPOUTS, "dropout")
        if self.size is not None and (isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1):
            raise ValueError(f"size must be an integer of at least 1, got {self.size!r}")

    def choose_tap(self, *offered: str) -> str:
        """The chosen tap, if the network offers it; its first one by default."""
        if self.tap is None:
            return offered[0]
        if self.tap not in offered:
            raise ValueError(f"backbone {self.name} offers the tap {' or '.join(map(repr, offered))}, not {self.tap!r}")
        return self.tap


class Backbone(nn.Module):
    """A network as a sequence of stages: `forward(images)` is `stages(images)`, of shape (B, feature_size).

    Training is set by stage: those before `first_trainable[trains]` are frozen. "all" trains every stage, "head"
    none (only the classifier), "paper" the fully connected layers and the last two convolutional ones, or the
    last two blocks and everything after them. A network of one stage has no "paper".

    The alignment sees the features. The classifier sees `activation(features)`, with dropout at the rate `dropout`: if
    features are taken before a ReLU and without dropout, the classifier still sees the network unchanged.

    Args:
        name: Name for messages and descriptions.
        stages: The stages, in order; the last returns the features.
        input: Size and normalisation of the images.
        paper: First stage that trains under "paper"; None if there is no such stage.
        tap: Where the features are taken: "before-relu", "after-relu", or "output" (what the network's own classifier
            would see).
        activation: Module between the features and the classifier; None for none.
        dropout: Rate of the dropout before the classifier.
        pretrained: Whether the stages have trained weights.

    Example:
        >>> spec = InputSpec(size=8, mean=(0.5,), std=(0.5,), resize=8)
        >>> net = Backbone("tiny", [nn.Conv2d(1, 4, 3), nn.Flatten()], spec, paper=0)
        >>> net.feature_size, net.first_trainable
        (144, {'all': 0, 'head': 2, 'paper': 0})
    """

    def __init__(
        self,
        name: str,
        stages: Iterable[nn.Module],
        input: InputSpec,
        *,
        paper: int | None = None,
        tap: str = "output",
        activation: nn.Module | None = None,
        dropout: float = 0.0,
        pretrained: bool = False,
    ) -> None:
        super().__init__()
        self.name = name
        self.input = input
        self.stages = nn.Sequential(*stages)
        self.tap = check_choice(tap, TAPS, "tap")
        self.activation = nn.Identity() if activation is None else activation
        self.dropout = dropout
        self.pretrained = pretrained
        self.first_trainable: dict[str, int] = {"all": 0, "head": len(self.stages)}
        if paper is not None:
            self.first_trainable["paper"] = paper
        for stage in self.stages:
            _keep_input(stage)
        self.feature_size = self._probe()

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) to features (B, feature_size)."""
        features: Tensor = self.stages(images)
        return features

    def first_stage_to_train(self, trains: str) -> int:
        """Look up the first stage that trains under "paper", "all" or "head"."""
        check_choice(trains, TRAINS, "trains")
        if trains not in self.first_trainable:
            raise ValueError(
                f"trains={trains!r} needs a backbone that can be split into stages, but {self.name} is one stage: "
                "choose 'all' or 'head'"
            )
        return self.first_trainable[trains]

    @torch.no_grad()
    def _probe(self) -> int:
        """Run one image to find the feature size, and to check that the network accepts such an image."""
        shape = (1, self.input.channels, self.input.size, self.input.size)
        was_training = self.training
        self.eval()
        try:
            features = self.stages(torch.zeros(shape))
        except (RuntimeError, ValueError, TypeError, AssertionError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ValueError(
                f"backbone {self.name} does not accept an image of {' x '.join(map(str, shape[1:]))}: {reason}"
            ) from None
        finally:
            self.train(was_training)
        if not isinstance(features, Tensor) or features.dim() != 2 or features.shape[0] != 1:
            got = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
            raise ValueError(f"backbone {self.name} must return one row of features per image, got {got} for one image")
        return features.shape[1]

    def extra_repr(self) -> str:
        """Show the backbone's settings when it is printed."""
        return (
            f"name={self.name!r}, feature_size={self.feature_size}, tap={self.tap!r}, dropout={self.dropout}, "
            f"first_trainable={self.first_trainable}, pretrained={self.pretrained}"
        )


def _keep_input(stage: nn.Module) -> None:
    """Keep a stage from overwriting its input, which may be a cache that is read again in the next epoch."""
    module: nn.Module | None = stage
    while module is not None:
        if getattr(module, "inplace", False) is True:
            module.inplace = False  # type: ignore[assignment]
        module = next(module.children(), None)
