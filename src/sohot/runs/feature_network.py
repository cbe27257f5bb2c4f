"""What made some features: a backbone, its weights, its tap, its input and the views of an image; stored with them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..data.input_spec import InputSpec
from ..data.views import check_views
from ..methods.options import WIDTH
from ..networks.backbone import Backbone
from ..networks.registry import create_backbone
from ..networks.trunk_cache import trunk_key
from ..training.randomness import reproducible


@dataclass(frozen=True)
class FeatureNetwork:
    """All that the features of an image depend on, apart from the image.

    Attributes:
        backbone: Name of the network.
        tap: Where its features are taken.
        weights: A hash of its layers and weights.
        input: Size and normalisation of its images.
        views: Views of an image that the features are averaged over.
    """

    backbone: str
    tap: str
    weights: str
    input: InputSpec
    views: int = 1

    @classmethod
    def of(cls, backbone: Backbone, views: int = 1) -> "FeatureNetwork":
        """Describe a network."""
        return cls(backbone.name, backbone.tap, trunk_key(backbone, ())[:16], backbone.input, check_views(views))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "FeatureNetwork":
        """Read a description that `as_json` wrote; a ValueError says what is wrong with it."""
        try:
            backbone, tap, weights = (str(values[name]) for name in ("backbone", "tap", "weights"))
            spec = InputSpec(**values["input"])
            WIDTH.check(spec.size, "size")
            return cls(backbone, tap, weights, spec, check_views(values.get("views", 1)))
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"the network is not described in full ({type(error).__name__}: {error})") from None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values; one view, the usual, is not mentioned."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return values if self.views > 1 else {name: value for name, value in values.items() if name != "views"}

    def build(self, weights: Path | None = None) -> Backbone:
        """Build the network again and check that it is the same.

        Args:
            weights: File of its weights; None for those that come with it.

        Raises:
            ValueError: It is another network, by its weights, layers or input.
        """
        spec = self.input
        built = create_feature_backbone(
            self.backbone, weights=weights, channels=spec.channels, tap=self.tap, size=spec.size
        )
        here = FeatureNetwork.of(built, self.views)
        if here.input != self.input:
            raise ValueError(f"the features were made by {self.backbone} with another input: {spec}, not {here.input}")
        if here.weights != self.weights:
            ours = (
                "those it has here; give their file with --weights FILE" if weights is None else f"those in {weights}"
            )
            raise ValueError(f"the features were made by {self.backbone} with other weights or layers than {ours}")
        return built


def create_feature_backbone(
    name: str, *, weights: Path | None, channels: int, tap: str | None, size: int | None
) -> Backbone:
    """Build a backbone for features: without dropout, and the same every time, even without trained weights."""
    with reproducible(0, "cpu"):
        return create_backbone(name, weights=weights, channels=channels, tap=tap, dropout="none", size=size)


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """Say in which value two stored descriptions of networks differ first; None if they are the same.

    >>> differing({"backbone": "lite0"}, {"backbone": "lite0", "views": 2})
    'views 1 and 2'
    """
    full = [{**values, "views": values.get("views", 1)} for values in (one, other)]
    for key in {**full[0], **full[1]}:
        if full[0].get(key) != full[1].get(key):
            return f"{key} {full[0].get(key)!r} and {full[1].get(key)!r}"
    return None
