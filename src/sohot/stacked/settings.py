"""Every number that shapes one fit on features, in a frozen object that fits into JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..functional.choices import ESTIMATORS
from ..functional.plain_checks import check_choice, check_count, check_not_negative
from ..losses.choices import FEATURE_SCALES
from ..streams.choices import HEADS, STREAMS
from ..training.methods import Method, method
from ..training.rival_settings import RivalSettings
from ..training.settings import OPTIMIZERS, SCHEDULES


@dataclass(frozen=True)
class HeadSettings(RivalSettings):
    """Settings of one fit.

    The features are centred, brought to their first principal axes and divided by one constant, so that a coordinate
    has a mean square of 1 over the training rows; σ, λ and τ below are in this unit.

    Attributes:
        method: Name of the method, see `sohot.training.method`.
        orders: Orders of the scatters in place of those in the method's name.
        sigma1: Weight of the scatter terms; one number, or one for each order.
        sigma2: Weight of the mean term.
        alpha1: How strongly ζ is held at 1.
        alpha2: How strongly ζ̄ is held at 1.
        estimator: "plugin" or "unbiased", see `sohot.ScatterAlignment`.
        feature_scale: "initial", "none" or "unit", see `sohot.ScatterAlignment`.
        rival_weight: Weight of the loss of a method to compare with; None for the one of its paper.
        margin: Margin of `ccsa` and `dsne`.
        temperature: Temperature of `supcon`.
        l2_sp: How strongly the network is held at where it started, in place of `map_decay`; None for 0, and for 0.01
            with the method `l2-sp`.
        head_first: Share of the steps in which the classifier learns alone; None for 0, and for 0.5 with `lp-ft`.
        streams: "shared" (one network for both domains) or "separate" (two, equal at the start).
        hidden: Size of a hidden layer; None for a linear network.
        components: Number of principal axes of the training rows that are kept; None for all features.
        heads: "shared" (one classifier) or "coupled" (one for each domain, equal at the start).
        norm_bound: τ of ‖φ‖² ≤ τ, None for no bound.
        weight_decay: λ of λ‖W‖² on the classifier.
        coupling: β' of β'‖W − W*‖² between coupled classifiers.
        map_decay: Decoupled weight decay of the network, which pulls it back to the features as they came.
        target_weight: Share of the target in the cross-entropy; None for the mean over all rows of both domains.
        learning_rate: Highest learning rate of the network.
        head_factor: The classifier learns this many times faster.
        zeta_learning_rate: Highest learning rate of the class weights ζ.
        optimizer: "adamw" or "sgd".
        momentum: Momentum of SGD.
        schedule: "one-cycle", "cosine" or "constant".
        warmup: Share of the steps in which the learning rate rises.
        steps: Number of full-batch steps.
        seed: Seed of the hidden layer's first weights.

    Example:
        >>> HeadSettings(method="so+zeta", sigma1=0.3).as_json()["sigma1"]
        0.3
    """

    method: str = "so"
    orders: tuple[int, ...] | None = None
    sigma1: float | tuple[float, ...] = 0.1
    sigma2: float = 0.1
    alpha1: float = 0.1
    alpha2: float = 0.1
    estimator: str = "plugin"
    feature_scale: str = "initial"
    rival_weight: float | None = None
    margin: float = 1.0
    temperature: float = 0.1
    l2_sp: float | None = None
    head_first: float | None = None
    streams: str = "shared"
    hidden: int | None = None
    components: int | None = 128
    heads: str = "shared"
    norm_bound: float | None = None
    weight_decay: float = 5e-3
    coupling: float = 1e-3
    map_decay: float = 0.0
    target_weight: float | None = None
    learning_rate: float = 1e-3
    head_factor: float = 10.0
    zeta_learning_rate: float = 0.01
    optimizer: str = "adamw"
    momentum: float = 0.9
    schedule: str = "one-cycle"
    warmup: float = 0.3
    steps: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("orders", "sigma1"):  # JSON gives lists
            if isinstance(value := getattr(self, name), list):
                object.__setattr__(self, name, tuple(value))
        self._check_numbers()
        for name, choices in _CHOICES.items():
            check_choice(getattr(self, name), choices, name)
        chosen = self.resolved_method()
        count = len(chosen.orders)
        if isinstance(self.sigma1, tuple) and len(self.sigma1) != count:
            raise ValueError(f"sigma1 must hold one number for each of the {count} orders, got {len(self.sigma1)}")

    def _check_numbers(self) -> None:
        for name in ("steps", "hidden", "components", "seed"):
            value, lowest = getattr(self, name), 0 if name == "seed" else 1
            if value is None and name in ("hidden", "components"):
                continue
            check_count(value, name, lowest)
        for name in ("sigma2", "alpha1", "alpha2", "weight_decay", "coupling", "map_decay", "zeta_learning_rate"):
            check_not_negative(getattr(self, name), name)
        self.check_rival_numbers()
        for sigma in self.sigma1 if isinstance(self.sigma1, tuple) else (self.sigma1,):
            check_not_negative(sigma, "sigma1")
        for name in ("learning_rate", "head_factor", "norm_bound"):
            if (value := getattr(self, name)) is not None and check_not_negative(value, name) == 0:
                raise ValueError(f"{name} must be above 0, got {value}")
        for name in ("momentum", "warmup", "target_weight"):
            if (value := getattr(self, name)) is not None and check_not_negative(value, name) > 1:
                raise ValueError(f"{name} must be between 0 and 1, got {value}")

    def resolved_method(self) -> Method:
        """Look up the method, with `orders` in place of its own where given."""
        return method(self.method, self.orders)

    def sigmas(self) -> tuple[float, ...]:
        """σ1 of each order."""
        count = len(self.resolved_method().orders)
        return self.sigma1 if isinstance(self.sigma1, tuple) else (float(self.sigma1),) * count

    def as_json(self) -> dict[str, Any]:
        """Return the settings as plain numbers, strings and lists."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "HeadSettings":
        """Build settings from what `as_json` gave, or from a part of it."""
        known = {one.name for one in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(
                f"settings do not know {', '.join(map(repr, unknown))}; known are {', '.join(sorted(known))}"
            )
        return cls(**values)


_CHOICES = {
    "estimator": ESTIMATORS,
    "feature_scale": FEATURE_SCALES,
    "streams": STREAMS,
    "heads": HEADS,
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}
