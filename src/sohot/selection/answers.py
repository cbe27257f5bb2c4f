"""How far the confidence of answers can be trusted: reliability, risk and coverage, and which answers to refuse."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .held_out import HeldOut

Shares = npt.NDArray[np.float64]

BINS = 15
"""Bins of equal width, as in most papers, where there are rows enough."""
ROWS_PER_BIN = 10
"""With fewer than `BINS` times as many rows, bins hold about so many rows each: narrow bins would hold one or two."""


class Bin(NamedTuple):
    """Answers of similar confidence: how many, their mean confidence, and the share that is right."""

    rows: int
    confidence: float
    right: float


class RiskCoverage(NamedTuple):
    """The share of wrong answers (risk) among the most confident ones, by the share that is answered (coverage)."""

    coverage: Shares
    risk: Shares

    @property
    def area(self) -> float:
        """Mean risk over all coverages: 0 if nothing is wrong, small if wrong answers are the least confident."""
        return float(self.risk @ np.diff(self.coverage, prepend=0.0))

    def at(self, share: float) -> float:
        """Return the risk if at least this share is answered, and no more than equal confidences require."""
        return float(self.risk[np.searchsorted(self.coverage, share - 1e-9)])


class Refusal(NamedTuple):
    """What is refused if answers of a confidence below a limit are.

    Attributes:
        below: The limit.
        wrong: Number of wrong answers.
        wrong_refused: How many of them are refused.
        right: Number of right answers.
        right_refused: How many of them are refused.
    """

    below: float
    wrong: int
    wrong_refused: int
    right: int
    right_refused: int

    @property
    def answered(self) -> int:
        """Number of answers that are given."""
        return self.wrong + self.right - self.wrong_refused - self.right_refused

    @property
    def coverage(self) -> float:
        """Share of all answers that is given."""
        return self.answered / (self.wrong + self.right)

    @property
    def accuracy(self) -> float | None:
        """Share of the given answers that is right; None if none is given."""
        return (self.right - self.right_refused) / self.answered if self.answered else None

    @property
    def share(self) -> float | None:
        """Share of the wrong answers that is refused; None if none is wrong."""
        return self.wrong_refused / self.wrong if self.wrong else None

    @property
    def expected_share(self) -> float:
        """Share of the wrong answers to other rows of the same kind that is refused, on average.

        A further wrong answer is as likely to fall between any two of the known ones.
        """
        return self.wrong_refused / (self.wrong + 1)


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to labelled rows: the confidence in each, and whether it is right.

    Attributes:
        confidence: Probability of the answer, shape (rows,).
        right: Whether it is the true class, shape (rows,).

    Example:
        >>> from sohot.selection.held_out import HeldOut
        >>> answers = Answers.of(HeldOut([[2.0, 0.0], [1.0, 0.0]], [0, 1]))
        >>> answers.confidence.round(2), answers.right
        (array([0.88, 0.73]), array([ True, False]))
        >>> answers.refuse(0.8).coverage
        0.5
    """

    confidence: Shares
    right: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", np.asarray(self.confidence, dtype=np.float64))
        object.__setattr__(self, "right", np.asarray(self.right, dtype=np.bool_))
        if self.confidence.ndim != 1 or self.right.shape != self.confidence.shape:
            raise ValueError("confidence and right must be lists of the same length")
        if not ((self.confidence >= 0) & (self.confidence <= 1)).all():
            raise ValueError("confidence must lie in 0 … 1")

    def __len__(self) -> int:
        return len(self.right)

    @classmethod
    def of(cls, rows: "HeldOut", temperature: float = 1.0) -> "Answers":
        """Answer labelled rows by softmax(logits / temperature)."""
        from scipy.special import softmax  # type: ignore[import-untyped]  # not needed to read answers from a file

        if not len(rows):
            return cls(np.zeros(0), np.zeros(0, np.bool_))
        shares: Shares = softmax(rows.logits / temperature, axis=1)
        sure = np.nan_to_num(shares.max(1), nan=1.0)  # an infinite logit
        return cls(sure.clip(0, 1), rows.logits.argmax(1) == rows.labels)

    def reliability(self) -> list[Bin]:
        """Group the answers by confidence, the least confident first.

        There are 15 bins of equal width; with fewer than 150 answers, bins of about 10 answers each.
        """
        if len(self) < BINS * ROWS_PER_BIN:
            number = max(1, len(self) // ROWS_PER_BIN)
            ranks = np.searchsorted(np.sort(self.confidence), self.confidence)  # equal for equal ones: they share a bin
            places = ranks * number // max(1, len(self))
        else:
            number, places = BINS, np.minimum((self.confidence * BINS).astype(np.int64), BINS - 1)
        parts = [np.flatnonzero(places == place) for place in range(number)]
        return [
            Bin(len(part), float(self.confidence[part].mean()), float(self.right[part].mean()))
            for part in parts
            if len(part)
        ]

    def calibration_error(self) -> float:
        """Return the expected calibration error: the mean distance of confidence and accuracy over `reliability`.

        >>> Answers([0.9] * 10, [True] * 9 + [False]).calibration_error() < 1e-12
        True
        """
        if not len(self):
            raise ValueError("there are no answers to judge")
        return sum(part.rows * abs(part.confidence - part.right) for part in self.reliability()) / len(self)

    def chance_error(self, draws: int = 100) -> float:
        """Return the calibration error to expect if each answer were right with exactly its confidence.

        It is not 0 but falls with the number of answers: bins of a few are never right in the expected share.
        """
        random = np.random.default_rng(0)
        lucky = (Answers(self.confidence, random.random(len(self)) < self.confidence) for _ in range(draws))
        return sum(one.calibration_error() for one in lucky) / draws

    def risk_coverage(self) -> RiskCoverage:
        """Return the risk among the most confident answers; equally confident ones are given together.

        >>> Answers([0.9, 0.8, 0.7, 0.6], [True, True, False, True]).risk_coverage().risk.round(2)
        array([0.  , 0.  , 0.33, 0.25])
        """
        if not len(self):
            raise ValueError("there are no answers to judge")
        order = np.argsort(-self.confidence, kind="stable")
        given = np.arange(1, len(self) + 1)
        last = np.append(np.diff(self.confidence[order]) != 0, True)  # of those that are equally confident
        return RiskCoverage((given / len(self))[last], (np.cumsum(~self.right[order]) / given)[last])

    def refuse(self, below: float) -> Refusal:
        """Refuse answers of a confidence below a limit."""
        low = self.confidence < below
        counts = [int(part.sum()) for part in (~self.right, ~self.right & low, self.right, self.right & low)]
        return Refusal(below, *counts)

    def refuse_wrong(self, share: float) -> Refusal:
        """Choose the lowest limit below which a share of the wrong answers lies, also of those to come.

        It is the split conformal one: of m wrong answers ⌈share · (m + 1)⌉ lie below it, so that a further one does
        with at least that probability. If that takes more wrong answers than there are, all of them lie below it.
        The limit is the middle between the last of these and the next confidence above.

        Args:
            share: Above 0, at most 1.

        Raises:
            ValueError: No answer is wrong, or the share is out of range.

        Example:
            >>> found = Answers([0.9, 0.8, 0.6, 0.5, 0.4], [True, True, False, True, False]).refuse_wrong(0.5)
            >>> round(found.below, 2), found.wrong_refused, found.right_refused
            (0.7, 2, 1)
        """
        if not 0 < share <= 1:
            raise ValueError(f"share must lie above 0 and be at most 1, got {share}")
        wrong = np.sort(self.confidence[~self.right])
        if not len(wrong):
            raise ValueError("no answer is wrong, so nothing says which ones to refuse")
        number = min(len(wrong), math.ceil(round(share * (len(wrong) + 1), 9)))  # 0.7 · 10 is 7, not 7.0…01
        highest = wrong[number - 1]
        above = self.confidence[self.confidence > highest]
        limit = (highest + above.min()) / 2 if len(above) else (highest + 1) / 2
        return self.refuse(float(limit if limit > highest else np.nextafter(highest, 2.0)))
