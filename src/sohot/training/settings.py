"""Every number that shapes a training run, in one frozen object that fits into JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..functional.choices import ESTIMATORS
from ..functional.plain_checks import check_choice, check_count, check_not_negative
from ..losses.choices import FEATURE_SCALES
from .methods import Method, method
from .rival_settings import RivalSettings

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
