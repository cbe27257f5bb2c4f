"""How candidates scored on held-out rows, which one is chosen, and why."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..functional.shares import share_error
from .calibration import fit_temperature
from .held_out import HeldOut, Logits

CLEAR = 2.0
"""Standard errors by which a candidate must lead the default to replace it. By one, candidates that are no better are
taken for better now and then, by two hardly ever: docs/results/choosing.md."""

_ROUNDING = 1e-6  # nats: by less, candidates differ only in how their numbers were added up


class AllFailed(RuntimeError):  # noqa: N818 - it names what happened
    """Every candidate failed, so there is nothing to choose."""


@dataclass(frozen=True)
class FoldScore:
    """The score of a candidate on one fold.

    Attributes:
        right: Number of held-out rows classified correctly.
        held: Number of held-out rows.
        failure: Why training failed; None if it succeeded.
        held_out: What it says about the held-out rows; None if training failed.
    """

    right: int
    held: int
    failure: str | None = None
    held_out: HeldOut | None = None

    @classmethod
    def of(cls, held_out: HeldOut) -> "FoldScore":
        """Score what a candidate says about held-out rows; NaN among its logits counts as a failure."""
        if not np.isfinite(held_out.logits).all():
            return cls(0, len(held_out), "its logits are not finite")
        return cls(held_out.right, len(held_out), None, held_out)

    @property
    def accuracy(self) -> float:
        """Share of held-out rows classified correctly; NaN if training failed."""
        return self.right / self.held if self.failure is None else float("nan")


@dataclass(frozen=True)
class CandidateScore:
    """The score of a candidate on all folds.

    Candidates are compared by the log-likelihood of the true classes of held-out rows, after dividing the logits by a
    temperature. A row that is nearly right then says more than a hit or a miss does, and a candidate that is merely too
    sure of itself loses nothing, because probabilities are calibrated in the same way afterwards.

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
        """Share of held-out rows classified correctly, each row counted once; None if training failed, or of none."""
        return None if self.failure is not None or not self.held else self.right / self.held

    @property
    def standard_error(self) -> float | None:
        """Standard error of that share; None if training failed."""
        return None if self.failure is not None or not self.held else share_error(self.right, self.held)

    @cached_property
    def held_out(self) -> HeldOut | None:
        """What it says about all held-out rows, fold by fold; None if training failed."""
        found = [fold.held_out for fold in self.folds if fold.held_out is not None]
        return None if self.failure is not None or not found else HeldOut.join(found)

    @cached_property
    def temperature(self) -> float:
        """The temperature that suits its held-out logits."""
        return 1.0 if self.held_out is None else fit_temperature(self.held_out)

    @cached_property
    def log_likelihoods(self) -> Logits:
        """Logarithm of the calibrated probability of each held-out row's true class; −∞ if training failed."""
        if self.held_out is None:
            return np.full(self.held, -np.inf)
        return self.held_out.log_likelihoods(self.temperature)

    @property
    def log_likelihood(self) -> float | None:
        """Their mean; None if training failed."""
        return None if self.failure is not None or not self.held else float(self.log_likelihoods.mean())


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


class Gain(NamedTuple):
    """How much more likely one candidate makes the true class of a held-out row than another, in nats."""

    mean: float
    standard_error: float

    @classmethod
    def of(cls, one: Logits, other: Logits) -> "Gain":
        """Compare the log-likelihoods of two candidates row by row."""
        gains = one - other
        error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else np.inf
        return cls(float(gains.mean()), float(error))

    @property
    def is_clear(self) -> bool:
        """Whether it is too large to be chance."""
        return self.mean > max(CLEAR * self.standard_error, _ROUNDING)


@dataclass(frozen=True)
class Choice:
    """The outcome of a selection.

    Attributes:
        place: Index of the chosen candidate.
        scores: The scores of all candidates, in list order.
        options: The options in which the candidates differ, by candidate.
        default: Index of the candidate that is taken where labels cannot tell.
        leader: Index of the candidate with the highest held-out log-likelihood.
        because: Why it was chosen, where another rule than that of `choose` decided.
    """

    place: int
    scores: tuple[CandidateScore, ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    default: int = 0
    leader: int = 0
    because: str | None = None

    @property
    def best(self) -> CandidateScore:
        """Score of the chosen candidate."""
        return self.scores[self.place]

    @property
    def chosen(self) -> str:
        """Name of the chosen candidate."""
        return self.best.name

    @property
    def is_told(self) -> bool:
        """Whether the labels say that the chosen candidate is better than the default."""
        return self.place != self.default

    def reason(self, unit: str = "images", *, brief: bool = False) -> str:
        """Explain why it was chosen, and by what margin.

        Args:
            unit: What was held out.
            brief: Omit the scores of those that were not chosen.
        """
        if not self.best.held and self.because is not None:
            return self.because
        text = f"{self.chosen}: {_percent(self.best.accuracy)} of {self.best.held} held-out target {unit} right"
        if not brief:
            others = [score for place, score in enumerate(self.scores) if place != self.place]
            text += "".join(f", {one.name} {_percent(one.accuracy)}" for one in others)
        return f"{text}; {self._because(unit)}"

    def _because(self, unit: str) -> str:
        if self.because is not None:
            return self.because
        default, leader = self.scores[self.default], self.scores[self.leader]
        if len(self.scores) == 1:
            return "the only candidate"
        if default.failure is not None:
            return f"{default.name} failed, and of the others it makes the true classes most likely"
        if self.leader == self.default:
            return "no other candidate makes their true classes more likely"
        gain = Gain.of(leader.log_likelihoods, default.log_likelihoods)
        told = f"log-likelihood {gain.mean:+.3f} ± {gain.standard_error:.3f} per {unit.rstrip('s')}"
        if self.is_told:
            return f"it makes their true classes more likely than {default.name} does, clearly ({told})"
        return f"the labels cannot tell {leader.name} from it ({told}), so the default stays"

    def as_json(self) -> dict[str, Any]:
        """Return everything in a form that JSON can hold."""
        return {
            "chosen": self.chosen,
            "reason": self.reason(),
            "because": self._because("images"),
            "default": self.scores[self.default].name,
            "told_apart": self.is_told,
            "folds": len(self.best.folds),
            "held_out_images": self.best.held,
            "candidates": [
                {
                    "name": score.name,
                    "options": dict(self.options.get(score.name, {})),
                    "accuracy": score.accuracy,
                    "standard_error": score.standard_error,
                    "log_likelihood": score.log_likelihood,
                    "temperature": score.temperature,
                    "right": [fold.right for fold in score.folds],
                    "images": [fold.held for fold in score.folds],
                    "failure": score.failure,
                }
                for score in self.scores
            ],
        }


def choose(
    scores: Sequence[CandidateScore], options: Mapping[str, Mapping[str, Any]] | None = None, *, default: int = 0
) -> Choice:
    """Choose the candidate that makes the true classes of held-out rows most likely; if that is not clear, the default.

    With a handful of labels per class the best of many candidates is mostly the luckiest. So a candidate replaces the
    default only if its held-out log-likelihood, compared row by row, is higher by two standard errors.

    Args:
        scores: The candidates, in list order, all tested on the same rows; of equals the default or the first leads.
        options: The options in which the candidates differ, by candidate.
        default: Index of the candidate to take where labels cannot tell.

    Raises:
        AllFailed: Every candidate failed.

    Example:
        >>> def score(name, margin):
        ...     logits = [[margin + 0.1 * row, 0.0] for row in range(9)]
        ...     return CandidateScore(name, (FoldScore.of(HeldOut(logits, [0] * 8 + [1])),))
        >>> choose([score("s+t", 1.0), score("so", 1.1)]).reason("rows")
        's+t: 88.9 % of 9 held-out target rows right, so 88.9 %; the labels cannot tell so from it (log-likelihood
        +0.0... ± 0.0... per row), so the default stays'
    """
    whole = [place for place, score in enumerate(scores) if score.failure is None]
    if not whole:
        raise AllFailed(f"all {len(scores)} candidates failed; the first failure: {scores[0].failure}")
    leader = max(whole, key=lambda place: (scores[place].log_likelihoods.mean(), place == default))
    is_clear = default not in whole or (
        leader != default and Gain.of(scores[leader].log_likelihoods, scores[default].log_likelihoods).is_clear
    )
    return Choice(leader if is_clear else default, tuple(scores), options or {}, default, leader)


def blending_weights(scores: Sequence[CandidateScore]) -> list[float]:
    """Weigh candidates by the probability that they give to all held-out labels, for the average of their logits.

    Where labels cannot tell candidates apart they count alike; where they can, the better ones count alone.

    Returns:
        Weights that add up to 1; 0 for a candidate that failed or counts for less than a thousandth.

    Raises:
        AllFailed: Every candidate failed.
    """
    totals = np.asarray([score.log_likelihoods.sum() for score in scores])
    if not np.isfinite(totals).any():
        raise AllFailed(f"all {len(scores)} candidates failed; the first failure: {scores[0].failure}")
    weights = np.exp(totals - totals.max())
    weights = np.where(weights >= 1e-3 * weights.sum(), weights, 0.0)
    found: list[float] = (weights / weights.sum()).tolist()
    return found


def _percent(share: float | None) -> str:
    return "failed" if share is None else f"{100 * share:.1f} %"
