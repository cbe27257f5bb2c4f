"""What held-out labels make of candidates: the average of linear classifiers, or one of several networks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from ..methods.settings import HeadSettings
from ..selection.candidates import Candidate
from ..selection.choice import AllFailed, CandidateScore, blending_weights, choose
from ..selection.held_out import HeldOut
from ..training.errors import Diverged
from .result import StackedFit


class Found(NamedTuple):
    """What held-out labels say about candidates.

    Attributes:
        scores: Their scores.
        weights: How much each candidate counts; one of them 1 and the others 0 if one was chosen.
        temperatures: The temperature of each.
        held_out: What the outcome says about the held-out rows.
        reason: Why, in words.
    """

    scores: Sequence[CandidateScore]
    weights: list[float]
    temperatures: list[float]
    held_out: HeldOut
    reason: str

    @property
    def counting(self) -> list[int]:
        """The places of the candidates that count, those that count most first."""
        return sorted(np.flatnonzero(self.weights).tolist(), key=lambda place: -self.weights[place])


def can_be_averaged(candidates: Sequence[Candidate[HeadSettings]]) -> bool:
    """Tell whether candidates are linear classifiers of the same features, so that their average is one too."""
    settings = [one.settings for one in candidates]
    same = {(one.method, one.components, one.norm_bound, one.pool_weight > 0) for one in settings}
    return len(same) == 1 and not any(one.trains_network() for one in settings)


def average(candidates: Sequence[Candidate[HeadSettings]], scores: Sequence[CandidateScore]) -> Found:
    """Weigh candidates by what they say about held-out rows.

    Raises:
        AllFailed: Every candidate failed.
    """
    weights = blending_weights(scores)
    counting = [(one, weight) for one, weight in zip(scores, weights, strict=True) if weight and one.held_out]
    logits = sum(weight * one.held_out.logits / one.temperature for one, weight in counting if one.held_out)
    labels = next(one.held_out.labels for one, _ in counting if one.held_out)
    held_out = HeldOut(np.asarray(logits), labels)
    most = max(range(len(scores)), key=weights.__getitem__)
    share = f"{100 * held_out.right / len(held_out):.1f} % of {len(held_out)} held-out target rows right"
    told = f"{candidates[most].name} counts most, {100 * weights[most]:.0f} %"
    reason = f"the average of {len(counting)} candidates, by the likelihood of the held-out labels: {share}; {told}"
    return Found(scores, weights, [one.temperature for one in scores], held_out, reason)


def pick(scores: Sequence[CandidateScore], default: int) -> Found:
    """Choose one candidate: the default, given by its place, unless the labels clearly speak for another.

    Raises:
        AllFailed: Every candidate failed.
    """
    choice = choose(scores, default=default)
    weights = [float(place == choice.place) for place in range(len(scores))]
    held_out = choice.best.held_out
    if held_out is None:
        raise AllFailed("the chosen candidate failed")
    return Found(scores, weights, [1.0] * len(scores), held_out, choice.reason("rows", brief=True))


def blend(fits: Sequence[StackedFit], shares: Sequence[float]) -> StackedFit:
    """Add up fits that are linear classifiers of the same features, each times its share; a single fit may be any.

    Settings and history are those of the first.

    Raises:
        Diverged: A fit is no longer finite.
    """
    if any(fit.diverged for fit in fits):
        raise Diverged("training diverged (the loss is not finite): lower lr, sigma1, sigma2 or loss_weight")
    first = fits[0]
    sums = {
        name: torch.stack([share * fit.parameters[name] for fit, share in zip(fits, shares, strict=True)]).sum(0)
        for name in first.parameters
        if name.endswith((".classifier", ".bias"))
    }
    return replace(first, parameters={**first.parameters, **sums})
