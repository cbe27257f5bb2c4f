"""Whether batch normalisation uses the statistics of target images as well: held-out target images decide."""

import math
from dataclasses import replace
from typing import NamedTuple

from .._device import choose_device
from ..methods.choices import TWO_PASSES
from ..networks.two_passes import statistics_of
from ..selection.calibration import fit_temperature
from ..selection.choice import Gain
from ..selection.held_out import HeldOut
from ..training.ranks import Ranks
from .auto import head_of
from .config import RunConfig
from .frozen_head import frozen_start, target_folds
from .run_data import RunData
from .run_model import build_model
from .target_statistics import LEAST_IMAGES
from .training_inputs import UsedImages, training_inputs
from .trunk_outputs import OFF
from .trunk_store import TrunkStore

LENIENCE = 0.5
"""Standard errors by which one pass must be likelier to be taken. Where two passes help, they gain three to eleven
points; where they do not, they mostly cost one or two (development draws of docs/results/unlabelled.md)."""


class StatisticsChoice(NamedTuple):
    """The outcome of `choose_statistics`.

    Attributes:
        config: The resolved configuration.
        reason: Why, in one sentence; None where there was nothing to choose.
        gain: How much more likely two passes make held-out labels than one; None likewise.
    """

    config: RunConfig
    reason: str | None = None
    gain: Gain | None = None


def choose_statistics(config: RunConfig, data: RunData, store: TrunkStore) -> StatisticsChoice:
    """Resolve `--batch-norm auto` where labelled target images can be held out.

    The classifier on frozen features is fitted twice without each labelled target image: to features by the network's
    own statistics, and to means of these and of features by the statistics of the target images. The second count,
    unless the first make the held-out labels likelier by more than `LENIENCE` standard errors.

    Args:
        config: The network, its images, and the seed of the folds.
        data: The images that train.
        store: Keeps the trunk's outputs.
    """
    if config.batch_norm != "auto" or not _can_choose(config, data):
        return StatisticsChoice(config)
    assert data.target is not None
    folds = target_folds(data.target, config.seed)
    if not folds:
        return StatisticsChoice(config)
    own, both = (_held_out(replace(config, batch_norm=kind), data, store) for kind in ("fixed", TWO_PASSES))
    gain = Gain.of(*(one.log_likelihoods(fit_temperature(one, math.inf)) for one in (both, own)))
    hits = [f"{100 * one.right / len(one):.1f} %" for one in (both, own)]
    counts = gain.mean > -LENIENCE * gain.standard_error
    verdict, kind = ("counts", TWO_PASSES) if counts else ("does not count", "fixed")
    reason = (
        f"the style of the target images {verdict} (--batch-norm {kind}): on frozen features {hits[0]} of {len(own)} "
        f"held-out target images are right with it and {hits[1]} without (log-likelihood {gain.mean:+.3f} ± "
        f"{gain.standard_error:.3f} per image)"
    )
    return StatisticsChoice(replace(config, batch_norm=kind), reason, gain)


def _can_choose(config: RunConfig, data: RunData) -> bool:
    """Tell whether there are target images enough, and one pre-trained network with batch normalisation."""
    if data.target is None or Ranks.here().several:
        return False
    if sum(map(len, data.targets())) < LEAST_IMAGES or config.projection is not None:
        return False
    model = build_model(config, 2)
    return model.pretrained and "source" not in model.trunks and bool(statistics_of(model))


def _held_out(config: RunConfig, data: RunData, store: TrunkStore) -> HeldOut:
    """Return what classifiers on frozen features, fitted without the unlabelled images, say about held-out ones."""
    head = head_of(config)
    model = store.parts.network(head, len(data.classes), data.targets(), store.progress)
    alone = replace(data, pool=None, test=None)
    rows = sum(map(len, alone.trained()))
    place = store.place(head, model, rows)
    inputs = training_inputs(head, model, alone, store, place, None)
    shown = UsedImages.of(head, alone, None).shown(inputs, from_trunk=place != OFF)
    device = choose_device(head.device)
    held = frozen_start(head, model, shown.source, shown.target, device, holds_out=True).held_out
    assert held is not None  # there are folds
    return held
