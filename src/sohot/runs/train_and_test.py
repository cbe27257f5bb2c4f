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
from ..data.view_set import Kind
from ..methods.settings import FitSettings
from ..networks.two_streams import TwoStreams
from ..selection.choice import FoldScore
from ..selection.folds import Fold
from ..selection.held_out import HeldOut
from ..training.errors import Diverged
from ..training.evaluation import Evaluation, evaluate
from ..training.inputs import Inputs
from ..training.pool_rows import PoolInputs
from ..training.ranks import Ranks, parting
from ..training.training_run import FitResult, fit, keep_solved
from .batch_shape import make_batches
from .config import RunConfig
from .frozen_head import FrozenStart, frozen_start, is_solved
from .joined_inputs import JoinedInputs
from .run_data import RunData
from .run_model import build_model
from .run_outputs import OutputRecorder, RunOutputs, Shown, target_logits
from .trunk_outputs import OFF, SHARED, view_rows
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
        batch_rows: How many of them a step uses.
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
    batch_rows: int
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

    A network with pre-trained weights starts with a classifier fitted to its frozen features; if nothing below the
    classifier trains, that is the result.

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
    model = build_model(config, len(data.classes))
    if is_solved(model) or not config.pool_weight:  # nothing that unlabelled images could train
        data = replace(data, pool=None)
    used = _Used.of(config, data, fold)
    times = [time.perf_counter()]
    batches = make_batches(config, used.source, used.target)
    rows = sum(len(images) for images in (data.source, data.target) if images is not None)
    if data.pool is not None:
        rows = view_rows(config, "source", data.source)
        rows += sum(view_rows(config, "target", images) for images in (data.target, data.pool))
    place = ranks.from_first(lambda: store.place(config, model, rows))
    epochs = None if config.epochs is None else config.epochs * batches.steps_per_epoch
    settings = config.settings(1 if is_solved(model) else epochs, from_trunk=place != OFF)
    kept: dict[str, Any] = {}
    if begin is None:
        settings = replace(settings, loggers=())
    else:
        kept = {"run_dir": config.out, "resume": config.resume, "config": begin(model, settings)}
    inputs = _inputs(config, model, data, store, place, fold)
    shown = used.shown(inputs, from_trunk=settings.from_trunk)
    start = None
    if model.pretrained:
        holds_out = begin is not None
        start = ranks.from_first(
            lambda: frozen_start(config, model, shown.source, shown.target, device, holds_out=holds_out)
        )
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
        used.evaluate(logits),
        logits,
        Seconds(*(after - before for before, after in pairwise(times))),
        used.sizes(),
        batch_rows=sum(map(len, batches.batch(0))),
        notes=tuple(store.notes),
        outputs=outputs,
        start=start,
        start_evaluation=used.evaluate(None if outputs is None else outputs.first_logits),
    )


class _Inputs(NamedTuple):
    """Inputs of the images that train, plain trunk outputs of theirs, and those of the test images if they are kept."""

    source: Inputs | None
    target: Inputs | None
    test: Inputs | None
    pool: PoolInputs | None = None
    plain: dict[str, Inputs | None] | None = None
    """Without random views, by side; None if the others are plain."""

    def outputs(self, side: str) -> Inputs | None:
        """Return plain trunk outputs."""
        found: Inputs | None = getattr(self, side) if self.plain is None else self.plain[side]
        return found


class _ShownImages(NamedTuple):
    """Images with the outputs of the trunk for them."""

    source: Shown
    target: Shown
    test: Shown
    pool: Shown


class _Used(NamedTuple):
    """The images that a method trains on, without those that a fold holds out, those to test on, and the pool."""

    source: LabelledImages | None
    target: LabelledImages | None
    test: LabelledImages | None
    pool: LabelledImages | None

    @classmethod
    def of(cls, config: RunConfig, data: RunData, fold: Fold | None) -> "_Used":
        method = config.settings().resolved_method()
        source, target = data.source if method.uses_source else None, data.target if method.uses_target else None
        if fold is None:
            return cls(source, target, data.test, data.pool)
        held = _labelled_target(data).subset(fold.held)
        return cls(source, None if target is None else target.subset(fold.train), held, data.pool)

    def shown(self, inputs: _Inputs, *, from_trunk: bool) -> _ShownImages:
        source, target, pool = (
            inputs.outputs(side) if from_trunk and getattr(self, side) is not None else None
            for side in ("source", "target", "pool")
        )
        return _ShownImages(
            Shown(self.source, source),
            Shown(self.target, target),
            Shown(self.test, inputs.test),
            Shown(self.pool, pool),
        )

    def labels(self, domain: str) -> Sequence[int]:
        images: LabelledImages | None = getattr(self, domain)
        return () if images is None else images.labels

    def sizes(self) -> Sizes:
        return Sizes(*(0 if images is None else len(images) for images in (self.source, self.target, self.test)))

    def evaluate(self, logits: Tensor | None) -> Evaluation | None:
        if logits is None or self.test is None:
            return None
        return evaluate(logits, torch.tensor(self.test.labels), self.test.classes)


def _inputs(
    config: RunConfig, model: TwoStreams, data: RunData, store: TrunkStore, place: str, fold: Fold | None
) -> _Inputs:
    """Get the inputs of the images that a method trains on; folds share what passed the trunk."""
    whole, rows = _Used.of(config, data, None), None if fold is None else fold.train
    if whole.pool is None:
        return _Inputs(
            None if whole.source is None else store.inputs(config, model, "source", whole.source, place),
            None if whole.target is None else store.inputs(config, model, "target", whole.target, place, rows),
            _test_outputs(config, model, data, store, place, fold),
        )

    def views(side: str, kind: Kind, rows: Sequence[int] | None = None) -> Inputs | None:
        images: LabelledImages | None = getattr(whole, side)
        domain = "source" if side == "source" else "target"
        return None if images is None else store.view_inputs(config, model, domain, images, place, kind, rows)

    def of_pool(kind: Kind) -> Inputs:
        """Return views of the pool, and of the held-out images: these join it without their labels."""
        pool = store.view_inputs(config, model, "target", _pool(whole), place, kind)
        if fold is None:
            return pool
        held = store.view_inputs(config, model, "target", _labelled_target(data), place, kind, fold.held)
        return JoinedInputs(pool, held)

    plain = {
        "source": views("source", "plain"),
        "target": views("target", "plain", rows),
        "pool": views("pool", "plain"),
    }
    pool = PoolInputs(of_pool("weak"), of_pool("strong"))
    test = _test_outputs(config, model, data, store, place, fold)
    return _Inputs(views("source", "weak"), views("target", "weak", rows), test, pool, plain)


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
    labels = [_labelled_target(data).labels[row] for row in fold.held]
    return FoldScore.of(HeldOut(logits.numpy(), np.array(labels)))


def _test_outputs(
    config: RunConfig, model: TwoStreams, data: RunData, store: TrunkStore, place: str, fold: Fold | None
) -> Inputs | None:
    """Return the trunk outputs of the test images if they are kept anyway; other images are read once."""
    if place == OFF:
        return None
    if fold is not None:
        return store.inputs(config, model, "target", _labelled_target(data), place, fold.held)
    if place == SHARED and data.test is not None:
        return store.shared(config, model, "target", data.test)
    return None


def _pool(used: _Used) -> LabelledImages:
    assert used.pool is not None
    return used.pool


def _labelled_target(data: RunData) -> LabelledImages:
    if data.target is None:
        raise ValueError("a selection needs labelled target images")
    return data.target
