"""How training or export ends other than by being done; each message is one clear sentence."""


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
