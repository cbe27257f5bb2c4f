"""The network of a run: built from its configuration, or rebuilt empty for the weights of a checkpoint."""

import inspect
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..data.input_spec import InputSpec
from ..networks.backbone import Backbone
from ..networks.names import is_own
from ..networks.registry import create_backbone
from ..networks.two_streams import TwoStreams
from ..networks.user_network import find_function
from ..training.randomness import reproducible
from .config import RunConfig

OPTIONS = (
    *("backbone", "tap", "dropout", "image_size", "channels", "source_backbone", "source_tap", "source_channels"),
    *("streams", "heads", "trains", "batch_norm", "norm_bound", "projection"),
)
"""Options that decide the network, except its weights."""

START = ("weights", "source_weights", "from_scratch")
"""Options that decide its initial weights."""


def build_model(config: RunConfig, num_classes: int) -> TwoStreams:
    """Build the two streams with their initial weights; the same seed gives the same weights.

    They use the channels-last memory format: on a CPU narrow convolutions then run up to twice as fast.
    """
    with reproducible(config.seed, "cpu"):
        model = _streams(config, num_classes, trained=not config.from_scratch)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # missing in torch's stubs
    return model


def describe_model(config: RunConfig, model: TwoStreams) -> dict[str, Any]:
    """Describe a network as JSON values, for `rebuild_model`."""
    stored = config.stored()
    values = {name: stored.get(name) for name in (*OPTIONS, *START)}
    resolved = {"streams": model.streams, "trains": model.trains}
    return {**values, **resolved, "input": asdict(model.inputs["target"])}


def rebuild_model(description: Mapping[str, Any], num_classes: int) -> TwoStreams:
    """Build a described network with placeholder weights, to be replaced by those of a checkpoint.

    This needs neither a network connection nor the file of initial weights; a user's own network needs its file.
    """
    config = RunConfig.from_values({name: description[name] for name in OPTIONS if description.get(name) is not None})
    with reproducible(0, "cpu"):
        model = _streams(config, num_classes, trained=False)
    spec: dict[str, Any] = {**description["input"]}
    model.inputs["target"] = InputSpec(**{**spec, "mean": tuple(spec["mean"]), "std": tuple(spec["std"])})
    return model


def _streams(config: RunConfig, num_classes: int, *, trained: bool) -> TwoStreams:
    target = _backbone(config, config.backbone, config.weights, config.tap, config.channels, trained)
    source = None
    if config.source_backbone or config.source_channels not in (None, config.channels) or config.source_weights:
        name = config.source_backbone or config.backbone
        tap = config.source_tap or (config.tap if name == config.backbone else None)
        weights = config.source_weights or (config.weights if name == config.backbone else None)
        source = _backbone(config, name, weights, tap, config.source_channels or config.channels, trained)
    elif config.source_tap:
        raise ValueError("--source-tap needs --source-backbone, --source-weights or --source-channels")
    return TwoStreams(
        target,
        num_classes,
        source=source,
        streams=config.streams or ("shared" if source is None else "separate"),
        heads=config.heads,
        trains=config.trains or ("paper" if target.pretrained else "all"),
        norm_bound=config.norm_bound,
        projection=config.projection,
        batch_norm=config.batch_norm,
    )


def _backbone(
    config: RunConfig, name: str, weights: Path | None, tap: str | None, channels: int, trained: bool
) -> Backbone:
    if not trained and is_own(name) and not config.from_scratch:
        trained = not _can_start_untrained(name)  # when rebuilt: a checkpoint replaces the initial weights
    return create_backbone(
        name,
        weights=weights,
        pretrained=trained,
        channels=channels,
        tap=tap,
        dropout=config.dropout,
        size=config.image_size,
    )


def _can_start_untrained(name: str) -> bool:
    return "pretrained" in inspect.signature(find_function(name)).parameters
