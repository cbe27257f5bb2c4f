"""The moving parts of a run: model, objective and optimiser on their device, one step at a time."""

import math
import time
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.loggers.logger import Logger
from torch import Tensor, nn

from ..losses import StartingPoint
from .checkpoint import Checkpoint, Tensors
from .errors import CheckpointError, Diverged
from .flatten import flatten_optimizer, restore_optimizer
from .inputs import Batches, Domain
from .model import as_streams, tail_of
from .objective import Objective
from .optimization import build_optimizer, drop_gradients_of_tail, set_learning_rate
from .randomness import random_state, restore_random_state
from .settings import FitSettings
from .step import TrainingStep

Record = dict[str, float]


def make_fabric(settings: FitSettings, loggers: list[Logger]) -> Fabric:
    """Build and launch the Fabric of a run: one device, its precision and the logs."""
    try:
        fabric = Fabric(
            accelerator=settings.accelerator,
            devices=1,
            precision=settings.precision,  # type: ignore[arg-type]
            loggers=loggers,
        )
        fabric.launch()
    except Exception as error:  # Fabric has many kinds of them, all of them about these two settings
        wanted = f"accelerator={settings.accelerator!r} with precision={settings.precision!r}"
        raise ValueError(f"{wanted} cannot be used here: {' '.join(str(error).split())}") from error
    return fabric


class Trainer:
    """Trains a model step by step, and gives or takes its whole state.

    Args:
        fabric: Device and precision.
        model: The two streams; moved to the device.
        source: The source domain, None if the method does not learn from it.
        target: The target domain, None if the method does not learn from it.
        batches: The rows of each step.
        settings: The settings.
    """

    def __init__(
        self,
        fabric: Fabric,
        model: nn.Module,
        source: Domain | None,
        target: Domain | None,
        batches: Batches,
        settings: FitSettings,
    ) -> None:
        self.fabric = fabric
        self.model = model
        self.domains = source, target
        self.batches = batches
        self.settings = settings
        start = StartingPoint(tail_of(model), pull) if (pull := settings.start_pull()) else None
        self.objective = Objective(settings.resolved_method(), as_streams(model).num_classes, settings, start)
        forward = TrainingStep(model, self.objective, settings).to(fabric.device)
        self.optimizer = build_optimizer(model, self.objective, settings)
        self._forward, self._wrapped_optimizer = fabric.setup(forward, self.optimizer)
        self.first_loss: float | None = None

    def step(self, step: int) -> Record:
        """Do one step; return its number from 1, its losses and accuracies, the learning rate and the time it took."""
        began = time.perf_counter()
        self._forward.train()
        set_learning_rate(self.optimizer, step, self.settings)
        batch: list[Tensor | None] = []
        for domain, rows in zip(self.domains, self.batches.batch(step), strict=True):
            batch += (None, None) if domain is None else domain.batch(rows, self.fabric.device)
        losses: dict[str, Tensor] = self._forward(*batch)
        values = torch.stack([value.detach().float() for value in losses.values()]).tolist()  # one wait for the device
        record: Record = {"step": step + 1, **dict(zip(losses, values, strict=True))}
        self._require_convergence(step, record["loss"])
        self.fabric.backward(losses["loss"])
        if self.settings.clip_norm is not None:
            norm = self.fabric.clip_gradients(
                self._forward, self._wrapped_optimizer, max_norm=self.settings.clip_norm, error_if_nonfinite=False
            )
            record["gradient_norm"] = float(norm) if norm is not None else math.nan
        if step < self.settings.steps_of_head():
            drop_gradients_of_tail(self.optimizer)
        self._wrapped_optimizer.step()
        self._wrapped_optimizer.zero_grad()
        return {**record, "lr": self.optimizer.param_groups[0]["lr"], "seconds": time.perf_counter() - began}

    def _require_convergence(self, step: int, loss: float) -> None:
        if self.first_loss is None and math.isfinite(loss):
            self.first_loss = loss
        limit = self.settings.divergence_factor * max(self.first_loss or 0.0, 1.0)
        if not loss <= limit:  # also where it is NaN
            raise self._diverged(f"the loss is {loss:.4g} at step {step + 1}")

    def require_finite_weights(self, step: int) -> None:
        """Raise `Diverged` if an update has left a weight that is no finite number: such a state is never saved."""
        trained = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        if not all(bool(torch.isfinite(parameter.detach()).all()) for parameter in trained):
            raise self._diverged(f"weights are not finite after step {step}")

    def _diverged(self, what: str) -> Diverged:
        settings = self.settings
        began = f" (it began at {self.first_loss:.4g})" if self.first_loss is not None else ""
        advice = f"lower lr (now {settings.lr:g})"
        if settings.resolved_method().aligns:
            advice += f", sigma1 or sigma2 (now {settings.sigma1}, {settings.sigma2:g})"
        return Diverged(f"training diverged: {what}{began}; {advice}, or set clip_norm")

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return everything a run needs to go on exactly: tensors by file and name, and plain values."""
        optimizer_tensors, optimizer_values = flatten_optimizer(self.optimizer)
        tensors = {
            "model": self.model.state_dict(),
            "objective": self.objective.state_dict(),  # ζ and the feature scale
            "optimizer": optimizer_tensors,
        }
        plain = {
            "optimizer": optimizer_values,
            "scaler": self.fabric.strategy.precision.state_dict(),
            "random": random_state(),
            "first_loss": self.first_loss,
        }
        return tensors, plain

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take the state of a checkpoint."""
        tensors, plain = checkpoint.tensors, checkpoint.description
        try:
            self.model.load_state_dict(tensors["model"])
            self.objective.load_state_dict(tensors["objective"])
            restore_optimizer(self.optimizer, tensors["optimizer"], plain["optimizer"])
            self.fabric.strategy.precision.load_state_dict(plain["scaler"])
            self.first_loss = plain["first_loss"]
            restore_random_state(plain["random"])
        except (KeyError, ValueError, RuntimeError, TypeError) as error:
            raise CheckpointError(
                f"{checkpoint.folder} does not fit this run: {' '.join(str(error).split())}"
            ) from error
