"""How training or export ends other than by finishing; each message is one clear sentence."""

import os
from pathlib import Path

from .._files import write_json

ENDING = "SOHOT_ENDING"
"""Environment variable of such a process: the file in which it records how it ended."""


class TrainingError(RuntimeError):
    """A training run could not continue."""


class Diverged(TrainingError):  # noqa: N818 - it names what happened
    """The loss is not a number, or is far above its first value. The last good checkpoint is kept."""


class Interrupted(TrainingError):  # noqa: N818
    """Ctrl-C or SIGTERM arrived: the run finished the step, saved its state and stopped.

    Attributes:
        signal: Name of the signal, "SIGINT" or "SIGTERM".
    """

    def __init__(self, message: str, signal: str = "SIGINT") -> None:
        super().__init__(message)
        self.signal = signal


class RankLost(TrainingError):  # noqa: N818
    """Another of the processes that train together is gone."""


class RanksFailed(TrainingError):  # noqa: N818
    """A process started for the run has failed and reported why.

    Attributes:
        code: Its exit code.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class CheckpointError(TrainingError):
    """A checkpoint could not be written or read."""


class CorruptCheckpoint(CheckpointError):  # noqa: N818
    """A checkpoint is damaged or incomplete."""


class OtherVersion(CheckpointError):  # noqa: N818
    """A run folder or a checkpoint was written in a format this version cannot read."""


class ChangedRun(ValueError):  # noqa: N818
    """A run folder holds a different run from the requested one."""


class ExportError(RuntimeError):
    """The model could not be exported, or the exported file does not behave like the model."""


def record_ending(code: int, sentence: str, error: BaseException) -> bool:
    """Report how this process ends to the process that started it; False if that process does not expect it."""
    file = os.environ.get(ENDING)
    if file is None:
        return False
    from .ranks import lost_connection  # imported late: every command that fails calls this

    lost = isinstance(error, RankLost) or lost_connection(error) or lost_connection(error.__cause__)
    write_json(Path(file), {"code": code, "sentence": sentence, "lost": lost})
    return True
