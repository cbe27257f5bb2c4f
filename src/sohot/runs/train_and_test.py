"""Trains and tests one model, for every run, fold and grid cell: build, batch, train, test."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._device import choose_device
from ..data.labelled import LabelledImages, Progress
from ..methods.settings import FitSettings
from ..networks.two_streams import TwoStreams
from ..selection.choice import FoldScore
from ..selection.folds import Fold
from ..selection.held_out import HeldOut
from ..training.batch_norm import check_batch_norm
from ..training.errors import Diverged
from ..training.evaluation import Evaluation, evaluate
from ..training.ranks import Ranks, parting
from ..training.training_run import FitResult, fit, keep_solved
from .batch_shape import make_batches
from .config import RunConfig
from .frozen_head import FrozenStart, frozen_start, is_solved
from .run_data import RunData
from .run_outputs import OutputRecorder, RunOutputs, target_logits
from .training_inputs import ShownImages, UsedImages, labelled_target, training_inputs
from .trunk_outputs import OFF, view_rows
from .trunk_store import TrunkStore

StepWatcher = Callable[[dict[str, float]], None]
Begin = Callable[[TwoStreams, FitSettings], Mapping[str, Any]]


class Sizes(NamedTuple):
    """Numbers of training images, by domain, and of test images."""

    source: int
    target: int
    test: int


class Seconds(NamedTuple):
    """Time spent on the outputs of the frozen layers, on training, and on the test."""

    features: float
    train: float
    test: float


@dataclass(frozen=True)
class TrainedModel:
    """A trained model and its accuracy.

    Attributes:
        model: The two streams.
        result: The result of `fit`.
        settings: How it was trained.
        evaluation: Its accuracy on the test images; None if there were none, and on all ranks but the first.
        logits: Its logits of these images; None likewise.
        seconds: Where the time went.
        sizes: How many images there were.
        notes: What the user should know, one sentence each.
        outputs: What the model makes of its images; None if the run is not kept, and on all ranks but the first.
        start: The classifier on frozen features from which training started; None for a network without pre-trained
            weights.
        start_evaluation: Its accuracy on the test images; None if that is `evaluation`, or if the run is not kept.
    """

    model: TwoStreams
    result: FitResult
    settings: FitSettings
    evaluation: Evaluation | None
    logits: Tensor | None
    seconds: Seconds
    sizes: Sizes
    notes: tuple[str, ...] = ()
    outputs: RunOutputs | None = None
    start: FrozenStart | None = None
    start_evaluation: Evaluation | None = None

    @property
    def solved(self) -> bool:
        """Whether it is the classifier on frozen features, found without steps of training."""
        return is_solved(self.model)

    def tested(self) -> Evaluation:
        """Return the evaluation; refuse if there were no test images."""
        if self.evaluation is None:
            raise ValueError("there were no images to test on")
        return self.evaluation


def train_and_test(
    config: RunConfig,
    data: RunData,
    store: TrunkStore,
    *,
    fold: Fold | None = None,
    begin: Begin | None = None,
    steps: Callable[[FitSettings], AbstractContextManager[StepWatcher | None]] | None = None,
    progress: Progress | None = None,
) -> TrainedModel:
    """Train a model on the images of the domains that its method uses, and test the last step.

    A network with pre-trained weights starts with a classifier fitted to its frozen features, those of the pool
    included; if nothing below the classifier trains, that is the result.

    Args:
        config: How to build and train it.
        data: The images. Nothing is read of a domain that the method does not use.
        store: Source of trunk outputs.
        fold: Rows of the target's images: some train, the others test instead of `data.test`.
        begin: Called before images pass the trunk, with the untrained model and its settings. It may refuse; else it
            returns what must not change when the run is resumed, and the run is kept in `config.out`. None: nothing is
            kept.
        steps: Returns the watcher of the steps, for the duration of training.
        progress: Receives the number of images tested.

    Raises:
        Diverged: The loss is not a number, or far above its first value.
    """
    ranks, device = Ranks.here(), choose_device(config.device)
    targets = data.targets()
    model = store.parts.network(config, len(data.classes), targets, store.progress)
    check_batch_norm(model, ranks, device)
    if not config.pool_weight:  # as if there were no pool
        data = replace(data, pool=None)
    used = UsedImages.of(config, data, fold)
    times = [time.perf_counter()]
    batches = make_batches(config, used.source, used.target)
    rows = sum(len(images) for images in (data.source, data.target) if images is not None)
    if data.pool is not None and not is_solved(model):
        rows = view_rows(config, "source", data.source)
        rows += sum(view_rows(config, "target", images) for images in (data.target, data.pool))
    place = ranks.from_first(lambda: store.place(config, model, rows))
    epochs = None if config.epochs is None else config.epochs * batches.steps_per_epoch
    settings = config.settings(1 if is_solved(model) else epochs, from_trunk=place != OFF)
    kept: dict[str, Any] = {}
    if begin is None:
        settings = replace(settings, loggers="none")
    else:
        kept = {"run_dir": config.out, "resume": config.resume, "config": begin(model, settings)}
    inputs = training_inputs(config, model, data, store, place, fold)
    shown = used.shown(inputs, from_trunk=settings.from_trunk)
    start = None
    if model.pretrained:
        start = ranks.from_first(lambda: _start(config, model, targets, shown, store, device, kept=begin is not None))
        start.head.install(model)
    recorder = None
    if begin is not None and ranks.first:
        tests_both = start is not None and not is_solved(model)
        recorder = OutputRecorder(model, config.read_threads, tests_both=tests_both)
    times.append(time.perf_counter())
    material = inputs.source, used.labels("source"), inputs.target, used.labels("target"), settings
    with parting(device):
        if is_solved(model):
            result = keep_solved(model, *material, **(kept if ranks.first else {}))
        else:
            with nullcontext(None) if steps is None else steps(settings) as on_step:
                result = fit(model, *material, pool=inputs.pool, batches=batches, on_step=on_step, **kept)
    times.append(time.perf_counter())
    logits, outputs = None, None
    if recorder is not None:
        model.to(device)
        outputs = recorder.record(*shown, progress=progress)
        logits = outputs.logits
    elif used.test is not None and ranks.first:
        logits = target_logits(model.to(device), used.test, config.read_threads, progress, inputs.test)
    times.append(time.perf_counter())
    return TrainedModel(
        model,
        result,
        settings,
        _evaluate(used.test, logits),
        logits,
        Seconds(*(after - before for before, after in pairwise(times))),
        Sizes(*(0 if images is None else len(images) for images in used[:3])),
        notes=tuple(store.notes),
        outputs=outputs,
        start=start,
        start_evaluation=_evaluate(used.test, None if outputs is None else outputs.first_logits),
    )


def _start(
    config: RunConfig,
    model: TwoStreams,
    targets: Sequence[LabelledImages],
    shown: ShownImages,
    store: TrunkStore,
    device: torch.device,
    *,
    kept: bool,
) -> FrozenStart:
    """Fit the classifier on frozen features, once for all trainings that start from it and are not kept."""
    learns = is_solved(model) or config.settings().pool_recipe().terms
    pool = shown.pool if learns and shown.pool.images is not None else None

    def solve() -> FrozenStart:
        return frozen_start(config, model, shown.source, shown.target, device, pool=pool, holds_out=kept)

    return solve() if kept else store.parts.start(config, shown.source, shown.target, pool, solve, targets)


def _evaluate(test: LabelledImages | None, logits: Tensor | None) -> Evaluation | None:
    return None if logits is None or test is None else evaluate(logits, torch.tensor(test.labels), test.classes)


def train_fold(
    config: RunConfig,
    data: RunData,
    fold: Fold,
    store: TrunkStore,
    on_step: Callable[[int, int], None] | None = None,
) -> FoldScore:
    """Train without the held-out target images, and classify these.

    Args:
        config: The candidate.
        data: The images that train, of both domains.
        fold: The rows of `data.target`.
        store: Where trunk outputs are kept between folds and candidates.
        on_step: Receives the finished step and the number of steps.
    """

    def steps(settings: FitSettings) -> AbstractContextManager[StepWatcher | None]:
        return nullcontext(None if on_step is None else lambda record: on_step(int(record["step"]), settings.steps))

    try:
        logits = train_and_test(config, data, store, fold=fold, steps=steps).logits
    except Diverged as error:
        return FoldScore(0, len(fold.held), str(error))
    assert logits is not None  # the images held out are there to test on
    labels = [labelled_target(data).labels[row] for row in fold.held]
    return FoldScore.of(HeldOut(logits.numpy(), np.array(labels)))
