"""The moving parts of a run: model, objective and optimiser on their device, one step at a time."""

import math
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from ..losses.alignment import ScatterAlignment
from ..losses.starting_point import StartingPoint
from ..methods.settings import FitSettings
from .capture import StepNumbers, step_graphs
from .checkpoint import Checkpoint, Tensors
from .errors import CheckpointError, Diverged
from .inputs import Batches, Domain, ReadAhead, Rows, Shown, StepBatch, most_rows
from .objective import Losses, Objective
from .optimizer import build_optimizer, drop_gradients_of_tail, flatten_optimizer, restore_optimizer, set_learning_rate
from .pool import REFRESH, PoolLearner
from .pool_rows import PoolInputs
from .randomness import restore_random_state, seed_all, step_seed
from .ranks import Ranks
from .step import TrainingStep
from .streams import as_streams, tail_of

Record = dict[str, float]
Read = list[tuple[Any, Shown | Rows | None]]

READ_EVERY = 20
"""Steps between reads of a GPU's numbers: reading after each step would stall the GPU."""


class _Kind(NamedTuple):
    """What a step does besides the usual."""

    head_alone: bool  # only the classifier trains
    refresh: bool  # class shares of the pool are estimated anew


class Trainer:
    """Trains a model step by step, and saves or restores its whole state.

    Args:
        fabric: Device and precision.
        model: The two streams; moved to the device.
        source: The source domain, None if the method does not learn from it.
        target: The target domain, None if the method does not learn from it.
        batches: The rows of each step.
        settings: The settings.
        pool: Unlabelled target images; None without any.
    """

    def __init__(
        self,
        fabric: Fabric,
        model: nn.Module,
        source: Domain | None,
        target: Domain | None,
        batches: Batches,
        settings: FitSettings,
        pool: PoolInputs | None = None,
    ) -> None:
        self.fabric = fabric
        self.ranks = Ranks.here()
        self.model = model
        self.batches = batches
        self.settings = settings
        start = StartingPoint(tail_of(model), pull) if (pull := settings.start_pull()) else None
        num_classes = as_streams(model).num_classes
        self.objective = Objective(settings.resolved_method(), num_classes, settings, start, with_pool=pool is not None)
        alignment = self.objective.alignment
        if isinstance(alignment, ScatterAlignment) and source is not None and target is not None:
            alignment.most_rows = most_rows(batches, source, target, num_classes)
        forward = TrainingStep(model, self.objective, settings, self.ranks).to(fabric.device)
        self._graphs = step_graphs(fabric, self.ranks, settings)
        self.optimizer = build_optimizer(model, self.objective, settings, for_graphs=self._graphs is not None)
        self._forward, self._wrapped_optimizer = fabric.setup(forward, self.optimizer)
        self.pool = None if pool is None else PoolLearner(model, pool, source, settings, fabric, self.ranks)
        if self.pool is not None:
            forward.remember_source = self.pool.remember_source
        views = (None, None) if self.pool is None else self.pool.views
        self.domains = source, target, *views
        self.first_loss: float | None = None
        on_gpu = fabric.device.type == "cuda"
        self.read_every = READ_EVERY if on_gpu else 1
        ahead = on_gpu and any(domain is not None and not domain.on_gpu for domain in self.domains)
        self._ahead: ReadAhead[Read] = ReadAhead(self._read, settings.steps, fabric.device if ahead else None)
        self._waiting: list[tuple[Record, tuple[str, ...], Tensor]] = []
        self._step = 0
        self._since = time.perf_counter()

    def step(self, step: int) -> None:
        """Do one step; `records` returns its numbers."""
        if not self._waiting:
            self._since = time.perf_counter()
        self._step = step
        if self.ranks.several and self.fabric.device.type == "cuda":
            torch.cuda.manual_seed(step_seed(self.settings.seed, self.ranks.own, step))
        if not (self._forward.training and self.model.training):  # a walk through all layers
            self._forward.train()
        rate = set_learning_rate(self.optimizer, step, self.settings)
        if self.pool is not None:
            self.pool.set_ramp(step)
        batch = self._brought(self._ahead.batch(step))
        kind = _Kind(self.settings.stage(step).head_alone, refresh=self.pool is not None and step % REFRESH == 0)
        update = partial(self._update, kind)
        numbers = update(batch) if self._graphs is None else self._graphs.run(kind, batch, update)
        started_over = self.pool is not None and self.pool.start_over_if_collapsed(step, self.model, self.optimizer)
        if started_over and self._graphs is not None:
            self._graphs.forget()
        self._waiting.append(({"step": step + 1, "lr": rate}, *numbers))

    def _update(self, kind: _Kind, batch: StepBatch) -> StepNumbers:
        """Move the weights by one step. What differs from step to step is in tensors, so that a graph can run it."""
        source, target, weak, strong = (
            None if domain is None else domain.show(brought)
            for domain, brought in zip(self.domains, batch[:4], strict=True)
        )
        arguments: list[Any] = [*(source or (None, None)), *(target or (None, None))]
        seen: Losses = {}
        if self.pool is not None and weak is not None and strong is not None:
            pool, seen = self.pool.look(weak, strong, batch.source_rows, refresh=kind.refresh)
            arguments.append(pool)
        losses = self._losses(arguments)
        if self.read_every == 1:
            self._require_convergence(self._step, float(losses["loss"].detach()))
        self.fabric.backward(losses["loss"])
        numbers = {name: value.detach().float() for name, value in (losses | seen).items()}
        if self.settings.clip_norm is not None:
            norm = self.fabric.clip_gradients(
                self._forward, self._wrapped_optimizer, max_norm=self.settings.clip_norm, error_if_nonfinite=False
            )
            if norm is not None:
                numbers["gradient_norm"] = norm.detach().float()
        if kind.head_alone:
            drop_gradients_of_tail(self.optimizer)
        self._wrapped_optimizer.step()
        self._wrapped_optimizer.zero_grad()
        if self.pool is not None:
            self.pool.follow(self.model)
        return StepNumbers(tuple(numbers), torch.stack(list(numbers.values())))

    def records(self) -> list[Record]:
        """Read the numbers of the steps since the last call: their losses and accuracies, learning rate and time."""
        if not self._waiting:
            return []
        # In one read where all steps tell the same, as they mostly do: each read waits for a GPU.
        alike = len({names for _, names, _ in self._waiting}) == 1
        tensors = [tensor for _, _, tensor in self._waiting]
        values = torch.stack(tensors).tolist() if alike else [tensor.tolist() for tensor in tensors]
        seconds = (time.perf_counter() - self._since) / len(self._waiting)
        records = [
            {"step": known["step"], **dict(zip(names, read, strict=True)), "lr": known["lr"], "seconds": seconds}
            for (known, names, _), read in zip(self._waiting, values, strict=True)
        ]
        self._waiting = []
        return records

    def _read(self, step: int) -> Read:
        seed, device = self.settings.seed, self.fabric.device
        of_pool = None if self.pool is None else self.pool.batches.batch(step)
        shown = list(zip(self.domains, (*self.batches.batch(step), of_pool, of_pool), strict=True))
        if self.ranks.several:
            seed_all(step_seed(seed, 0, step), gpu=False)  # every rank draws the same for the whole batch
        drawn = [None if domain is None else domain.draw(rows) for domain, rows in shown]
        if self.ranks.several:
            seed_all(step_seed(seed, self.ranks.own, step), gpu=False)
        return [
            (rows, None if domain is None else domain.read(rows, device, self.ranks, numbers))
            for (domain, rows), numbers in zip(shown, drawn, strict=True)
        ]

    def _brought(self, read: Read) -> StepBatch:
        """Move what was read to the device."""
        device = self.fabric.device
        source, target, weak, strong = (
            None if domain is None else domain.bring(rows, of_domain, device)
            for domain, (rows, of_domain) in zip(self.domains, read, strict=True)
        )
        source_rows = None
        if self.pool is not None and source is not None:
            source_rows = torch.as_tensor(read[0][0]).to(device, non_blocking=True)
        return StepBatch(source, target, weak, strong, source_rows)

    def _losses(self, batch: list[Any]) -> Losses:
        try:
            losses: Losses = self._forward(*batch)
        except Exception as error:
            if self.model._compiled_call_impl is None or not _is_of_the_compiler(error):
                raise
            self.model._compiled_call_impl = None
            reason = " ".join(str(error).split())[:200]
            warnings.warn(f"compile: the network cannot be compiled here ({reason}), continuing without", stacklevel=2)
            losses = self._forward(*batch)
        return losses

    def close(self) -> None:
        """Stop the background work, and free the memory of recorded steps."""
        self._ahead.close()
        if self._graphs is not None:
            self._graphs.forget()

    def require_convergence(self, record: Record) -> None:
        """Raise `Diverged` if the loss of a step is not a number, or far from the first one."""
        self._require_convergence(int(record["step"]) - 1, record["loss"])

    def _require_convergence(self, step: int, loss: float) -> None:
        if self.first_loss is None and math.isfinite(loss):
            self.first_loss = loss
        limit = self.settings.divergence_factor * max(self.first_loss or 0.0, 1.0)
        if not abs(loss) <= limit:  # also true for NaN; an unbiased estimate may fall without end
            raise self._diverged(f"the loss is {loss:.4g} at step {step + 1}")

    def require_finite_weights(self, step: int) -> None:
        """Raise `Diverged` if an update has made a weight non-finite: such a state is never saved."""
        trained = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        if not all(bool(torch.isfinite(parameter.detach()).all()) for parameter in trained):
            raise self._diverged(f"weights are not finite after step {step}")

    def _diverged(self, what: str) -> Diverged:
        settings = self.settings
        began = f" (it began at {self.first_loss:.4g})" if self.first_loss is not None else ""
        advice = f"lower lr (now {settings.lr:g})"
        method = settings.resolved_method()
        if method.aligns:
            advice += f", sigma1 or sigma2 (now {settings.sigma1}, {settings.sigma2:g})"
        elif method.scope is not None:
            advice += f" or sigma2 (now {settings.sigma2:g})"
        return Diverged(f"training diverged: {what}{began}; {advice}, or set clip_norm")

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return everything a run needs to resume exactly: tensors by file and name, and plain values."""
        optimizer_tensors, optimizer_values = flatten_optimizer(self.optimizer)
        tensors: dict[str, Mapping[str, Tensor]] = {
            "model": self.model.state_dict(),
            "objective": self.objective.state_dict(),  # ζ and the feature scale
            "optimizer": optimizer_tensors,
        }
        plain = {
            "optimizer": optimizer_values,
            "scaler": self.fabric.strategy.precision.state_dict(),
            "random": self._ahead.random_state(),
            "first_loss": self.first_loss,
        }
        if self.pool is not None:
            tensors |= self.pool.tensors()
            plain["pool"] = self.pool.plain()
        return tensors, plain

    def begin(self) -> None:
        """Prepare the first step of a run that is not resumed."""
        if self.pool is not None:
            self.pool.begin()

    def finish(self) -> None:
        """Give the model the weights that the run keeps, after its last step."""
        if self.pool is not None:
            self.pool.install(self.model)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Load the state of a checkpoint."""
        tensors, plain = checkpoint.tensors, checkpoint.description
        restore_model(self.model, checkpoint)
        try:
            self.objective.load_state_dict(tensors["objective"])
            restore_optimizer(self.optimizer, tensors["optimizer"], plain["optimizer"])
            self.fabric.strategy.precision.load_state_dict(plain["scaler"])
            self.first_loss = plain["first_loss"]
            if self.pool is not None:
                self.pool.restore(tensors, plain["pool"])
            restore_random_state(plain["random"])
        except (KeyError, ValueError, RuntimeError, TypeError) as error:
            raise _misfit(checkpoint, error) from error


def restore_model(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Load the weights of a checkpoint."""
    try:
        model.load_state_dict(checkpoint.tensors["model"])
    except (KeyError, ValueError, RuntimeError, TypeError) as error:
        raise _misfit(checkpoint, error) from error


def _misfit(checkpoint: Checkpoint, error: Exception) -> CheckpointError:
    return CheckpointError(f"{checkpoint.folder} does not fit this run: {' '.join(str(error).split())}")


@contextmanager
def compiled(model: nn.Module, wanted: bool) -> Iterator[None]:
    """Compile a model's forward pass inside the block. It stays the same object, and its tensors keep their names."""
    if wanted:
        model.compile(dynamic=None)
    try:
        yield
    finally:
        model._compiled_call_impl = None


def _is_of_the_compiler(error: Exception) -> bool:
    from torch._dynamo.exc import TorchDynamoException  # slow to import

    return isinstance(error, TorchDynamoException)
