"""Every number that shapes a training, in frozen objects that fit into JSON: on images, and on features."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from ..functional.plain_checks import ESTIMATORS, check_choice, check_count, check_not_negative
from ..networks.names import HEADS, STREAMS
from .choices import FEATURE_SCALES, RIVAL_WEIGHTS
from .registry import Method, method

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
    """What `FitSettings` and `sohot.heads.HeadSettings` have in common about rivals: checks, and what None means."""

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

        >>> pass
        >>> FitSettings(method="lp-ft", steps=100).steps_of_head()
        50
        """
        return round(self.share_of_head() * self.steps)

    def stage(self, step: int) -> Stage:
        """Tell where a step lies, counted from 0.

        >>> pass
        >>> FitSettings(method="lp-ft", steps=100).stage(60)
        Stage(head_alone=False, place=10, length=50)
        """
        first = self.steps_of_head()
        return Stage(True, step, first) if step < first else Stage(False, step - first, self.steps - first)


OPTIMIZERS = ("sgd", "adamw")
SCHEDULES = ("one-cycle", "cosine", "constant")
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "64-true")
ACCELERATORS = ("auto", "cpu", "cuda", "mps")
LOGGERS = ("tensorboard", "wandb", "mlflow")
STRATEGIES = ("auto", "ddp")
_SHORT = {"32": "32-true", "64": "64-true"}

_BOOKKEEPING = {"bookkeeping": True}


@dataclass(frozen=True)
class FitSettings(RivalSettings):
    """Settings of one training run.

    Attributes:
        method: Name of the method, see `sohot.training.method`. By default class means alone are drawn together, which
            is among the best by held-out labels (docs/results/office31.md).
        orders: Orders of the scatters in place of those in the method's name.
        steps: Number of optimiser steps.
        optimizer: "sgd" or "adamw".
        lr: Highest learning rate of the layers that are fine-tuned.
        head_factor: The classifier learns this many times faster.
        zeta_lr: Highest learning rate of the class weights ζ.
        momentum: Momentum of SGD.
        weight_decay: Weight decay of the layers that are fine-tuned (the classifier has `head_decay`).
        schedule: "one-cycle", "cosine" (both with a warm-up) or "constant".
        warmup: Share of the steps in which the learning rate rises.
        clip_norm: Longest gradient; None for no limit.
        sigma1: Weight of the scatter terms; one number, or one for each order.
        sigma2: Weight of the mean term.
        alpha1: How strongly ζ is held at 1.
        alpha2: How strongly ζ̄ is held at 1.
        estimator: "plugin" or "unbiased", see `sohot.ScatterAlignment`.
        feature_scale: "initial", "none" or "unit", see `sohot.ScatterAlignment`.
        rival_weight: Weight of the loss of a method to compare with; None for the one of its paper.
        margin: Margin of `ccsa` and `dsne`.
        temperature: Temperature of `supcon`.
        l2_sp: How strongly fine-tuned weights are held at where they started, in place of weight decay; None for 0,
            and for 0.01 with the method `l2-sp`.
        head_first: Share of the steps in which the classifier learns alone; None for 0, and for 0.5 with `lp-ft`.
        target_weight: Share of the target in the cross-entropy; None for the mean over all rows of both domains.
        head_decay: λ of λ‖W‖².
        coupling: β' of β'‖W − W*‖², for two coupled classifiers.
        from_trunk: The inputs are outputs of the frozen trunk, not images.
        seed: Seed of everything random in the run.
        accelerator: "auto", "cpu", "cuda" or "mps".
        precision: "32-true", "bf16-mixed", "16-mixed" or "64-true". The loss is always computed in float32 or better.
        devices: Devices of this machine that share the rows of each batch; under `torchrun` its number counts.
        num_nodes: Machines that do.
        strategy: "auto" or "ddp": how several devices train together. The result is that of one device.
        compile: Compile the streams by `torch.compile`.
        divergence_factor: Stop when the loss exceeds its first value (or 1) this many times.
        checkpoint_every: Steps between checkpoints.
        keep_checkpoints: How many of the newest checkpoints stay.
        loggers: Further logs beside the CSV file: "tensorboard", "wandb", "mlflow"; None for TensorBoard if installed.

    Example:
        >>> FitSettings(method="so+zeta", steps=50).as_json()["method"]
        'so+zeta'
        >>> FitSettings().method, FitSettings().steps
        ('means', 100)
    """

    method: str = "means"
    orders: tuple[int, ...] | None = None
    steps: int = 100
    optimizer: str = "sgd"
    lr: float = 0.003
    head_factor: float = 10.0
    zeta_lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: str = "one-cycle"
    warmup: float = 0.3
    clip_norm: float | None = None
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
    target_weight: float | None = None
    head_decay: float = 2.5e-4
    coupling: float = 1e-3
    from_trunk: bool = False
    seed: int = 0
    accelerator: str = "auto"
    precision: str = "32-true"
    devices: int = field(default=1, metadata=_BOOKKEEPING)
    num_nodes: int = field(default=1, metadata=_BOOKKEEPING)
    strategy: str = field(default="auto", metadata=_BOOKKEEPING)
    compile: bool = field(default=False, metadata=_BOOKKEEPING)
    divergence_factor: float = 100.0
    checkpoint_every: int = field(default=50, metadata=_BOOKKEEPING)
    keep_checkpoints: int = field(default=2, metadata=_BOOKKEEPING)
    loggers: tuple[str, ...] | None = field(default=None, metadata=_BOOKKEEPING)

    def __post_init__(self) -> None:
        for name in ("orders", "sigma1", "loggers"):  # JSON and TOML give lists
            if isinstance(value := getattr(self, name), list):
                object.__setattr__(self, name, tuple(value))
        object.__setattr__(self, "precision", _SHORT.get(self.precision, self.precision))
        chosen = self.resolved_method()
        self._check_numbers(chosen)
        check_choice(self.optimizer, OPTIMIZERS, "optimizer")
        check_choice(self.schedule, SCHEDULES, "schedule")
        check_choice(self.estimator, ESTIMATORS, "estimator")
        check_choice(self.feature_scale, FEATURE_SCALES, "feature_scale")
        check_choice(self.accelerator, ACCELERATORS, "accelerator")
        check_choice(self.precision, PRECISIONS, "precision")
        check_choice(self.strategy, STRATEGIES, "strategy")
        for name in self.loggers or ():
            check_choice(name, LOGGERS, "each of loggers")
        for name in ("from_trunk", "compile"):
            if not isinstance(value := getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {value!r}")

    def _check_numbers(self, chosen: Method) -> None:
        for name in ("steps", "checkpoint_every", "keep_checkpoints", "devices", "num_nodes"):
            check_count(getattr(self, name), name, lowest=1)
        check_count(self.seed, "seed", lowest=0)
        not_negative = ("zeta_lr", "weight_decay", "sigma2", "alpha1", "alpha2", "head_decay", "coupling")
        for name in not_negative:
            check_not_negative(getattr(self, name), name)
        self.check_rival_numbers()
        for name in ("lr", "head_factor", "divergence_factor", "clip_norm"):
            if (value := getattr(self, name)) is not None and check_not_negative(value, name) == 0:
                raise ValueError(f"{name} must be above 0, got {value}")
        for name in ("momentum", "warmup", "target_weight"):
            if (value := getattr(self, name)) is not None and check_not_negative(value, name) > 1:
                raise ValueError(f"{name} must be between 0 and 1, got {value}")
        sigmas = self.sigma1 if isinstance(self.sigma1, tuple) else (self.sigma1,)
        for sigma in sigmas:
            check_not_negative(sigma, "sigma1")
        if isinstance(self.sigma1, tuple) and len(sigmas) != len(chosen.orders):
            raise ValueError(
                f"sigma1 must hold one number for each of the orders {chosen.orders} of method {chosen.name!r}, "
                f"got {len(sigmas)}"
            )

    def resolved_method(self) -> Method:
        """Look up the method, with `orders` in place of its own where given."""
        return method(self.method, self.orders)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as plain numbers, strings and lists."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "FitSettings":
        """Build settings from what `as_json` gave, or from a part of it.

        >>> FitSettings.from_json({"method": "so", "orders": [2, 3]}).orders
        (2, 3)
        """
        known = {one.name for one in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(
                f"settings do not know {', '.join(map(repr, unknown))}; known are {', '.join(sorted(known))}"
            )
        return cls(**values)

    def decisive(self) -> dict[str, Any]:
        """Return the settings that decide the result: all but how often to save, where to log, on how many devices."""
        kept = [one.name for one in fields(self) if "bookkeeping" not in one.metadata]
        values = self.as_json()
        return {name: values[name] for name in kept}


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
