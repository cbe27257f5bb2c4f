"""The classifier on frozen features: a logistic regression on what a pre-trained network makes of the images.

Every training of a pre-trained network starts from it, and `--trains head` ends there.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..data.image_batches import ImageInputs
from ..data.labelled import LabelledImages
from ..data.protocols.cross_validation import few_shot_rows
from ..heads.logistic import fit_logistic
from ..heads.preparation import principal_axes
from ..methods.settings import HeadSettings
from ..networks.cosine import UnitLength
from ..networks.inference import run_batches
from ..networks.trunk_and_tail import TargetClassifier
from ..networks.two_streams import TwoStreams
from ..selection.folds import MOST_FOLDS, Fold, TooFewShots
from ..selection.held_out import HeldOut
from ..training.inputs import Inputs
from .config import RunConfig
from .run_model import build_model
from .run_outputs import IMAGE_BATCH, OUTPUT_BATCH, Shown

TARGET_SHARE = HeadSettings.target_weight or 0.5
"""Share of the target in the cross-entropy, unless --target-weight is given: as in every classifier on features."""

DECAY = HeadSettings.head_decay
"""λ in the unit in which features have a mean square of 1, unless --head-decay is given: likewise."""


class LabelledFeatures(NamedTuple):
    """Features of images of one domain, (n, d), and their classes, (n,)."""

    rows: Tensor
    labels: Tensor


@dataclass(frozen=True)
class FrozenHead:
    """A classifier on frozen features.

    Attributes:
        weight: Shape (classes, features), as of `nn.Linear`.
        bias: Shape (classes,).
    """

    weight: Tensor
    bias: Tensor

    def logits(self, rows: Tensor) -> Tensor:
        """Classify features."""
        return nn.functional.linear(rows, self.weight, self.bias)

    @torch.no_grad()
    def install(self, model: TwoStreams) -> None:
        """Make it the classifier of both domains; one of directions will divide by its temperature."""
        temperature = 1.0 if model.cosine is None else model.cosine
        for head in model.heads.values():
            assert isinstance(head, nn.Linear)
            head.weight.copy_(self.weight * temperature)
            head.bias.copy_(self.bias * temperature)


def has_frozen_head(config: RunConfig) -> bool:
    """Tell whether a run can end with a classifier on frozen features: its network has pre-trained weights.

    A projection has to train, whatever the other layers do.
    """
    return config.projection is None and build_model(config, 2).pretrained


def is_solved(model: TwoStreams) -> bool:
    """Tell whether nothing below the classifier trains, so that the classifier on frozen features is the result."""
    return model.pretrained and model.trains == "head" and model.projection is None


class FrozenStart(NamedTuple):
    """Where a training starts.

    Attributes:
        head: The classifier on frozen features.
        held_out: What such classifiers say about labelled target images that they were fitted without, each held out
            once; None if nobody asked, or if no class has two.
    """

    head: FrozenHead
    held_out: HeldOut | None


def frozen_start(
    config: RunConfig, model: TwoStreams, source: Shown, target: Shown, device: torch.device, *, holds_out: bool
) -> FrozenStart:
    """Fit a classifier on frozen features to the images that train.

    Args:
        config: The share of the target, λ, the seed of the folds, threads.
        model: The two streams with their initial weights.
        source: Source images that train.
        target: Target images that train.
        device: Where to compute.
        holds_out: Whether to hold out target images in turn, too.
    """
    stream = "source" if target.images is not None else "target"  # the source alone trains the target's stream
    problem = FrozenProblem(
        _labelled(model, stream, source, config.read_threads, device),
        _labelled(model, "target", target, config.read_threads, device),
        model.num_classes,
        target_share=config.target_weight,
        decay=config.head_decay,
        device=device if device.type == "cuda" else torch.device("cpu"),  # others have no float64
    )
    held_out = None
    if holds_out and target.images is not None and (folds := target_folds(target.images, config.seed)):
        held_out = problem.held_out(folds)
    return FrozenStart(problem.solve(), held_out)


def target_folds(images: LabelledImages, seed: int) -> list[Fold]:
    """Split labelled target images, in turn, into some that train and some that are held out; none if too few."""
    try:
        return few_shot_rows(images, folds=MOST_FOLDS, seed=seed)
    except TooFewShots:
        return []


def _labelled(
    model: TwoStreams, domain: str, shown: Shown, workers: int | None, device: torch.device
) -> LabelledFeatures | None:
    """Return the features of images with their classes; None if there are no images."""
    if shown.images is None:
        return None
    if shown.from_trunk is not None:
        rows = features_at_rest(model, domain, shown.from_trunk, OUTPUT_BATCH, device, from_trunk=True)
    else:
        read = ImageInputs(shown.images, model.inputs[domain], workers)
        rows = features_at_rest(model, domain, read, IMAGE_BATCH, device, from_trunk=False)
    return LabelledFeatures(rows, torch.tensor(shown.images.labels))


def features_at_rest(
    model: TwoStreams, domain: str, inputs: Inputs, batch: int, device: torch.device, *, from_trunk: bool
) -> Tensor:
    """Return what the classifier of a domain sees before anything trains, without dropout.

    Args:
        model: The two streams with their initial weights.
        domain: "source" or "target": whose stream the rows pass.
        inputs: Images, or outputs of the trunk.
        batch: Number of rows to read together.
        device: Where to compute.
        from_trunk: The inputs are outputs of the trunk.
    """
    trunk = nn.Identity() if from_trunk else model.trunk(domain)
    seen = nn.Identity() if model.cosine is None else UnitLength()
    network = TargetClassifier(trunk, deepcopy(model.tails.of(domain)), seen, model.norm_bound).to(device)
    batches = map(inputs.batch, torch.split(torch.arange(len(inputs)), batch))
    return torch.cat([rows.float() for rows in run_batches(network, batches, device)])


class FrozenProblem:
    """A logistic regression over the images of both domains, or of one.

    It minimises the cross-entropy, in which each domain has its share whatever its number of rows, plus λ‖W‖².

    Args:
        source: Features of the source; None to learn from the target alone.
        target: Features of the target; None to learn from the source alone.
        num_classes: Number of classes.
        target_share: Share of the target in the cross-entropy; None for `TARGET_SHARE`.
        decay: λ on the weights of the features as they are; None for `DECAY`, in the unit of the features.
        device: Where to compute; None for where the features are.

    Example:
        >>> rows, labels = torch.tensor([[0.0], [1.0], [10.0], [11.0]]), torch.tensor([0, 0, 1, 1])
        >>> problem = FrozenProblem(None, LabelledFeatures(rows, labels), 2)
        >>> problem.solve().logits(rows).argmax(1)
        tensor([0, 0, 1, 1])
        >>> problem.held_out([Fold([0, 2], [1, 3]), Fold([1, 3], [0, 2])]).right
        4
    """

    def __init__(
        self,
        source: LabelledFeatures | None,
        target: LabelledFeatures | None,
        num_classes: int,
        *,
        target_share: float | None = None,
        decay: float | None = None,
        device: torch.device | None = None,
    ) -> None:
        parts = [part for part in (source, target) if part is not None]
        rows = torch.cat([part.rows for part in parts]).to(device).double()
        self.num_classes = num_classes
        self.labels = torch.cat([part.labels for part in parts]).to(rows.device)
        self.first_target = 0 if source is None else len(source.rows)
        self.target_share = TARGET_SHARE if target_share is None else target_share
        self.size = rows.shape[1]
        self.mean = rows.mean(0)
        rows = rows - self.mean  # the bias is free, so this changes the conditioning, not the classifier
        self.scale = float(rows.square().mean().sqrt()) or 1.0
        self.decay = None if decay is None else decay / self.scale**2
        # The minimum lies in the span of the rows, and along their principal axes it is found sooner.
        self.axes = principal_axes(rows.unsqueeze(0), min(rows.shape))[0]
        self.rows = rows / self.scale @ self.axes

    def solve(self) -> FrozenHead:
        """Fit the classifier to all rows."""
        return self._solve([torch.ones_like(self.labels, dtype=torch.bool)])[0]

    def held_out(self, folds: Sequence[Fold]) -> HeldOut:
        """Fit without the rows that each fold of the target holds out; return what the classifiers say about them.

        Args:
            folds: Rows of the target.
        """
        kept = [torch.ones_like(self.labels, dtype=torch.bool) for _ in folds]
        held = [torch.tensor(fold.held, device=self.labels.device) + self.first_target for fold in folds]
        for mask, rows in zip(kept, held, strict=True):
            mask[rows] = False
        heads = self._solve(kept, fold_back=False)
        found = [
            HeldOut(head.logits(self.rows[rows]).cpu().numpy(), self.labels[rows].cpu().numpy())
            for head, rows in zip(heads, held, strict=True)
        ]
        return HeldOut.join(found)

    def _solve(self, kept: Sequence[Tensor], *, fold_back: bool = True) -> list[FrozenHead]:
        """Fit one classifier to each choice of rows; on features as they are, or on the prepared ones."""
        stack = self.rows.expand(len(kept), *self.rows.shape)
        labels = self.labels.expand(len(kept), -1)
        decay = torch.stack([self._decay(mask) for mask in kept])
        found = fit_logistic(stack, labels, torch.stack([*map(self._weights, kept)]), decay, self.num_classes)
        heads = [FrozenHead(weight.T, bias) for weight, bias in zip(*found, strict=True)]
        return [self._fold_back(head) for head in heads] if fold_back else heads

    def _decay(self, kept: Tensor) -> Tensor:
        if self.decay is not None:
            return self.rows.new_tensor(self.decay)
        rows = self.rows[kept]
        return DECAY * (rows - rows.mean(0)).square().sum() / (len(rows) * self.size)

    def _weights(self, kept: Tensor) -> Tensor:
        """Weight of each row: domains have their shares, whose rows are equal."""
        weights = kept.double()
        source, target = weights[: self.first_target], weights[self.first_target :]
        shares = (1 - self.target_share, self.target_share) if len(source) and len(target) else (1.0, 1.0)
        for part, share in zip((source, target), shares, strict=True):
            part *= share / part.sum().clamp(min=1)
        return weights

    def _fold_back(self, head: FrozenHead) -> FrozenHead:
        """Fold the preparation of the features into the classifier."""
        weight = head.weight @ self.axes.T / self.scale
        return FrozenHead(weight.float().cpu(), (head.bias - weight @ self.mean).float().cpu())
