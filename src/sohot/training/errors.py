"""How training or export ends other than by being done; each message is one clear sentence."""

import os
from pathlib import Path

from .._files import write_json

ENDING = "SOHOT_ENDING"
"""Environment of such a process: the file in which it says how it ended."""


class TrainingError(RuntimeError):
    """A training run could not go on."""


class Diverged(TrainingError):  # noqa: N818 - it names what happened
    """The loss is no number any more, or far above where it began. The last good checkpoint is kept."""


class Interrupted(TrainingError):  # noqa: N818
    """Ctrl-C or SIGTERM came: the step was finished, the state saved, and the run stopped.

    Attributes:
        signal: Name of the signal, "SIGINT" or "SIGTERM".
    """

    def __init__(self, message: str, signal: str = "SIGINT") -> None:
        super().__init__(message)
        self.signal = signal


class RankLost(TrainingError):  # noqa: N818
    """Another of the processes that train together is gone."""


class RanksFailed(TrainingError):  # noqa: N818
    """A process that was started for the run has failed, and has said how.

    Attributes:
        code: Its exit code.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class CheckpointError(TrainingError):
    """A checkpoint could not be written or read."""


class CorruptCheckpoint(CheckpointError):  # noqa: N818
    """A checkpoint is damaged or not complete."""


class PickleRefused(CheckpointError):  # noqa: N818
    """A checkpoint holds a pickle, which can run any code when it is read."""


class OtherVersion(CheckpointError):  # noqa: N818
    """A run folder or a checkpoint was written in a format this version does not read."""


class ChangedRun(ValueError):  # noqa: N818
    """A run folder holds another run than the one asked for."""


class ExportError(RuntimeError):
    """The model could not be exported, or the exported file does not do what the model does."""


def record_ending(code: int, sentence: str, error: BaseException) -> bool:
    """Leave the end of this process to the one that started it; False if that was somebody else."""
    file = os.environ.get(ENDING)
    if file is None:
        return False
    from .ranks import lost_connection  # not before: every command that fails asks here

    lost = isinstance(error, RankLost) or lost_connection(error) or lost_connection(error.__cause__)
    write_json(Path(file), {"code": code, "sentence": sentence, "lost": lost})
    return True
