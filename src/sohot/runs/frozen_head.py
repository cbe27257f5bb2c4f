"""The classifier on frozen features: a logistic regression on what a pre-trained network makes of the images.

Every training of a pre-trained network starts from it, and `--trains head` ends there.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..data.image_batches import ImageInputs
from ..data.labelled import LabelledImages
from ..data.protocols.cross_validation import few_shot_rows
from ..heads.pool_choice import PoolChoice, choose_pool
from ..methods.settings import POOL_STRENGTH
from ..networks.inference import run_batches
from ..networks.trunk_and_tail import TargetClassifier
from ..networks.two_streams import TwoStreams
from ..selection.folds import MOST_FOLDS, Fold, TooFewShots
from ..selection.held_out import HeldOut
from ..training.inputs import Inputs
from .config import RunConfig
from .frozen_problem import FrozenHead, FrozenProblem, LabelledFeatures
from .run_model import build_model
from .run_outputs import IMAGE_BATCH, OUTPUT_BATCH, Shown


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
        pool: Whether unlabelled images count for it, and why; None if it was not asked to learn from any.
    """

    head: FrozenHead
    held_out: HeldOut | None
    pool: PoolChoice | None = None


def frozen_start(
    config: RunConfig,
    model: TwoStreams,
    source: Shown,
    target: Shown,
    device: torch.device,
    *,
    pool: Shown | None = None,
    holds_out: bool,
) -> FrozenStart:
    """Fit a classifier on frozen features to the images that train.

    Args:
        config: The share of the target, λ, the seed of the folds, threads.
        model: The two streams with their initial weights.
        source: Source images that train.
        target: Target images that train.
        device: Where to compute.
        pool: Unlabelled target images to learn from as well; None for none.
        holds_out: Whether to hold out target images in turn, too.
    """
    stream = "source" if target.images is not None else "target"  # the source alone trains the target's stream
    unlabelled = None if pool is None else _labelled(model, "target", pool, config.read_threads, device)
    problem = FrozenProblem(
        _labelled(model, stream, source, config.read_threads, device),
        _labelled(model, "target", target, config.read_threads, device),
        model.num_classes,
        target_share=config.target_weight,
        decay=config.head_decay,
        pool=None if unlabelled is None else unlabelled.rows,
        device=device if device.type == "cuda" else torch.device("cpu"),  # others have no float64
    )
    folds = target_folds(target.images, config.seed) if holds_out and target.images is not None else []
    plain = FrozenStart(problem.solve(), problem.held_out(folds) if folds else None)
    return plain if unlabelled is None else _better(problem, plain, folds, POOL_STRENGTH * config.pool_weight)


def _better(problem: FrozenProblem, plain: FrozenStart, folds: Sequence[Fold], strength: float) -> FrozenStart:
    """Learn from the pool as well; keep that, unless it is clearly worse on held-out images."""
    head, answers = problem.solve_with_pool(strength)
    held = problem.held_out(folds, strength) if folds else None
    both = [] if held is None or plain.held_out is None else [held, plain.held_out]
    choice = choose_pool(answers, both, unit="images")
    return FrozenStart(head, held, choice) if choice.kept else plain._replace(pool=choice)


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
    network = TargetClassifier(trunk, deepcopy(model.tails.of(domain)), nn.Identity(), model.norm_bound).to(device)
    batches = map(inputs.batch, torch.split(torch.arange(len(inputs)), batch))
    return torch.cat([rows.float() for rows in run_batches(network, batches, device)])
