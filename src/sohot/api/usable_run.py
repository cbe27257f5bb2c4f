"""`Run`: a finished run, or a head on features, to use from Python as the command line uses it."""

import html
import os
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ..data.names import printable
from ..methods.options import above_zero
from ..runs.description import accuracy_name, values_of
from ..runs.model_card import describe_model
from .given_images import Images
from .pictures import is_path
from .prediction_table import Predictions
from .stored_images import StoredImages, files_of

if TYPE_CHECKING:
    from ..runs.loaded_run import LoadedModel
    from .tested_images import Tested


class Run:
    """A run, or a head on features, in its folder. `sohot.fit` returns one, `sohot.load` opens one.

    Args:
        path: Its folder; of a head also its file.
        device: Where to compute: auto, cpu, cuda or mps.
        weights: File of the weights of a head's backbone, if it was given one.
        trust: Import the Python file that it names as its network (FILE.py:function).
        progress: Whether to show progress.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        device: str = "auto",
        weights: str | os.PathLike[str] | None = None,
        trust: bool = False,
        progress: bool = True,
    ) -> None:
        self.path = Path(path)
        self.device, self.trust, self.progress = device, trust, progress
        self._weights = None if weights is None else Path(weights)

    @cached_property
    def model(self) -> "LoadedModel":
        """The model in memory; loaded when it is first needed."""
        from .._device import choose_device

        return self._open(choose_device(self.device))

    def _open(self, device: Any) -> "LoadedModel":
        from ..runs.loaded_run import open_model  # it imports torch

        model = open_model(self.path, device, weights=self._weights, trust=self.trust)
        if caution := model.caution():
            warnings.warn(caution, stacklevel=3)
        return model

    def info(self) -> dict[str, Any]:
        """Return all facts about the run, as `sohot info --json` prints them."""
        return describe_model(self.path)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(self.info()["classes"])

    @property
    def accuracy(self) -> float | None:
        """Share of the test images labelled correctly; None if nothing was tested."""
        accuracy = self.info()["accuracy"]
        return None if accuracy is None else float(accuracy["micro"])

    def predict(
        self,
        images: Images,
        *,
        top: int = 1,
        unknown_below: float | None = None,
        refuse_wrong: float | None = None,
        with_: "Run | str | os.PathLike[str] | Sequence[Run | str | os.PathLike[str]]" = (),
    ) -> Predictions:
        """Label images, with calibrated probabilities if the run has held-out images to calibrate by.

        Args:
            images: A folder, with all images in it; a list file; an image; several of these; or any other set of
                images that `sohot.fit` takes, whose labels are not looked at. Images in memory are passed on in
                temporary files.
            top: How many of the most likely classes to give.
            unknown_below: Answer "unknown" where the most likely class is less likely than this.
            refuse_wrong: Choose that limit by the run's held-out images, to refuse this share of wrong answers.
            with_: Other runs of the same classes, or their folders: the log-probabilities of all are averaged.

        Returns:
            One row per image, in the order given; the label of an image that cannot be read is None.

        Raises:
            FileNotFoundError: There is no such file or folder.
            ValueError: No image can be read, or an argument is wrong.
        """
        from ..cli.unknown import limit_of_average
        from ..runs.predictions import check_top, classify, refuse
        from .notebook_progress import progress_bar

        for name, share in (("--unknown-below", unknown_below), ("--refuse-wrong", refuse_wrong)):
            if share is not None:
                above_zero(most=1).check(share, name)
        several = [with_] if isinstance(with_, (Run, str, os.PathLike)) else with_
        others = [other if isinstance(other, Run) else Run(other, device=self.device) for other in several]
        run = self.model
        check_top(top, run.classes)
        runs = {self.path: run} | {other.path: other.model for other in others}
        limit = limit_of_average(runs, unknown_below, refuse_wrong)
        refuse([], limit, run.classes)  # before images are read
        with TemporaryDirectory(prefix="sohot-") as scratch, progress_bar(self.progress) as shown:
            named = _named_files(images, Path(scratch))
            files = [file for _, file in named]
            found, unreadable = classify(run, files, top, progress=shown, others=[*runs.values()][1:])
        if not found:
            raise ValueError(f"none of the {len(named)} files can be read" if named else "images holds no images")
        return Predictions.of(named, refuse(found, limit, run.classes), unreadable)

    def evaluate(self, images: Images, *, leave_out: bool = False) -> "Tested":
        """Measure the accuracy on images whose classes are known; those that the run trained on are left out.

        Args:
            images: A folder with one folder per class, or any other set of images with labels that `sohot.fit` takes.
            leave_out: Skip classes that the run does not know, instead of refusing.
        """
        from .notebook_progress import progress_bar
        from .tested_images import tested_on  # it imports torch

        with TemporaryDirectory(prefix="sohot-") as scratch, progress_bar(self.progress) as shown:
            place = StoredImages(Path(scratch)).places(images, "images")
            if isinstance(place, list):
                raise ValueError("images must be one folder or list: evaluate them one by one")
            return tested_on(self.model, self.path, Path(place), leave_out, shown)

    def report(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        images: int = 24,
        figures: str | os.PathLike[str] | None = None,
    ) -> Path:
        """Write one HTML page about the run: results, charts, samples, how to repeat it.

        Args:
            out: The file to write; None for report.html in the run's folder.
            images: How many sample images to show; 0 to read no images.
            figures: Folder for the figures as PNG and SVG files.

        Returns:
            The file.
        """
        from ..reporting.pages import write_report  # what draws takes a moment to import
        from .notebook_progress import progress_bar

        with progress_bar(self.progress) as shown:
            return write_report(self.path, out, images=images, figures=figures, progress=shown, trust=self.trust)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the model for other programs, checked with onnxruntime.

        Args:
            path: A file that ends in .onnx; or a new folder for a package, which labels images with numpy, Pillow and
                onnxruntime alone.

        Returns:
            The file or the folder.

        Raises:
            ModuleNotFoundError: What exports is not installed.
            ValueError: The folder exists already.
        """
        out = Path(path)
        if out.suffix.lower() == ".onnx":
            from ..runs.loaded_run import export_run

            export_run(self._open(None), out)
        else:
            from .._new_folder import require_new
            from ..runs.package import write_package

            require_new(out, "--package")
            write_package(self._open(None), self.path, out)
        return out

    def __repr__(self) -> str:
        facts = self._summary()
        return f"<Run {', '.join(f'{name} {text}' for name, text in facts.items())}>"

    def _repr_html_(self) -> str:
        """Show a short summary in a notebook."""
        facts = {html.escape(name): html.escape(text) for name, text in self._summary().items()}
        return f"<table>{''.join(f'<tr><th>{name}</th><td>{text}</td></tr>' for name, text in facts.items())}</table>"

    def _summary(self) -> dict[str, str]:
        """Return the method, the backbone, how many images, the accuracy if tested, and the folder, in words."""
        facts = self.info()
        with values_of(self.path):
            data, accuracy = facts["data"] or {}, facts["accuracy"]
            counts = {part: data[part] for part in ("source", "target", "test", "pool") if data.get(part)}
            parts = [f"{held.get('images', held.get('rows'))} {part}" for part, held in counts.items()]
            name = accuracy_name(facts["protocol"] if accuracy else None)
            share = accuracy and share_in_words(accuracy["micro"], accuracy["interval95"], accuracy["rows"])
            return {
                "method": facts["method"],
                "backbone": str(facts["network"].get("backbone", "unknown")),
                "classes": str(len(facts["classes"])),
                **({"images": ", ".join(parts)} if parts else {}),
                name: share or "not tested",
                "folder": printable(self.path),
            }


def share_in_words(share: float, interval: Sequence[float], images: int) -> str:
    """Say how many images are labelled correctly.

    >>> share_in_words(0.875, (0.71, 0.95), 24)
    '87.5 % (71.0 to 95.0) of 24 images'
    """
    low, high = (f"{100 * end:.1f}" for end in interval)
    return f"{100 * share:.1f} % ({low} to {high}) of {images} images"


def load(
    path: str | os.PathLike[str],
    *,
    device: str = "auto",
    weights: str | os.PathLike[str] | None = None,
    trust: bool = False,
    progress: bool = True,
) -> Run:
    """Open a run made by `sohot.fit` or `sohot fit`, or a head made by `sohot fit-features`.

    Args:
        path: Its folder; of a head also its file.
        device: Where to compute: auto, cpu, cuda or mps.
        weights: File of the weights of a head's backbone, if it was given one.
        trust: Import the Python file that it names as its network (FILE.py:function).
        progress: Whether to show progress when it is used.

    Raises:
        FileNotFoundError: There is no run.
        UntrustedCode: It names a Python file, and `trust` is false.
        CheckpointError: It is damaged, or from another version.

    Example:
        >>> load("runs/nowhere")
        Traceback (most recent call last):
            ...
        FileNotFoundError: runs/nowhere: there is no such run folder
    """
    run = Run(path, device=device, weights=weights, trust=trust, progress=progress)
    _ = run.model  # what is wrong with it is said now
    return run


def _named_files(images: Any, scratch: Path) -> list[tuple[Path | int, Path]]:
    """Return each image to label: how the table calls it, and its file."""
    from ..runs.predictions import find_images

    if is_path(images):
        images = [images]
    if isinstance(images, Sequence) and all(map(is_path, images)):  # one may be given twice, so each is asked alone
        return [(file, file) for path in images for file in find_images([Path(path)])]
    files = enumerate(files_of(images, "images", scratch))
    return [(place, scratch / one.file) if one.stored else (one.file, one.file) for place, one in files]
