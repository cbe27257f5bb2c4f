"""Whether the pool helped: held-out labels decide, and how sure the classifier is of the pool's rows."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch

from ..methods.settings import HeadSettings
from ..selection.calibration import fit_temperature
from ..selection.choice import CandidateScore, Gain
from ..selection.folds import Fold
from ..selection.held_out import HeldOut, Logits
from ..training.collapse import SWALLOWED
from .fit import fit_stack
from .problem import FeatureProblem
from .result import StackedFit
from .shots import score_fold

_STRANGE = 0.8
"""How sure the classifier without the pool must be of the pool's rows, relative to held-out target rows. It is 0.9 to
1.1 times as sure of target rows, also of unknown classes, and 0.1 to 0.7 times as sure of noise and of images that show
something else (docs/results/unlabelled-features.md)."""


class PoolChoice(NamedTuple):
    """Whether to keep what was learned from a pool, and why, in one sentence."""

    kept: bool
    reason: str


def choose_pool(answers: Sequence[Logits], held_out: Sequence[HeldOut] = (), *, unit: str = "rows") -> PoolChoice:
    """Decide whether a fit with a pool is kept.

    It is kept, unless it failed, one class swallows the pool, the pool looks like something else, or held-out labels
    speak clearly against it. They are too few to speak clearly for a pool that helps by a point or two.

    Args:
        answers: Logits of the rows of the pool, of the fits with the pool and without it; empty if not known.
        held_out: What both say about held-out target rows, which were part of the pool; empty if there are none.
        unit: What a row is called.

    Example:
        >>> sure = np.asarray([[2.0, 0.0], [0.0, 2.0]] * 4)
        >>> choose_pool([sure, sure / 2])
        PoolChoice(kept=True, reason='the unlabelled rows count; there is no held-out label to say whether they help')
        >>> choose_pool([np.asarray([[2.0, 0.0]] * 8), sure]).reason
        'the unlabelled rows do not count: with them one class takes 50 % of them from the others'
    """
    if answers and not np.isfinite(answers[0]).all():
        return _left_out("training with them diverged", unit)
    if answers and (taken := _largest_win(*answers)) >= SWALLOWED:
        return _left_out(f"with them one class takes {100 * taken:.0f} % of them from the others", unit)
    if not held_out:
        return PoolChoice(True, f"the unlabelled {unit} count; there is no held-out label to say whether they help")
    sure, usual = _confidence(answers[1]), _confidence(held_out[1].logits)
    if sure < _STRANGE * usual:
        told = f"without them the classifier is {100 * sure:.0f} % sure of them, and of held-out target {unit}"
        return _left_out(f"they seem to show something else ({told} {100 * usual:.0f} %)", unit)
    hits = [f"{100 * one.right / len(one):.1f} %" for one in held_out]
    told = f"of {len(held_out[0])} held-out target {unit}, {hits[0]} are right with them and {hits[1]} without"
    # Each at its most likely temperature: a fit with a pool is surer of every row, which alone is no gain.
    likely = [one.log_likelihoods(fit_temperature(one, math.inf)) for one in held_out]
    loss = Gain.of(likely[1], likely[0])
    told += f" (log-likelihood {-loss.mean:+.3f} ± {loss.standard_error:.3f} per {unit.rstrip('s')})"
    return (
        _left_out(f"{told}, which is clearly worse", unit)
        if loss.is_clear
        else PoolChoice(True, f"the unlabelled {unit} count: {told}")
    )


def _left_out(why: str, unit: str) -> PoolChoice:
    return PoolChoice(False, f"the unlabelled {unit} do not count: {why}")


def _largest_win(one: Logits, other: Logits) -> float:
    """Largest share of rows that a class wins from `other` to `one`."""
    counts = [np.bincount(logits.argmax(axis=1), minlength=one.shape[1]) for logits in (one, other)]
    return float((counts[0] - counts[1]).max() / len(one))


def _confidence(logits: Logits) -> float:
    """Mean probability of the likeliest class."""
    from scipy.special import softmax  # type: ignore[import-untyped]  # takes a moment to import

    return float(softmax(logits, axis=1).max(axis=1).mean())


def pool_answers(problem: FeatureProblem, fits: Sequence[StackedFit]) -> list[Logits]:
    """Return what fits say about the pool of a problem."""
    if problem.pool is None:
        raise ValueError("the problem has no pool")
    return [fit.predict_logits(problem.pool).cpu().double().numpy() for fit in fits]


def fit_better(
    problem: FeatureProblem, settings: HeadSettings, folds: Sequence[Fold], device: str | torch.device
) -> tuple[StackedFit, str | None]:
    """Train with the pool and without it, on all rows and without the held-out rows of each fold, all at once.

    Args:
        problem: The rows.
        settings: How to train.
        folds: Target rows to hold out, to calibrate and to choose by; may be empty.
        device: Where to train.

    Returns:
        The better fit, calibrated, and why it is the better one; None if no pool is looked at.
    """
    ways = problem.with_and_without_pool(settings)
    parts = [part for way in ways for part in (way, *(way.without(fold) for fold in folds))]
    fits = iter(fit_stack(parts, [settings] * len(parts), device=device))
    found, scores = [], []
    for _ in ways:
        whole, *others = islice(fits, 1 + len(folds))
        told = [score_fold(fit, problem, fold) for fit, fold in zip(others, folds, strict=True)]
        found.append(whole)
        scores.append(CandidateScore(settings.method, tuple(told)))
    kept, reason = True, None
    if len(ways) > 1:
        held_out = [one.held_out for one in scores if one.held_out is not None]
        kept, reason = choose_pool(pool_answers(problem, found), held_out if len(held_out) == len(ways) else ())
    place = 0 if kept else 1
    return replace(found[place], temperature=scores[place].temperature), reason
