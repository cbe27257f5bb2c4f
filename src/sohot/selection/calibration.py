"""One temperature for the logits of a classifier, by which its probabilities on held-out rows are the most likely.

Dividing all logits by a temperature changes no answer, only the confidence in it (Guo et al., On calibration of modern
neural networks, 2017). A handful of labels tell the temperature only roughly, so it is drawn towards 1 (see `WIDTH`).
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .answers import Answers

if TYPE_CHECKING:  # it imports scipy, which those who only read a calibration do without
    from .held_out import HeldOut

LOWEST, HIGHEST = 0.05, 20.0
"""Range of temperatures."""
WIDTH = 0.3
"""Standard deviation of the Gaussian prior of log T, whose mean is 0. It weighs as much as about 20 uncertain rows.

From 20 to 60 rows alone, log T comes out wrong by 0.2 to 0.5 (digits, PACS and Office-31, other labelled rows as the
judge), and a classifier that was well calibrated is worse off. Of the widths 0.1 to 2, 0.3 costs such a one little and
leaves one that is far too sure, or too modest, most of what it can gain."""
_STEPS = 60


def fit_temperature(rows: "HeldOut", width: float = WIDTH) -> float:
    """Find the temperature T that minimises −Σ log softmax(logits / T)[label] + (log T)² / (2 · width²).

    Args:
        rows: Held-out rows; 1 is returned for none.
        width: Standard deviation of log T before any row is seen; infinity for none.

    Raises:
        ValueError: A logit is not finite.

    Example:
        >>> from sohot.selection.held_out import HeldOut
        >>> fit_temperature(HeldOut([[4.0, 0.0]] * 4, [0, 0, 0, 1]), width=math.inf)  # 3 of 4: log 3 would be right
        3.64...
    """
    from scipy.optimize import minimize_scalar  # type: ignore[import-untyped]  # takes a moment to import

    if not len(rows):
        return 1.0
    if not np.isfinite(rows.logits).all():
        raise ValueError("the logits of held-out rows must be finite")

    def loss(log_temperature: float) -> float:
        likelihood = float(rows.log_likelihoods(math.exp(log_temperature)).sum())
        return (log_temperature / width) ** 2 / 2 - likelihood

    # The sum of both need not be convex: look everywhere, then closely around the best place.
    grid: list[float] = np.linspace(math.log(LOWEST), math.log(HIGHEST), _STEPS + 1).tolist()
    best = min(range(len(grid)), key=lambda place: loss(grid[place]))
    around = grid[max(0, best - 1)], grid[min(_STEPS, best + 1)]
    found = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-9})
    return math.exp(min((0.0, float(found.x)), key=loss))  # never worse than no temperature


@dataclass(frozen=True)
class Quality:
    """How good probabilities are: mean log-likelihood of the true classes, and the expected calibration error."""

    log_likelihood: float
    calibration_error: float

    @classmethod
    def of(cls, rows: "HeldOut", temperature: float = 1.0) -> "Quality":
        """Judge softmax(logits / temperature)."""
        likelihood = float(rows.log_likelihoods(temperature).mean())
        return cls(likelihood, Answers.of(rows, temperature).calibration_error())


class Effect(NamedTuple):
    """What a calibration does to rows that it was not fitted to, such as test images.

    Attributes:
        temperature: What their logits are divided by.
        held_out: Number of held-out rows that it was fitted to; with 0, nothing is calibrated. None if unknown.
        ece_before: Expected calibration error of the probabilities without it.
        ece_after: The same with it.
    """

    temperature: float
    held_out: int | None
    ece_before: float
    ece_after: float

    @classmethod
    def of(cls, rows: "HeldOut", calibration: "Calibration | None", folded: float = 1.0) -> "Effect":
        """Measure it on labelled rows.

        Args:
            rows: The rows.
            calibration: The calibration; None if there is none, or only its temperature is known.
            folded: What the logits of the rows are divided by already.
        """
        temperature = 1.0 if calibration is None else calibration.temperature
        errors = (Answers.of(rows, at).calibration_error() for at in (1 / folded, temperature))
        unknown = None if folded != 1 else 0
        return cls(folded * temperature, unknown if calibration is None else calibration.rows, *errors)

    def sentence(self) -> str:
        """Say it in words.

        >>> Effect(1.5, 54, 0.123, 0.0456).sentence()
        'expected calibration error 4.6 %, 12.3 % before calibration by 54 held-out images (temperature 1.50)'
        """
        told = f"expected calibration error {100 * self.ece_after:.1f} %"
        if self.held_out == 0:
            return told
        by = "" if self.held_out is None else f" by {self.held_out} held-out images"
        before = f"{100 * self.ece_before:.1f} % before calibration{by}"
        return f"{told}, {before} (temperature {self.temperature:.2f})"


@dataclass(frozen=True)
class Calibration:
    """A temperature, and what it does to the held-out rows that it was fitted to.

    Attributes:
        temperature: What logits are divided by.
        answers: The answers to the held-out rows, with calibrated confidence.
        before: Quality of the probabilities of the held-out rows without the temperature; None without rows.
        after: The same with it.

    Example:
        >>> from sohot.selection.held_out import HeldOut
        >>> found = Calibration.of(HeldOut([[4.0, 0.0]] * 20, [0] * 15 + [1] * 5))
        >>> 1 < found.temperature < 4, found.rows, found.after.log_likelihood > found.before.log_likelihood
        (True, 20, True)
    """

    temperature: float
    answers: Answers
    before: Quality | None
    after: Quality | None

    @property
    def rows(self) -> int:
        """Number of held-out rows; with 0, nothing is calibrated."""
        return len(self.answers)

    @classmethod
    def of(cls, rows: "HeldOut") -> "Calibration":
        """Fit a temperature to held-out rows."""
        temperature = fit_temperature(rows)
        qualities = [Quality.of(rows, at) if len(rows) else None for at in (1.0, temperature)]
        return cls(temperature, Answers.of(rows, temperature), *qualities)

    def sentence(self) -> str:
        """Say in words what they are calibrated by.

        >>> Calibration(1.5, Answers([0.9, 0.8, 0.7], [True, True, False]), None, None).sentence()
        'calibrated by 3 held-out target images, 2 of them right (temperature 1.50)'
        """
        right = f"{self.rows} held-out target images, {int(self.answers.right.sum())} of them right"
        return f"calibrated by {right} (temperature {self.temperature:.2f})"

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain numbers, lists and dicts."""
        return {
            "temperature": self.temperature,
            "rows": self.rows,
            "rows_right": int(self.answers.right.sum()),
            "before": self.before and asdict(self.before),
            "after": self.after and asdict(self.after),
            "confidence": self.answers.confidence.tolist(),
            "right": self.answers.right.tolist(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Calibration":
        """Read the result of `as_json`.

        Raises:
            ValueError: Something is missing, of another type or out of range.
        """
        try:
            temperature = float(content["temperature"])
            qualities = [None if content[when] is None else Quality(**content[when]) for when in ("before", "after")]
            answers = Answers(content["confidence"], content["right"])
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"the calibration is damaged: {type(error).__name__} {error}") from None
        if not LOWEST <= temperature <= HIGHEST:
            raise ValueError(f"the temperature must lie in {LOWEST:g} … {HIGHEST:g}, got {temperature}")
        return cls(temperature, answers, *qualities)
