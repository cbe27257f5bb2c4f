"""Settings of the methods to compare with, the same for training on images and on features; without torch."""

from typing import NamedTuple

from ..functional.plain_checks import check_not_negative
from ..losses.choices import RIVAL_WEIGHTS
from .methods import Method

RIVAL_NUMBERS = ("rival_weight", "margin", "temperature")
"""Settings that losses of other papers look at, and nothing else."""

RIVALS_LOOK_AT: dict[str, tuple[str, ...]] = {
    "means": ("sigma2", "estimator", "feature_scale"),
    "variance": ("rival_weight", "feature_scale"),
    "ccsa": ("rival_weight", "margin", "feature_scale"),
    "dsne": ("rival_weight", "margin", "feature_scale"),
    "dage": ("rival_weight",),
    "supcon": ("rival_weight", "temperature"),
}
"""Settings of the loss between the domains that each rival looks at; one that is not here has no such loss."""


class Stage(NamedTuple):
    """Where a step lies. Where the classifier learns alone first, each of the two parts has a schedule of its own."""

    head_alone: bool
    place: int  # within the part, from 0
    length: int


class RivalSettings:
    """What `FitSettings` and `sohot.stacked.HeadSettings` have in common about rivals: checks, and what None means."""

    rival_weight: float | None
    margin: float
    temperature: float
    l2_sp: float | None
    head_first: float | None
    steps: int

    def resolved_method(self) -> Method:
        """Look up the method."""
        raise NotImplementedError

    def check_rival_numbers(self) -> None:
        """Require numbers in their range."""
        check_not_negative(self.margin, "margin")
        for name in ("rival_weight", "l2_sp"):
            if (value := getattr(self, name)) is not None:
                check_not_negative(value, name)
        if check_not_negative(self.temperature, "temperature") == 0:
            raise ValueError(f"temperature must be above 0, got {self.temperature}")
        if self.head_first is not None and check_not_negative(self.head_first, "head_first") > 1:
            raise ValueError(f"head_first must be between 0 and 1, got {self.head_first}")

    def weight_of_rival(self) -> float:
        """Weight of the loss of another paper; 0 for a method that has none."""
        usual = RIVAL_WEIGHTS.get(self.resolved_method().rival or "", 0.0)
        return self.rival_weight if usual and self.rival_weight is not None else usual

    def start_pull(self) -> float:
        """How strongly the weights below the classifier are held at where they started."""
        return (0.01 if self.resolved_method().rival == "l2-sp" else 0.0) if self.l2_sp is None else self.l2_sp

    def share_of_head(self) -> float:
        """Share of the steps in which the classifier learns alone."""
        return (0.5 if self.resolved_method().rival == "lp-ft" else 0.0) if self.head_first is None else self.head_first

    def steps_of_head(self) -> int:
        """How many of the first steps train the classifier alone.

        >>> from .settings import FitSettings
        >>> FitSettings(method="lp-ft", steps=100).steps_of_head()
        50
        """
        return round(self.share_of_head() * self.steps)

    def stage(self, step: int) -> Stage:
        """Tell where a step lies, counted from 0.

        >>> from .settings import FitSettings
        >>> FitSettings(method="lp-ft", steps=100).stage(60)
        Stage(head_alone=False, place=10, length=50)
        """
        first = self.steps_of_head()
        return Stage(True, step, first) if step < first else Stage(False, step - first, self.steps - first)
