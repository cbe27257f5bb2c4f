"""Backbones by name."""

from collections.abc import Callable
from pathlib import Path

from .backbone import Backbone
from .options import BackboneOptions
from .small_cnn import build_small_cnn

_BUILDERS: dict[str, Callable[[BackboneOptions], Backbone]] = {"small-cnn": build_small_cnn}


def backbone_names() -> list[str]:
    """Names that `create_backbone` knows."""
    return [*_BUILDERS]


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
    """Build a backbone."""
    file = None if weights is None else Path(weights)
    options = BackboneOptions(name, file, pretrained, channels, tap, dropout, size)
    return _BUILDERS[name](options)
