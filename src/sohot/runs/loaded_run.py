"""A trained model, loaded for use or export: a finished run, whose checkpoint holds everything."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .._outputs import is_stream
from ..data.folders import LeftOut
from ..data.image_places import scan_images
from ..data.input_spec import InputSpec
from ..data.labelled import LabelledImages, Progress
from ..data.names import enumerate_words
from ..networks.inference import run_batches
from ..networks.trunk_and_tail import FeaturesBesideLogits
from ..networks.two_streams import TwoStreams
from ..selection.calibration import Calibration
from ..training.errors import CheckpointError
from ..training.export import export_onnx
from ..training.run_files import checkpoint_folders
from ..training.run_folder import load_run
from .calibration_file import read_calibration
from .description import is_head, values_of
from .run_model import rebuild_model
from .trust import refuse_code


class LoadedModel(Protocol):
    """What labels images: a run, or a head on the features of a backbone (`LoadedHead`)."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""

    @property
    def input(self) -> InputSpec:
        """Size and normalisation of the images."""

    @property
    def views(self) -> int:
        """Views of each image that it looks at, see `sohot.data.views`."""

    @property
    def method(self) -> str:
        """Name of the method that trained it."""

    @property
    def step(self) -> int:
        """Steps of its training."""

    @property
    def calibration(self) -> Calibration | None:
        """The held-out answers that its probabilities are calibrated by; None if it keeps none."""

    @property
    def temperature(self) -> float:
        """What its logits are still to be divided by to become calibrated; 1 if nothing is known or left to do."""

    @property
    def folded_temperature(self) -> float:
        """What its logits are divided by already; 1 if nothing is known."""

    def caution(self) -> str | None:
        """Say what the user should know before using it; None if nothing."""

    def logits(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """Classify batches of images; yields the logits of each, on the CPU."""

    def features_and_logits(self, batches: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Pass batches of images; yields the features that the classifier sees and the logits of each, on the CPU."""

    def module(self) -> nn.Module:
        """Return a module that maps images (B, C, H, W) to logits."""


@dataclass(frozen=True)
class LoadedRun:
    """A run in memory.

    Attributes:
        folder: Its folder.
        model: The two streams with the weights of the newest checkpoint, in evaluation mode.
        classes: Names of the classes.
        step: Steps done.
        steps: Steps requested.
        description: Settings and network, from the checkpoint.
        views: It looks at the centre of each image only.
        calibration: The temperature by which its probabilities are calibrated; None without held-out images.
    """

    folder: Path
    model: TwoStreams
    classes: tuple[str, ...]
    step: int
    steps: int
    description: dict[str, Any]
    views: int = 1
    calibration: Calibration | None = None

    @property
    def temperature(self) -> float:
        """The temperature of its calibration."""
        return 1.0 if self.calibration is None else self.calibration.temperature

    @property
    def folded_temperature(self) -> float:
        """Its logits are those of the last layer."""
        return 1.0

    @property
    def input(self) -> InputSpec:
        """Input of the target stream."""
        return self.model.inputs["target"]

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.description["settings"]["method"])

    def caution(self) -> str | None:
        """Say so if training is not finished."""
        return None if self.step >= self.steps else f"the run has done only {self.step} of {self.steps} steps"

    def logits(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """Classify batches of images with the target stream."""
        return run_batches(self.module(), batches, next(self.model.parameters()).device)

    def features_and_logits(self, batches: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Pass batches of images through the target stream; its features are those that are aligned."""
        both = run_batches(
            FeaturesBesideLogits(self.model.target_only()), batches, next(self.model.parameters()).device
        )
        return ((rows[:, : -len(self.classes)], rows[:, -len(self.classes) :]) for rows in both)

    def module(self) -> nn.Module:
        """Return the target stream and its classifier."""
        return self.model.target_only()


def open_run(folder: Path, device: torch.device | None = None, *, trust: bool = False) -> LoadedRun:
    """Load a run; this needs neither a network connection nor the run's initial weights, and runs no code from it.

    Args:
        folder: The run's folder.
        device: Where to put the model; None for the CPU.
        trust: Import the Python file that the run names, if it was trained with a network of your own.

    Raises:
        FileNotFoundError: It is not a run folder.
        UntrustedCode: It names a Python file, and `trust` is false.
        CheckpointError: The checkpoint is damaged or from another version.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such run folder")
    if (folder / "run.json").is_file() and not checkpoint_folders(folder / "checkpoints"):
        raise ValueError(f"{folder} holds a run that has not written a checkpoint yet")
    checkpoint = load_run(folder)
    description = checkpoint.description
    with values_of(folder):
        network, classes = description["config"]["network"], tuple(description["config"]["data"]["classes"])
        steps = int(description["settings"]["steps"])
        if not trust:
            refuse_code(network, folder)
        model = rebuild_model(network, len(classes))
    try:
        model.load_state_dict(checkpoint.tensors["model"])
    except (KeyError, RuntimeError) as error:
        raise CheckpointError(
            f"{checkpoint.folder} does not fit the network of its run: {' '.join(str(error).split())[:200]}"
        ) from None
    model.to(device or torch.device("cpu")).eval()
    return LoadedRun(folder, model, classes, checkpoint.step, steps, description, calibration=read_calibration(folder))


def open_model(
    path: Path, device: torch.device | None = None, *, weights: Path | None = None, trust: bool = False
) -> LoadedModel:
    """Load what labels images: a run, see `open_run`, or a head on features, see `open_head`."""
    if is_head(path):
        from .loaded_head import open_head  # what only a head needs takes a moment to import

        return open_head(path, device, weights=weights, trust=trust)
    if weights is not None:
        raise ValueError(f"--weights is for heads made by `sohot fit-features`; the run {path} holds its weights")
    return open_run(path, device, trust=trust)


def images_for(
    run: LoadedModel,
    folder: Path,
    *,
    leave_out: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[LabelledImages, list[LeftOut], list[str]]:
    """Find images in class folders, or in a list, to test a run or a head on.

    Args:
        run: The run, or the head.
        folder: Class folders, or a list.
        leave_out: Skip classes that the run does not know, instead of refusing.
        workers: Threads that read images.
        progress: Receives the number of images checked.

    Returns:
        The images with the run's class numbers, what was left out, and notes.
    """
    report = None if progress is None else lambda done, of: progress("checking images", done, of)
    scan = scan_images(folder, on_progress=report, workers=workers or None)
    notes = []
    if unknown := [name for name in scan.images.classes if name not in run.classes]:
        named = enumerate_words(map(repr, unknown))
        if not leave_out:
            raise ValueError(
                f"{folder} has classes that the run does not know: {named}; leave them out with --leave-out"
            )
        notes.append(f"left out {len(unknown)} classes that the run does not know: {named}")
    images = scan.images.with_classes(run.classes)
    if not len(images):
        raise ValueError(f"{folder} holds no image of a class that the run knows")
    return images, scan.left_out, notes


_NEEDED = ("onnx", "onnxscript", "onnxruntime")


def metadata(run: LoadedModel) -> dict[str, str]:
    """Return the texts to store in the file: the classes in the order of the logits, and the preprocessing, as JSON."""
    spec = run.input
    steps = {
        **asdict(spec),
        "channels": spec.channels,
        "colour": "RGB" if spec.channels == 3 else "grey",
        "order": "upright, shorter side to `resize`, centre crop of `size`, / 255, − mean, / std",
    }
    return {
        "classes": json.dumps(run.classes, ensure_ascii=False),
        "preprocessing": json.dumps(steps, ensure_ascii=False),
        "producer": "sohot",
        "method": run.method,
        "temperature": f"{run.temperature * run.folded_temperature:g}",
    }


def export_run(run: LoadedModel, file: Path) -> dict[str, Any]:
    """Write a run or a head as ONNX and compare it with PyTorch.

    Returns:
        The file, its size (None for a pipe or a device), the largest difference, the size of the images, the classes,
        and the temperature that its logits are divided by.
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise ModuleNotFoundError(f"export needs {', '.join(missing)}: pip install 'sohot[onnx]'")
    difference = export_onnx(run.module(), run.input, file, metadata=metadata(run), temperature=run.temperature)
    spec = run.input
    return {
        "onnx": str(file),
        "bytes": None if is_stream(file) else file.stat().st_size,
        "largest_difference": difference,
        "input": [spec.channels, spec.size, spec.size],
        "classes": list(run.classes),
        "temperature": run.temperature * run.folded_temperature,
    }
