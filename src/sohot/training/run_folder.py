"""A run's folder: its settings, checkpoints and logs; and whether a resumed run is the same run."""

import json
import platform
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from .._files import lock_folder, refuse_link, remove_leftovers, sealed, write_json
from .checkpoint import Checkpoint, Tensors, latest_checkpoint, save_checkpoint
from .errors import ChangedRun, CheckpointError
from .run_files import FORMAT, checkpoint_folders, differences, read_description

_COMPARED = ("settings", "data", "model", "config")


class RunFolder:
    """The folder of one run: `run.json`, `checkpoints/`, `log.csv` and the folder of TensorBoard.

    Args:
        path: The folder; created if it does not exist.
        identity: What identifies the run, by "settings", "data", "model" and "config"; as JSON values.
        resume: Resume the run in the folder, if there is one.
        keep: How many checkpoints to keep.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], *, resume: bool, keep: int) -> None:
        self.path = Path(path)
        self.keep = keep
        self._identity = json.loads(json.dumps(identity))
        self._resume = resume
        self._lock = ExitStack()

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / "checkpoints"

    def open(self) -> Checkpoint | None:
        """Create or check the folder; return the checkpoint to resume from, None for the start."""
        file = self.path / "run.json"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(self.path)
            for folder in (self.path, refuse_link(self.checkpoints)):
                remove_leftovers(folder)
            if not file.exists() and not checkpoint_folders(self.checkpoints):
                write_json(file, sealed({"format": FORMAT, "versions": versions(), **self._identity}))
                return None
        except FileExistsError as error:
            raise ValueError(f"run_dir {self.path} is a file, not a folder") from error
        except BlockingIOError as error:
            raise ChangedRun(f"run_dir {self.path} is in use by another training process") from error
        except OSError as error:
            raise CheckpointError(f"run_dir {self.path} cannot be written: {error.strerror or error}") from error
        if not self._resume:
            raise ChangedRun(f"run_dir {self.path} already contains a run: resume it, or choose another folder")
        require_same(file, {part: self._identity.get(part) for part in _COMPARED}, f"run_dir {self.path}")
        return latest_checkpoint(self.checkpoints)

    def close(self) -> None:
        """Let others use the folder."""
        self._lock.close()

    def save(self, step: int, tensors: Tensors, state: Mapping[str, Any]) -> Path:
        """Write a checkpoint of this run."""
        description = {"versions": versions(), **self._identity, **state}
        return save_checkpoint(self.checkpoints, step, tensors, description, self.keep)

    def last_good(self) -> str:
        """Say where the newest checkpoint is."""
        newest = next(iter(checkpoint_folders(self.checkpoints)), None)
        return f"the last good checkpoint is {newest}" if newest else f"no checkpoint was written to {self.path} yet"


def require_same(file: Path, identity: Mapping[str, Any], folder: str) -> None:
    """Refuse to resume a different run.

    Args:
        file: The description of the run in the folder.
        identity: The parts of the description to compare, as they are now.
        folder: What the message calls the folder.

    Raises:
        ChangedRun: Something has changed; the message says what.
    """
    stored, now = read_description(file), json.loads(json.dumps(identity))
    if changes := [change for part, value in now.items() for change in differences(stored.get(part), value, part)]:
        raise ChangedRun(f"{folder} contains a different run, so it cannot be resumed; changed: {'; '.join(changes)}")


def load_run(run_dir: str | Path) -> Checkpoint:
    """Load the newest complete checkpoint of a run: the trained weights are `tensors["model"]`.

    Args:
        run_dir: The run's folder.

    Returns:
        The checkpoint; its description holds the settings, the data's fingerprint and the config of the run.
    """
    path = Path(run_dir)
    if not (path / "run.json").is_file():
        raise FileNotFoundError(f"{path} is not a run folder: it has no run.json")
    read_description(path / "run.json")
    checkpoint = latest_checkpoint(path / "checkpoints")
    if checkpoint is None:
        raise CheckpointError(f"{path} contains a run that has not written a checkpoint yet")
    return checkpoint


def versions() -> dict[str, str]:
    """Return the versions that matter to a result."""
    from .. import __version__

    return {"sohot": __version__, "torch": torch.__version__, "python": platform.python_version()}
