"""A finished run, loaded to be used: the checkpoint holds everything."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..data import InputSpec, LabelledImages, scan_folder
from ..data.names import enumerate_words
from ..data.walk import LeftOut
from ..streams import TwoStreams
from ..training import CheckpointError, load_run
from ..training.descriptions import checkpoint_folders
from .building import rebuild_model
from .gathering import Progress


@dataclass(frozen=True)
class LoadedRun:
    """A run in memory.

    Attributes:
        folder: Its folder.
        model: The two streams with the weights of the newest checkpoint, in evaluation mode.
        classes: Names of the classes.
        step: Steps done.
        steps: Steps asked for.
        description: What the checkpoint says of settings and network.
    """

    folder: Path
    model: TwoStreams
    classes: tuple[str, ...]
    step: int
    steps: int
    description: dict[str, Any]

    @property
    def input(self) -> InputSpec:
        """What the target stream is fed."""
        return self.model.inputs["target"]

    def caution(self) -> str | None:
        """Say that training is not over, if so."""
        return None if self.step >= self.steps else f"the run has done {self.step} of {self.steps} steps only"


def open_run(folder: Path, device: torch.device | None = None) -> LoadedRun:
    """Load a run, without a network connection and without the weights it began with.

    Args:
        folder: The run's folder.
        device: Where the model shall work; None for the CPU.

    Raises:
        FileNotFoundError: It is not the folder of a run.
        CheckpointError: The checkpoint is damaged, holds a pickle or is of another version.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such run folder")
    if (folder / "run.json").is_file() and not checkpoint_folders(folder / "checkpoints"):
        raise ValueError(f"{folder} holds a run that has not written a checkpoint yet")
    checkpoint = load_run(folder)
    description = checkpoint.description
    try:
        network, classes = description["config"]["network"], tuple(description["config"]["data"]["classes"])
        steps = int(description["settings"]["steps"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{folder} holds a run that was not made by `sohot fit`") from None
    model = rebuild_model(network, len(classes))
    try:
        model.load_state_dict(checkpoint.tensors["model"])
    except (KeyError, RuntimeError) as error:
        raise CheckpointError(
            f"{checkpoint.folder} does not fit the network of its run: {' '.join(str(error).split())[:200]}"
        ) from None
    model.to(device or torch.device("cpu")).eval()
    return LoadedRun(folder, model, classes, checkpoint.step, steps, description)


def images_for(
    run: LoadedRun,
    folder: Path,
    *,
    leave_out: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[LabelledImages, list[LeftOut], list[str]]:
    """Find images in class folders to test a run on.

    Args:
        run: The run.
        folder: Class folders.
        leave_out: Leave out classes that the run does not know, instead of refusing.
        workers: Threads that read images.
        progress: Told how many images were checked.

    Returns:
        The images with the run's numbers of the classes, what was left out, and notes.
    """
    report = None if progress is None else lambda done, of: progress("checking images", done, of)
    found = scan_folder(folder, on_progress=report, workers=workers or None)
    notes = []
    if unknown := [name for name in found.images.classes if name not in run.classes]:
        named = enumerate_words(map(repr, unknown))
        if not leave_out:
            raise ValueError(
                f"{folder} has classes that the run does not know: {named}; leave them out with --leave-out"
            )
        notes.append(f"left out {len(unknown)} classes that the run does not know: {named}")
    images = found.images.with_classes(run.classes)
    if not len(images):
        raise ValueError(f"{folder} holds no image of a class that the run knows")
    return images, found.left_out, notes
