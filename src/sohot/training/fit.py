"""`fit`: train two streams by a method, with checkpoints, logs, and a clear end whatever happens."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightning_fabric.loggers.logger import Logger
from torch import nn

from .batch_norm import batch_norm_over_ranks
from .checkpoint import Checkpoint, load_checkpoint
from .compiling import compiled
from .errors import CheckpointError, Diverged, Interrupted, RankLost
from .inputs import Batches, Domain, Inputs, WholeSet, fingerprint_batches
from .interrupt import SIGNALS, StopRequest
from .loggers import make_loggers
from .model import as_streams, require_one_input
from .objective import Objective
from .randomness import reproducible
from .ranks import Ranks, lost_connection
from .run_folder import RunFolder
from .settings import FitSettings
from .trainer import Record, Trainer, make_fabric


@dataclass(frozen=True)
class FitResult:
    """What a finished run leaves.

    Attributes:
        model: The trained model, the one given to `fit`, in evaluation mode.
        objective: The objective with the learned ζ and the feature scale.
        steps: Number of steps done in all.
        history: The record of each step done by this call.
        seconds: Time this call took.
        resumed_from: The step this call went on from, None if it began at the start.
    """

    model: nn.Module
    objective: Objective
    steps: int
    seconds: float
    resumed_from: int | None = None
    history: list[Record] = field(default_factory=list)


def fit(
    model: nn.Module,
    source: Inputs | None,
    source_labels: Any,
    target: Inputs | None,
    target_labels: Any,
    settings: FitSettings | None = None,
    *,
    batches: Batches | None = None,
    run_dir: str | Path | None = None,
    resume: bool = False,
    config: Mapping[str, Any] | None = None,
    on_step: Callable[[Record], None] | None = None,
) -> FitResult:
    """Train a model.

    Args:
        model: Two streams such as `sohot.streams.TwoStreams`; trained in place.
        source: Inputs of the source; may be None for the method "t".
        source_labels: Their classes, integers in 0 … num_classes − 1.
        target: Inputs of the target; may be None for the method "s".
        target_labels: Their classes.
        settings: The settings; None for the defaults.
        batches: Rows of each step; None for the whole training set at once.
        run_dir: Folder for checkpoints and logs; None to keep nothing.
        resume: Go on with the run in `run_dir`, if there is one. On a CPU the final weights are bit by bit those of a
            run that was never stopped.
        config: More that must not change between a run and its resumption (backbone, folders, …), as it fits into JSON.
        on_step: Called after each step with its record.

    Returns:
        The trained model, its objective and the history.

    Raises:
        Diverged: The loss is no number, or far above its first value.
        Interrupted: Ctrl-C or SIGTERM; the state is saved.
        ChangedRun: `run_dir` holds another run.
        CheckpointError: A checkpoint cannot be written or read.
    """
    began = time.perf_counter()
    settings = FitSettings() if settings is None else settings
    num_classes = as_streams(model).num_classes
    method = settings.resolved_method()
    source_domain = Domain("source", source, source_labels, num_classes) if method.uses_source else None
    target_domain = Domain("target", target, target_labels, num_classes) if method.uses_target else None
    if not method.uses_target:
        require_one_input(model, settings.from_trunk)
    if batches is None:
        batches = WholeSet(*(len(domain.inputs) if domain else 0 for domain in (source_domain, target_domain)))
    if resume and run_dir is None:
        raise ValueError("resume=True needs the run_dir of the run to go on with")
    folder, checkpoint = None, None
    with ExitStack() as stack:
        fabric = make_fabric(settings)
        ranks = Ranks.here()
        if run_dir is not None:
            identity = _identity(model, source_domain, target_domain, batches, settings, config) if ranks.first else {}
            folder = RunFolder(Path(run_dir), identity, resume=resume, keep=settings.keep_checkpoints)
            stack.callback(folder.close)
            checkpoint = _open(folder, ranks)
        stack.enter_context(reproducible(settings.seed, fabric.device.type))
        stack.enter_context(batch_norm_over_ranks(model, ranks, fabric.device))
        stack.enter_context(compiled(model, settings.compile, fabric.device))
        trainer = Trainer(fabric, model, source_domain, target_domain, batches, settings)
        stack.callback(trainer.close)
        loggers = _loggers(settings, folder, checkpoint) if ranks.first else []
        run = _Run(trainer, folder, settings, loggers, on_step if ranks.first else None)
        history = run.do(checkpoint)
    model.eval()
    return FitResult(
        model=model,
        objective=trainer.objective,
        steps=settings.steps,
        seconds=time.perf_counter() - began,
        resumed_from=checkpoint.step if checkpoint else None,
        history=history,
    )


def _open(folder: RunFolder, ranks: Ranks) -> Checkpoint | None:
    """Let the first rank make or check the folder; give every rank the checkpoint to go on from."""
    checkpoint = folder.open() if ranks.first else None
    found = ranks.from_first(lambda: None if checkpoint is None else checkpoint.folder.name)
    return checkpoint if ranks.first or found is None else load_checkpoint(folder.checkpoints / found)


def _loggers(settings: FitSettings, folder: RunFolder | None, checkpoint: Checkpoint | None) -> list[Logger]:
    try:
        return make_loggers(settings.loggers, folder.path if folder else None, checkpoint.step if checkpoint else 0)
    except OSError as error:
        raise _no_logs(error, folder) from error


class _Run:
    """The steps of a run, with what is written and said between them."""

    def __init__(
        self,
        trainer: Trainer,
        folder: RunFolder | None,
        settings: FitSettings,
        loggers: list[Logger],
        on_step: Callable[[Record], None] | None,
    ) -> None:
        self.trainer, self.ranks, self.device = trainer, trainer.ranks, trainer.fabric.device
        self.folder, self.settings = folder, settings
        self.loggers, self.on_step = loggers, on_step
        self.history: list[Record] = []

    def do(self, checkpoint: Checkpoint | None) -> list[Record]:
        """Do the steps that are left."""
        status = "failed"
        try:
            if checkpoint is not None:
                self.trainer.restore(checkpoint)
            with StopRequest() as stop:
                self._steps(checkpoint.step if checkpoint else 0, stop)
            status = "success"
        except Diverged as error:
            raise Diverged(f"{error}; {self.folder.last_good()}" if self.folder else str(error)) from None
        except Exception as error:
            if not (self.ranks.several and lost_connection(error)):
                raise
            kept = f"; {self.folder.last_good()}" if self.folder else ""
            raise RankLost(f"rank {self.ranks.own} has lost the connection to another rank{kept}") from error
        finally:
            for logger in self.loggers:
                with suppress(OSError):  # a full disk has been told of already
                    logger.finalize(status)
        return self.history

    def _steps(self, start: int, stop: StopRequest) -> None:
        steps = self.settings.steps
        for done in range(start + 1, steps + 1):
            self.trainer.step(done - 1)
            last = done == steps
            due = last or done % self.settings.checkpoint_every == 0
            alone = stop.received is not None and not self.ranks.several
            if not (due or alone or done % self.trainer.read_every == 0):
                continue
            received = self._read(stop)
            if due or received:
                self._save(done)
            if received and not last:
                raise _interrupted(received, done, steps, self.folder)

    def _read(self, stop: StopRequest) -> str | None:
        """Read the numbers of the steps since the last time; give the signal that has come, to whichever rank."""
        diverged = None
        for record in self.trainer.records():
            try:
                self.trainer.require_convergence(record)
            except Diverged as error:
                diverged = error
                break
            self.history.append(record)
            self._log(record)
            if self.on_step is not None:
                self.on_step(record)
        asked = 0 if stop.received is None else 1 + SIGNALS.index(stop.received)
        asked, failed = self.ranks.highest([asked, int(diverged is not None)], self.device)
        if diverged is not None:
            raise diverged
        if failed:
            raise Diverged("training diverged on another rank")
        return SIGNALS[asked - 1] if asked else None

    def _save(self, done: int) -> None:
        self.trainer.require_finite_weights(done)
        if self.folder is not None:
            if self.ranks.first:
                self.folder.save(done, *self.trainer.state())
            if self.ranks.several:
                self.ranks.wait(self.device)

    def _log(self, record: Record) -> None:
        numbers = {name: value for name, value in record.items() if name != "step"}
        try:
            for logger in self.loggers:
                logger.log_metrics(numbers, step=int(record["step"]))
        except OSError as error:
            raise _no_logs(error, self.folder) from error


def _no_logs(error: OSError, folder: RunFolder | None) -> CheckpointError:
    where = f"; {folder.last_good()}" if folder else ""
    return CheckpointError(f"the logs cannot be written: {error.strerror or error}{where}")


def _interrupted(signal: str, done: int, steps: int, folder: RunFolder | None) -> Interrupted:
    cause = "Ctrl-C" if signal == "SIGINT" else signal
    kept = f"saved in {folder.path}, resume to go on" if folder else "nothing was kept, for there is no run_dir"
    return Interrupted(f"stopped by {cause} after step {done} of {steps}; {kept}", signal)


def _identity(
    model: nn.Module,
    source: Domain | None,
    target: Domain | None,
    batches: Batches,
    settings: FitSettings,
    config: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Describe what makes a run this one; a resumed run must have the same."""
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    layout = [[name, list(tensor.shape), name in trained] for name, tensor in model.state_dict().items()]
    return {
        "settings": settings.decisive(),
        "data": {
            "source": source and source.fingerprint(),
            "target": target and target.fingerprint(),
            "batches": fingerprint_batches(batches, settings.steps),
        },
        "model": {
            "kind": type(model).__name__,
            "tensors": len(layout),
            "trained": len(trained),
            "layout": hashlib.sha256(json.dumps(layout).encode()).hexdigest()[:16],
        },
        "config": dict(config or {}),
    }
