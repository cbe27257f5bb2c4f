"""The loop over the steps: logs, checkpoints, signals, and a clear ending in every case, the same on all ranks."""

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType

from lightning_fabric.loggers.logger import Logger

from ..methods.settings import FitSettings
from .checkpoint import Checkpoint
from .errors import CheckpointError, Diverged, Interrupted, RankLost
from .logs import make_loggers
from .ranks import lost_connection
from .run_files import how_to_go_on
from .run_folder import RunFolder
from .trainer import Record, Trainer

SIGNALS = ("SIGINT", "SIGTERM")


class StopRequest:
    """Turns the first SIGINT or SIGTERM into a request that the loop checks; a second Ctrl-C stops at once.

    Python allows no handlers outside the main thread: there it never requests a stop.

    Example:
        >>> import os
        >>> with StopRequest() as stop:
        ...     os.kill(os.getpid(), signal.SIGTERM)
        ...     stop.received
        'SIGTERM'
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.received: str | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._ask) for number in self._SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the interface of a handler
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = signal.Signals(number).name


def run_loggers(settings: FitSettings, folder: RunFolder | None, checkpoint: Checkpoint | None) -> list[Logger]:
    """Build the logs of a run that starts, or resumes from a checkpoint."""
    try:
        return make_loggers(settings.loggers, folder.path if folder else None, checkpoint.step if checkpoint else 0)
    except OSError as error:
        raise _no_logs(error, folder) from error


class Loop:
    """The steps of a run, with the checkpoints and logs between them.

    Args:
        trainer: Does the steps.
        folder: Where checkpoints go; None to keep none.
        settings: The settings.
        loggers: Receive the numbers of each step.
        on_step: Called with the numbers of each step.
    """

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
        """Do the remaining steps: all of them, or those after a checkpoint."""
        status = "failed"
        try:
            if checkpoint is None:
                self.trainer.begin()
            else:
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
                with suppress(OSError):  # a full disk has already been reported
                    logger.finalize(status)
        return self.history

    def _steps(self, start: int, stop: StopRequest) -> None:
        steps = self.settings.steps
        for done in range(start + 1, steps + 1):
            self.trainer.step(done - 1)
            last = done == steps
            if last:
                self.trainer.finish()
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
        """Read the numbers of the steps since the last call; return the signal that any rank has received."""
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
    where = f"; {folder.last_good()}{how_to_go_on(error)}" if folder else ""
    return CheckpointError(f"the logs cannot be written: {error.strerror or error}{where}")


def _interrupted(signal: str, done: int, steps: int, folder: RunFolder | None) -> Interrupted:
    cause = "Ctrl-C" if signal == "SIGINT" else signal
    kept = f"saved in {folder.path}, resume to continue" if folder else "nothing was kept, because there is no run_dir"
    return Interrupted(f"stopped by {cause} after step {done} of {steps}; {kept}", signal)
