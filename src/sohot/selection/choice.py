"""How candidates did on held-out rows, which of them is chosen, and why."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ..functional.shares import share_error


class AllFailed(RuntimeError):  # noqa: N818 - it names what happened
    """There is nothing to choose: each candidate failed."""


@dataclass(frozen=True)
class FoldScore:
    """How a candidate did on one fold.

    Attributes:
        right: Held-out rows that it named rightly.
        held: Held-out rows.
        failure: Why it could not be trained; None if it was.
    """

    right: int
    held: int
    failure: str | None = None

    @property
    def accuracy(self) -> float:
        """Share of the held-out rows named rightly; NaN if it failed."""
        return self.right / self.held if self.failure is None else float("nan")


@dataclass(frozen=True)
class CandidateScore:
    """How a candidate did on all folds.

    Attributes:
        name: The candidate.
        folds: Its folds, in their order; a candidate that failed need not have been tried on those that follow.
    """

    name: str
    folds: tuple[FoldScore, ...]

    @property
    def right(self) -> int:
        """Held-out rows named rightly, of all folds."""
        return sum(fold.right for fold in self.folds)

    @property
    def held(self) -> int:
        """Held-out rows of all folds."""
        return sum(fold.held for fold in self.folds)

    @property
    def failure(self) -> str | None:
        """Why it could not be trained on a fold; None if it was on all."""
        return next((fold.failure for fold in self.folds if fold.failure is not None), None)

    @property
    def accuracy(self) -> float | None:
        """Share of the held-out rows named rightly, each row counted once; None if it failed."""
        return None if self.failure is not None else self.right / self.held

    @property
    def standard_error(self) -> float | None:
        """Standard error of that share; None if it failed."""
        return None if self.failure is not None else share_error(self.right, self.held)

    @property
    def mean_of_folds(self) -> float:
        """Mean accuracy of the folds, each fold counted once; −∞ if it failed."""
        if self.failure is not None:
            return float("-inf")
        mean = 0.0
        for fold in self.folds:  # not by `sum`, which rounds otherwise from Python 3.12 on
            mean += fold.accuracy / len(self.folds)
        return mean


def tabulate(names: Iterable[str], folds: int, scores: Iterable[FoldScore]) -> list[CandidateScore]:
    """Sort scores that come candidate by candidate, and fold by fold for each.

    >>> tabulate(["s+t", "so"], 2, [FoldScore(right, 4) for right in (1, 2, 3, 4)])[1].accuracy
    0.875
    """
    coming = iter(scores)
    return [CandidateScore(name, tuple(islice(coming, folds))) for name in names]


def score_each(names: Iterable[str], folds: int, score: Callable[[str, int], FoldScore]) -> list[CandidateScore]:
    """Score candidates one by one; one that fails on a fold is not tried on the others.

    Args:
        names: The candidates.
        folds: Number of folds.
        score: Gives the score of a candidate, by name, on a fold, by number.
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
        place: Place of the chosen candidate in the list.
        scores: All candidates, in the order of the list.
        options: The options in which the candidates differ, by candidate.
    """

    place: int
    scores: tuple[CandidateScore, ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def best(self) -> CandidateScore:
        """The score of the chosen one."""
        return self.scores[self.place]

    @property
    def chosen(self) -> str:
        """Name of the chosen one."""
        return self.best.name

    def reason(self, unit: str = "images", *, brief: bool = False) -> str:
        """Say why it was chosen, and how clearly.

        Args:
            unit: What was held out.
            brief: Leave out what the others got, for long lists that begin with the simplest.
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
        """Give everything as JSON holds it."""
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
    """Choose the candidate with the most held-out rows right; the first of those that have exactly as many.

    Args:
        scores: The candidates, in the order of the list, all tested on the same rows.
        options: The options in which the candidates differ, by candidate.
        by: What is compared in place of the rows that are right.

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
        raise AllFailed(f"each of the {len(scores)} candidates failed, the first so: {scores[0].failure}")
    best = max(whole, key=lambda place: by(scores[place]))  # the first of equals
    return Choice(best, tuple(scores), options or {})


def _percent(share: float | None) -> str:
    return "failed" if share is None else f"{100 * share:.1f} %"
