"""How candidates scored on held-out rows, which one is chosen, and why."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ..functional.shares import share_error


class AllFailed(RuntimeError):  # noqa: N818 - it names what happened
    """Every candidate failed, so there is nothing to choose."""


@dataclass(frozen=True)
class FoldScore:
    """The score of a candidate on one fold.

    Attributes:
        right: Number of held-out rows classified correctly.
        held: Number of held-out rows.
        failure: Why training failed; None if it succeeded.
    """

    right: int
    held: int
    failure: str | None = None

    @property
    def accuracy(self) -> float:
        """Share of held-out rows classified correctly; NaN if training failed."""
        return self.right / self.held if self.failure is None else float("nan")


@dataclass(frozen=True)
class CandidateScore:
    """The score of a candidate on all folds.

    Attributes:
        name: The candidate.
        folds: Its scores, in fold order; after a failure the remaining folds may be missing.
    """

    name: str
    folds: tuple[FoldScore, ...]

    @property
    def right(self) -> int:
        """Number of held-out rows classified correctly, over all folds."""
        return sum(fold.right for fold in self.folds)

    @property
    def held(self) -> int:
        """Number of held-out rows, over all folds."""
        return sum(fold.held for fold in self.folds)

    @property
    def failure(self) -> str | None:
        """Why training failed on a fold; None if it succeeded on all."""
        return next((fold.failure for fold in self.folds if fold.failure is not None), None)

    @property
    def accuracy(self) -> float | None:
        """Share of held-out rows classified correctly, each row counted once; None if training failed."""
        return None if self.failure is not None else self.right / self.held

    @property
    def standard_error(self) -> float | None:
        """Standard error of that share; None if training failed."""
        return None if self.failure is not None else share_error(self.right, self.held)

    @property
    def mean_of_folds(self) -> float:
        """Mean accuracy over the folds, each fold counted once; −∞ if training failed."""
        if self.failure is not None:
            return float("-inf")
        mean = 0.0
        for fold in self.folds:  # not `sum`, which rounds differently since Python 3.12
            mean += fold.accuracy / len(self.folds)
        return mean


def tabulate(names: Iterable[str], folds: int, scores: Iterable[FoldScore]) -> list[CandidateScore]:
    """Group scores that arrive candidate by candidate and, for each, fold by fold.

    >>> tabulate(["s+t", "so"], 2, [FoldScore(right, 4) for right in (1, 2, 3, 4)])[1].accuracy
    0.875
    """
    coming = iter(scores)
    return [CandidateScore(name, tuple(islice(coming, folds))) for name in names]


def score_each(names: Iterable[str], folds: int, score: Callable[[str, int], FoldScore]) -> list[CandidateScore]:
    """Score candidates one by one; a candidate that fails on a fold skips the remaining folds.

    Args:
        names: The candidates.
        folds: Number of folds.
        score: Returns the score of a candidate (by name) on a fold (by number).
    """
    found = []
    for name in names:
        scores: list[FoldScore] = []
        while len(scores) < folds and not (scores and scores[-1].failure):
            scores.append(score(name, len(scores)))
        found.append(CandidateScore(name, tuple(scores)))
    return found


@dataclass(frozen=True)
class Choice:
    """The outcome of a selection.

    Attributes:
        place: Index of the chosen candidate.
        scores: The scores of all candidates, in list order.
        options: The options in which the candidates differ, by candidate.
    """

    place: int
    scores: tuple[CandidateScore, ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def best(self) -> CandidateScore:
        """Score of the chosen candidate."""
        return self.scores[self.place]

    @property
    def chosen(self) -> str:
        """Name of the chosen candidate."""
        return self.best.name

    def reason(self, unit: str = "images", *, brief: bool = False) -> str:
        """Explain why it was chosen, and by what margin.

        Args:
            unit: What was held out.
            brief: Omit the scores of the others, for long lists that start with the simplest.
        """
        best = self.best
        accuracy, error = best.accuracy or 0.0, best.standard_error or 0.0
        others = [score for place, score in enumerate(self.scores) if place != self.place]
        equal = sum(score.accuracy == accuracy for score in others)
        near = sum(score.accuracy is not None and score.accuracy >= accuracy - error for score in others)
        text = f"{best.name}: {_percent(accuracy)} of {best.held} held-out target {unit}"
        if brief:
            text += f" right (standard error {100 * error:.1f})"
            text += f"; the simplest of {equal + 1} candidates with that score" if equal else ""
            return f"{text}; {near} of the other {len(others)} lie within one standard error"
        text += f" over {len(best.folds)} folds"
        text += "".join(f", {one.name} {_percent(one.accuracy)}" for one in others)
        text += f"; the first in the list of {equal + 1} with that score" if equal else ""
        if others:
            text += f"; {near} of the other {len(others)} within one standard error ({100 * error:.1f})"
        return text

    def as_json(self) -> dict[str, Any]:
        """Return everything in a form that JSON can hold."""
        return {
            "chosen": self.chosen,
            "reason": self.reason(),
            "folds": len(self.best.folds),
            "held_out_images": self.best.held,
            "candidates": [
                {
                    "name": score.name,
                    "options": dict(self.options.get(score.name, {})),
                    "accuracy": score.accuracy,
                    "standard_error": score.standard_error,
                    "right": [fold.right for fold in score.folds],
                    "images": [fold.held for fold in score.folds],
                    "failure": score.failure,
                }
                for score in self.scores
            ],
        }


def choose(
    scores: Sequence[CandidateScore],
    options: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    by: Callable[[CandidateScore], float] = lambda score: score.right,
) -> Choice:
    """Choose the candidate with the most correct held-out rows; of equal candidates, the first.

    Args:
        scores: The candidates, in list order, all tested on the same rows.
        options: The options in which the candidates differ, by candidate.
        by: The value to compare instead of the number of correct rows.

    Raises:
        AllFailed: Every candidate failed.

    Example:
        >>> scores = [CandidateScore(name, (FoldScore(right, 4),)) for name, right in (("s+t", 2), ("so", 3), ("m", 3))]
        >>> choose(scores).reason()
        'so: 75.0 % of 4 held-out target images over 1 folds, s+t 50.0 %, m 75.0 %; the first in the list of 2 with
        that score; 1 of the other 2 within one standard error (23.6)'
        >>> choose(scores).reason("rows", brief=True)
        'so: 75.0 % of 4 held-out target rows right (standard error 23.6); the simplest of 2 candidates with that score;
        1 of the other 2 lie within one standard error'
    """
    whole = [place for place, score in enumerate(scores) if score.failure is None]
    if not whole:
        raise AllFailed(f"all {len(scores)} candidates failed; the first failure: {scores[0].failure}")
    best = max(whole, key=lambda place: by(scores[place]))  # the first of equals
    return Choice(best, tuple(scores), options or {})


def _percent(share: float | None) -> str:
    return "failed" if share is None else f"{100 * share:.1f} %"
