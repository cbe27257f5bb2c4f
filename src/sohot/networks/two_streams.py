"""The two streams: one network per domain, or one for both, and the classifiers on top."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..functional.norm_bound import bound_norm
from ..functional.plain_checks import check_choice, check_count, check_not_negative
from ..methods.choices import BATCH_NORMS, HEADS, STREAMS, TWO_PASSES
from .backbone import Backbone
from .trunk_and_tail import FrozenTrunk, Tail, TargetClassifier
from .two_passes import TwoPasses, statistics_of

DOMAINS = ("source", "target")

BOTH = "both"
"""Key of a part that serves both domains. It is stored once, so that a checkpoint never holds a tensor twice."""


def key_of(parts: Mapping[str, Any] | nn.ModuleDict, domain: str) -> str:
    """Return the key under which the part of a domain is kept."""
    return BOTH if BOTH in parts else domain


class Parts(nn.ModuleDict):
    """Modules by domain; a module under `BOTH` serves both.

    Example:
        >>> Parts({BOTH: nn.ReLU()}).of("target")
        ReLU()
    """

    def of(self, domain: str) -> Any:
        """Return the part of a domain, its own or the one for both."""
        return self[key_of(self, domain)]


@torch.no_grad()
def tie(source: Backbone, target: Backbone) -> None:
    """Start the source as a copy of the target if both have the same architecture.

    All tensors are copied except those of another shape (a first layer for other input channels). Backbones with
    different names are left alone, and so is a pair of a trained and an untrained one.
    """
    ours, theirs = source.state_dict(), target.state_dict()
    if source.name != target.name or source.pretrained != target.pretrained or len(ours) != len(theirs):
        return
    for own, other in zip(ours.values(), theirs.values(), strict=True):  # an adapter shifts names but keeps the order
        if own.shape == other.shape:
            own.copy_(other)


CPU_ROWS = 64
"""Rows that pass a stream at once on a CPU in training: what they become on the way stays in its cache, which nearly
halves the time of a step."""


class StreamOutput(NamedTuple):
    """The result of a forward pass; the entries of a domain that was not shown are None."""

    source_features: Tensor | None
    target_features: Tensor | None
    source_logits: Tensor | None
    target_logits: Tensor | None
    clip_rate: Tensor | None
    """Share of the rows that the norm bound clipped, a scalar; None without a bound."""


class TwoStreams(nn.Module):
    """Source and target networks with their classifiers.

    A stream is a frozen trunk and a tail that trains; its output φ, bounded in norm, is aligned. The
    classifier sees φ through the backbone's activation and dropout. Two streams of one backbone start as exact copies
    (their frozen trunk never changes and is kept once). A backbone becomes part of the model: pass a new one to each.

    Args:
        target: Network of the target domain, and of the source where `source` is None.
        num_classes: Number of classes.
        source: Network of the source domain if it differs (other architecture or input channels).
        streams: "shared" (one network for both domains) or "separate" (the paper; needed for a given `source`).
        heads: "shared" (one classifier) or "coupled" (one per domain, initially equal, see `head_penalty`).
        trains: "paper", "all" or "head": which stages train, see `Backbone`.
        norm_bound: τ of ‖φ‖² ≤ τ, or None for no bound.
        projection: Size of a linear layer that ends each stream; needed if the domains' feature sizes differ.
        batch_norm: Statistics of batch normalisation in the stages that train: "moving" (as in training from scratch),
            "fixed" (the network's initial ones), or "auto": fixed if the backbone is pre-trained, else moving. "both"
            are the initial ones and second ones, fixed as well: features are means over two passes, see `TwoPasses`.

    Example:
        >>> from sohot.networks import create_backbone
        >>> model = TwoStreams(create_backbone("small-cnn", channels=1), num_classes=10, streams="separate")
        >>> output = model(torch.zeros(4, 1, 32, 32), torch.zeros(2, 1, 32, 32))
        >>> output.source_features.shape, output.target_logits.shape
        (torch.Size([4, 128]), torch.Size([2, 10]))
    """

    def __init__(
        self,
        target: Backbone,
        num_classes: int,
        *,
        source: Backbone | None = None,
        streams: str = "shared",
        heads: str = "shared",
        trains: str = "paper",
        norm_bound: float | None = None,
        projection: int | None = None,
        batch_norm: str = "auto",
    ) -> None:
        super().__init__()
        self.num_classes = check_count(num_classes, "num_classes")
        self.streams = check_choice(streams, STREAMS, "streams")
        self.head_kind = check_choice(heads, HEADS, "heads")
        self.trains = trains
        self.batch_norm = check_choice(batch_norm, BATCH_NORMS, "batch_norm")
        self.norm_bound = None if norm_bound is None else _above_zero(norm_bound)
        self.projection = None if projection is None else check_count(projection, "projection")
        self.feature_size = self.projection or target.feature_size

        networks = self._networks(target, source)
        self.pretrained = all(network.pretrained for network in networks.values())
        self.inputs = {domain: networks[key_of(networks, domain)].input for domain in DOMAINS}
        first = {key: network.first_stage_to_train(trains) for key, network in networks.items()}
        self.trunks = Parts({key: self._trunk(net, first[key]) for key, net in networks.items()})
        self.tails = Parts({key: self._tail(net, first[key]) for key, net in networks.items()})
        if streams == "separate":
            self._separate()
        head = nn.Linear(self.feature_size, num_classes)
        self.heads = Parts({BOTH: head} if heads == "shared" else {"source": deepcopy(head), "target": head})

    def _networks(self, target: Backbone, source: Backbone | None) -> dict[str, Backbone]:
        if self.batch_norm == TWO_PASSES and (source is not None or not statistics_of(target)):
            lacking = "one network for both domains" if source is not None else "a network with batch normalisation"
            raise ValueError(f"batch_norm='{TWO_PASSES}' needs {lacking}")
        if source is None:
            return {BOTH: target}
        if self.streams == "shared":
            raise ValueError("streams='shared' is one network for both domains: a source needs streams='separate'")
        if source is target:
            raise ValueError("source and target are the same Backbone object: leave source out, or build two")
        if self.projection is None and source.feature_size != target.feature_size:
            raise ValueError(
                f"the features of the source ({source.name}: {source.feature_size}) and of the target ({target.name}: "
                f"{target.feature_size}) differ in size: pass projection=SIZE to make them equal"
            )
        tie(source, target)
        return {"source": source, "target": target}

    def _trunk(self, network: Backbone, first: int) -> FrozenTrunk:
        stages = list(network.stages)[:first]
        if self.batch_norm != TWO_PASSES or not stages:
            return FrozenTrunk(*stages)
        return FrozenTrunk(TwoPasses(nn.Sequential(*stages), first=True, last=first == len(network.stages)))

    def _tail(self, network: Backbone, first: int) -> Tail:
        projection = None if self.projection is None else nn.Linear(network.feature_size, self.projection)
        fixed = network.pretrained if self.batch_norm == "auto" else self.batch_norm in ("fixed", TWO_PASSES)
        stages = nn.Sequential(*list(network.stages)[first:])
        if self.batch_norm == TWO_PASSES and len(stages):
            stages = nn.Sequential(TwoPasses(stages, first=first == 0, last=True))
        return Tail(stages, network.activation, network.dropout, projection, fixed)

    def _separate(self) -> None:
        """Give each domain its own copy of what trains, initially equal."""
        if BOTH in self.tails:
            tail = self.tails.pop(BOTH)
            self.tails.update({"source": deepcopy(tail), "target": tail})
            return
        ours, theirs = (self._tail_of(domain).projection for domain in DOMAINS)
        if ours is not None and theirs is not None and ours.weight.shape == theirs.weight.shape:
            ours.load_state_dict(theirs.state_dict())

    def trunk(self, domain: str) -> FrozenTrunk:
        """Frozen stages of a domain; without any (`len` is 0) it returns its input."""
        trunk: FrozenTrunk = self.trunks.of(check_choice(domain, DOMAINS, "domain"))
        return trunk

    def _tail_of(self, domain: str) -> Tail:
        tail: Tail = self.tails.of(domain)
        return tail

    def forward(self, source: Tensor | None, target: Tensor | None, *, from_trunk: bool = False) -> StreamOutput:
        """Run a batch of each domain, or of one.

        Args:
            source: Source images, or None.
            target: Target images, or None.
            from_trunk: The inputs are precomputed outputs of `trunk`.

        Returns:
            Features and logits of the domains shown, and the clip rate.
        """
        shown = {domain: rows for domain, rows in (("source", source), ("target", target)) if rows is not None}
        if not shown:
            raise ValueError("pass a batch of the source, of the target, or of both: both are None")
        if not from_trunk:
            self._check_images(shown)
        features, clip_rate = self._bound(self._features(shown, from_trunk))
        logits = {domain: self._classify(rows, domain) for domain, rows in features.items()}
        return StreamOutput(
            features.get("source"), features.get("target"), logits.get("source"), logits.get("target"), clip_rate
        )

    def _check_images(self, shown: dict[str, Tensor]) -> None:
        for domain, rows in shown.items():
            channels = self.inputs[domain].channels
            if rows.dim() != 4 or rows.shape[1] != channels:
                raise ValueError(
                    f"{domain} images must have the shape (rows, {channels}, height, width), got {tuple(rows.shape)}"
                )

    def _features(self, shown: dict[str, Tensor], from_trunk: bool) -> dict[str, Tensor]:
        if len(shown) == 2 and BOTH in self.tails and shown["source"].shape[1:] == shown["target"].shape[1:]:
            # One pass for both: faster, and batch normalisation sees one batch.
            rows = self._stream(torch.cat([shown["source"], shown["target"]]), "target", from_trunk)
            return {"source": rows[: len(shown["source"])], "target": rows[len(shown["source"]) :]}
        return {domain: self._stream(rows, domain, from_trunk) for domain, rows in shown.items()}

    def _stream(self, rows: Tensor, domain: str, from_trunk: bool) -> Tensor:
        tail = self._tail_of(domain)
        few = self.training and rows.device.type == "cpu" and not tail.sees_batches()
        parts = torch.split(rows, CPU_ROWS) if few else (rows,)
        found = [tail(part if from_trunk else self.trunk(domain)(part)) for part in parts]
        features: Tensor = found[0] if len(found) == 1 else torch.cat(found)
        return features

    def _bound(self, features: dict[str, Tensor]) -> tuple[dict[str, Tensor], Tensor | None]:
        if self.norm_bound is None:
            return features, None
        bounded = {domain: bound_norm(rows, self.norm_bound) for domain, rows in features.items()}
        clipped = torch.cat([flags for _, flags in bounded.values()])
        return {domain: rows for domain, (rows, _) in bounded.items()}, clipped.float().mean()

    def _classify(self, features: Tensor, domain: str) -> Tensor:
        """Map features of a domain to its logits."""
        logits: Tensor = self.heads.of(domain)(self._tail_of(domain).to_classifier(features))
        return logits

    @torch.no_grad()
    def predict(self, images: Tensor, *, from_trunk: bool = False) -> Tensor:
        """Return the logits of the target stream and its classifier, in evaluation mode."""
        was_training = self.training
        self.eval()
        try:
            logits: Tensor = self(None, images, from_trunk=from_trunk).target_logits
        finally:
            self.train(was_training)
        return logits

    def target_only(self) -> TargetClassifier:
        """Copy the target stream and its classifier: all that is needed after training."""
        trunk, tail, head = deepcopy([part.of("target") for part in (self.trunks, self.tails, self.heads)])
        return TargetClassifier(trunk, tail, head, self.norm_bound)

    def parameter_groups(self, lr: float, head_factor: float = 10.0) -> list[dict[str, Any]]:
        """Group what trains for an optimiser.

        Args:
            lr: Learning rate of the stages that train (group "tail").
            head_factor: Factor on it for what starts untrained: the classifiers (group "head") and the projections
                (group "projection").

        Returns:
            One dict with "name", "params" and "lr" for each group that has parameters. λ‖W‖² of the classifiers is
            `head_penalty`: an optimiser with weight decay should exclude the group "head".
        """
        tails = [tail for tail in self.tails.values() if isinstance(tail, Tail)]
        projections = [tail.projection for tail in tails if tail.projection is not None]
        groups: list[dict[str, Any]] = [
            {"name": "tail", "params": [p for tail in tails for p in tail.stages.parameters()], "lr": lr},
            {"name": "projection", "params": [p for layer in projections for p in layer.parameters()]},
            {"name": "head", "params": list(self.heads.parameters())},
        ]
        return [{"lr": lr * head_factor, **group} for group in groups if group["params"]]

    def head_penalty(self, weight_decay: float, coupling: float = 0.0) -> Tensor:
        """λ‖W‖², for two classifiers λ‖W‖² + λ‖W*‖² + β'‖W − W*‖².

        Args:
            weight_decay: λ.
            coupling: β', has no effect on one shared classifier.
        """
        weights = [head.weight for head in self.heads.values() if isinstance(head, nn.Linear)]
        penalty = weight_decay * torch.stack([weight.square().sum() for weight in weights]).sum()
        if len(weights) == 2:
            penalty = penalty + coupling * (weights[0] - weights[1]).square().sum()
        return penalty

    def extra_repr(self) -> str:
        """Show the settings when the module is printed."""
        return (
            f"num_classes={self.num_classes}, streams={self.streams!r}, heads={self.head_kind!r}, "
            f"trains={self.trains!r}, norm_bound={self.norm_bound}, feature_size={self.feature_size}"
        )


def _above_zero(norm_bound: float) -> float:
    if check_not_negative(norm_bound, "norm_bound") == 0:
        raise ValueError("norm_bound must be above 0, got 0: pass None for no bound")
    return float(norm_bound)
