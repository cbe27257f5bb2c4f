"""Which candidate is chosen by held-out images, and how that is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..functional.shares import share_error
from ..training.errors import TrainingError


@dataclass(frozen=True)
class FoldScore:
    """How a candidate did on one fold.

    Attributes:
        right: Held-out images that it named rightly.
        images: Held-out images.
        failure: Why it could not be trained; None if it was.
    """

    right: int
    images: int
    failure: str | None = None


@dataclass(frozen=True)
class CandidateScore:
    """How a candidate did on all folds.

    Attributes:
        name: The candidate.
        folds: Its folds, in their order; of a candidate that failed, those before and the one that did.
    """

    name: str
    folds: tuple[FoldScore, ...]

    @property
    def right(self) -> int:
        """Held-out images named rightly, of all folds."""
        return sum(fold.right for fold in self.folds)

    @property
    def images(self) -> int:
        """Held-out images of all folds."""
        return sum(fold.images for fold in self.folds)

    @property
    def failure(self) -> str | None:
        """Why it could not be trained on a fold; None if it was on all."""
        return next((fold.failure for fold in self.folds if fold.failure is not None), None)

    @property
    def accuracy(self) -> float | None:
        """Share of the held-out images named rightly, each image counted once; None if it failed."""
        return None if self.failure is not None else self.right / self.images

    @property
    def standard_error(self) -> float | None:
        """Standard error of that share; None if it failed."""
        return None if self.failure is not None else share_error(self.right, self.images)


@dataclass(frozen=True)
class Choice:
    """The outcome of a selection.

    Attributes:
        chosen: Name of the candidate that was chosen.
        scores: All candidates, in the order of the list.
        options: The options in which the candidates differ, by candidate.
    """

    chosen: str
    scores: tuple[CandidateScore, ...]
    options: Mapping[str, Mapping[str, Any]]

    @property
    def best(self) -> CandidateScore:
        """The score of the chosen one."""
        return next(score for score in self.scores if score.name == self.chosen)

    def reason(self) -> str:
        """Say why it was chosen, and how clearly."""
        best = self.best
        accuracy, error = best.accuracy or 0.0, best.standard_error or 0.0
        others = [score for score in self.scores if score.name != self.chosen]
        told = ", ".join(f"{one.name} {_percent(one.accuracy)}" for one in others)
        equal = sum(score.accuracy == accuracy for score in others)
        near = sum(score.accuracy is not None and score.accuracy >= accuracy - error for score in others)
        text = f"{best.name}: {_percent(accuracy)} of {best.images} held-out target images over {len(best.folds)} folds"
        text += f", {told}" if told else ""
        if equal:
            text += f"; the first in the list of {equal + 1} with that score"
        if others:
            text += f"; {near} of the other {len(others)} within one standard error ({100 * error:.1f})"
        return text

    def as_json(self) -> dict[str, Any]:
        """Give everything as JSON holds it."""
        return {
            "chosen": self.chosen,
            "reason": self.reason(),
            "folds": len(self.best.folds),
            "held_out_images": self.best.images,
            "candidates": [
                {
                    "name": score.name,
                    "options": dict(self.options.get(score.name, {})),
                    "accuracy": score.accuracy,
                    "standard_error": score.standard_error,
                    "right": [fold.right for fold in score.folds],
                    "images": [fold.images for fold in score.folds],
                    "failure": score.failure,
                }
                for score in self.scores
            ],
        }


def choose(scores: Sequence[CandidateScore], options: Mapping[str, Mapping[str, Any]]) -> Choice:
    """Choose the candidate with the most held-out images right; the first of those that have exactly as many.

    Args:
        scores: The candidates, in the order of the list.
        options: The options in which the candidates differ, by candidate.

    Raises:
        TrainingError: Every candidate failed.

    Example:
        >>> scores = [CandidateScore(name, (FoldScore(right, 4),)) for name, right in (("s+t", 2), ("so", 3), ("m", 3))]
        >>> choose(scores, {}).reason()
        'so: 75.0 % of 4 held-out target images over 1 folds, s+t 50.0 %, m 75.0 %; the first in the list of 2 with
        that score; 1 of the other 2 within one standard error (23.6)'
    """
    whole = [score for score in scores if score.failure is None]
    if not whole:
        raise TrainingError(f"each of the {len(scores)} candidates failed, the first so: {scores[0].failure}")
    best = max(whole, key=lambda score: score.right)  # all were tested on the same images; max keeps the first
    return Choice(best.name, tuple(scores), options)


def _percent(share: float | None) -> str:
    return "failed" if share is None else f"{100 * share:.1f} %"
