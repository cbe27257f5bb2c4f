"""Labelled target rows that are held out in turn, and what fits without them say about them."""

from typing import TYPE_CHECKING

import numpy as np

from ..selection.choice import FoldScore
from ..selection.folds import MOST_FOLDS, Fold, deal
from ..selection.held_out import HeldOut
from .problem import FeatureProblem
from .result import StackedFit

if TYPE_CHECKING:  # it imports scikit-learn, which those who train on images do without
    from .domains import DomainRows


def shot_folds(rows: "DomainRows", folds: int | None = None) -> list[Fold]:
    """Assign the labelled target rows of each class to folds, by their content, not their order; 5 folds at most.

    Raises:
        TooFewShots: No class has two labelled target rows.
    """
    _, content = np.unique(rows.target, axis=0, return_inverse=True)
    keys = content.reshape(-1).tolist()
    return deal(
        rows.target_labels.tolist(),
        keys,
        folds=MOST_FOLDS if folds is None else folds,
        order=lambda shot: keys[shot[0]],
    )


def score_fold(fit: StackedFit, problem: FeatureProblem, fold: Fold) -> FoldScore:
    """Score a fit, trained without the held-out rows of a fold, on these rows."""
    if fit.diverged:
        return FoldScore(0, len(fold.held), "training diverged")
    logits = fit.predict_logits(problem.target[fold.held]).cpu().double().numpy()
    return FoldScore.of(HeldOut(logits, problem.target_labels[fold.held].numpy()))
