"""Trains a candidate without some of the labelled target images, and asks it for these."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from ..data.labelled import LabelledImages
from ..selection.choice import FoldScore
from ..training.errors import Diverged
from ..training.evaluation import evaluate, predict_logits
from ..training.fitting import fit
from .batching import make_batches
from .building import build_model
from .config import RunConfig
from .run_data import RunData
from .testing import accuracy_on
from .training_inputs import SharedInputs

BATCH = 256


@dataclass(frozen=True)
class Fold:
    """Rows of the labelled target images that train, and those that are held back."""

    train: Sequence[int]
    held: Sequence[int]


def train_fold(
    config: RunConfig,
    data: RunData,
    fold: Fold,
    shared: SharedInputs,
    on_step: Callable[[int, int], None] | None = None,
) -> FoldScore:
    """Train as `fit_run` does, but for the target images that are held back, and count which of these come out right.

    Args:
        config: The candidate.
        data: The images that train, of both domains.
        fold: The rows of `data.target`.
        shared: Where the trunk's outputs are kept between folds and candidates.
        on_step: Told the step that is done and the number of steps.
    """
    target = _target(data)
    method = config.settings().resolved_method()
    model = build_model(config, len(data.classes))
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # which torch's stubs lack
    source = data.source if method.uses_source else None
    rest = target.subset(fold.train) if method.uses_target else None
    cache = shared.place(config, model, len(target) + (0 if data.source is None else len(data.source)))
    batches = make_batches(config, source, rest)
    steps = None if config.epochs is None else config.epochs * batches.steps_per_epoch
    settings = replace(config.settings(steps, from_trunk=cache != "off"), loggers=())
    try:
        fit(
            model,
            None if source is None else shared.whole(config, model, "source", source, cache),
            () if source is None else source.labels,
            None if rest is None else shared.part(config, model, "target", target, fold.train, cache),
            () if rest is None else rest.labels,
            settings,
            batches=batches,
            on_step=None if on_step is None else lambda record: on_step(int(record["step"]), settings.steps),
        )
    except Diverged as error:
        return FoldScore(0, len(fold.held), str(error))
    held = target.subset(fold.held)
    if cache == "off":
        return FoldScore(accuracy_on(model, held, config.read_threads)["correct"], len(held))
    inputs = shared.part(config, model, "target", target, fold.held, cache)
    logits = predict_logits(model, inputs, batch_size=BATCH, from_trunk=True)
    return FoldScore(evaluate(logits, torch.tensor(held.labels), held.classes).correct, len(held))


def _target(data: RunData) -> LabelledImages:
    if data.target is None:
        raise ValueError("a selection needs labelled target images")
    return data.target
