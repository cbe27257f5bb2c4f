"""`sohot.fit`: the command `sohot fit` as a function, with images of any kind and the same options."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .._files import holding_folder
from ..runs.config import RunConfig, known_key
from ..runs.description import CONFIG, DESCRIPTION, read_config
from ..runs.given_options import resolve
from ..training.errors import Interrupted
from .given_images import Images
from .pictures import is_path
from .stored_images import INPUTS, StoredImages
from .usable_run import Run

RUNS = Path("runs")
"""Where a run goes that was given no folder."""
_OF_COMMANDS = {"quiet": "progress=False", "json": "Run.info()"}


def fit(
    source: Images | None = None,
    target: Images | None = None,
    *,
    shots: int | None = None,
    unlabelled: Images | None = None,
    target_test: Images | None = None,
    method: str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    config: str | os.PathLike[str] | None = None,
    trust: bool = False,
    progress: bool = True,
    **options: Any,
) -> Run:
    """Adapt an image classifier from a source domain to a target domain with few labels, as `sohot fit` does.

    The same options give the same weights as on the command line, to the bit (on a CPU).

    Images may be a folder with one folder per class; a list file (CSV, JSON lines, Parquet) with the columns path and
    label; a pair (images, labels); a list of (image, label); a DataFrame or a Hugging Face Dataset with the columns
    path or image and label; or a torch Dataset of (image, label).

    An image is a path, a Pillow image or an array: H × W or H × W × C, as a tensor C × H × W, of whole numbers from 0
    to 255 or other numbers from 0 to 1. Images in memory are written once, as PNG, to the folder `inputs` of the run,
    so that it can be resumed, and reported on later.

    Args:
        source: Images of the domain with many labels; a list of folders, lists, tables or data sets is pooled.
        target: Images of the domain with few labels.
        shots: Train on this many random target images per class; test on the rest, or on `target_test`.
        unlabelled: Target images without labels, or "rest": those that `shots` leaves over.
        target_test: Target images to test on; all of `target` then trains, or as many as `shots` says.
        method: What trains and what is aligned: a name of docs/methods.md.
        out: Folder for the run; None for a new one, the first of runs/run-1, runs/run-2, … that is not there yet.
        resume: Continue the run in `out`, after Ctrl-C or a power cut; source and target may be left out.
        config: TOML file of options; what is given here wins.
        trust: With `resume`: import the Python file that the run names as its network.
        progress: Whether to show progress, on standard error or in the notebook; what may be wrong is always said.
        **options: All other options of `sohot fit` (docs/options.md): `--source-shots 10` is `source_shots=10`.

    Returns:
        The finished run.

    Raises:
        TypeError: There is no such option, or images are of a kind that is not taken.
        ValueError: An option or the images are wrong; the sentence is that of the command line, so what it calls
            --leave-out is `leave_out` here.
        FileNotFoundError: There is no such folder or file.
        Interrupted: Ctrl-C arrived in training; all is saved, and the message says how to continue.

    Example:
        >>> import numpy as np, tempfile
        >>> bright, dark = np.full((4, 16, 16, 3), 200, np.uint8), np.full((4, 16, 16, 3), 50, np.uint8)
        >>> images, labels = np.concatenate([bright, dark]), ["bright"] * 4 + ["dark"] * 4
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = fit(
        ...         (images, labels), (images + 20, labels), shots=2, out=folder + "/run", backbone="small-cnn",
        ...         image_size=16, steps=20, lr=0.01, device="cpu", loggers="none", progress=False,
        ...     )
        ...     run.predict(images[[0, 7]]).labels
        ['bright', 'dark']
    """
    if resume and out is None:
        raise ValueError("resume=True continues a run: give its folder as out")
    if "unlabeled" in options and unlabelled is not None:
        raise TypeError("unlabeled is unlabelled: give one of them")
    unlabelled = options.pop("unlabeled", unlabelled)
    if source is target is not None and not is_path(source):  # of folders and lists, `RunConfig` says so
        raise ValueError("source and target are the same object: the source has other images than the target")
    given = _known({**options, "shots": shots, "method": method})
    images = {"source": source, "target": target, "target_test": target_test, "unlabelled": unlabelled}
    file = None if config is None else Path(config)
    if file is None and not resume:  # what is wrong with options is said before images are written
        RunConfig.from_values({**given, **{name: one if is_path(one) else "." for name, one in _given(images).items()}})
    if out is None and file is not None:
        out = read_config(file).get("out")
    with _run_folder(out) as (folder, stored):
        given |= {"out": folder, **({"resume": True} if resume else {}), **({} if progress else {"quiet": True})}
        resolved, asked = resolve(file, {**given, **_places(images, folder, stored, resume)}, trust)
        _fit(resolved, asked, progress)
    return Run(folder, device=resolved.device, trust=True, progress=progress)  # its code is the user's own, or trusted


def _known(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are given, and refuse names that are none."""
    for name in options:
        if name in _OF_COMMANDS:
            raise TypeError(f"{name} is an option of the command line: use {_OF_COMMANDS[name]}")
    try:
        return _given({known_key(name): value for name, value in options.items()})
    except ValueError as error:
        raise TypeError(str(error)) from None


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@contextmanager
def _run_folder(out: str | os.PathLike[str] | None) -> Iterator[tuple[Path, StoredImages]]:
    """Yield the folder of a run, a new one if none is given, and its images; if it never began, all is as before."""
    is_new = out is None or not os.path.lexists(out)
    folder = _next_folder() if out is None else Path(out)
    stored = StoredImages(folder / INPUTS)
    try:
        yield folder, stored
    except BaseException:
        if not any((folder / name).exists() for name in (DESCRIPTION, CONFIG)):
            stored.discard()
            with suppress(OSError):  # only empty folders are removed
                if is_new:
                    folder.rmdir()
                if out is None:
                    RUNS.rmdir()
        raise


def _next_folder() -> Path:
    """Make the first of runs/run-1, runs/run-2, … that is not there yet; two programs never get the same one."""
    number = 1
    while True:
        folder = RUNS / f"run-{number}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return folder


def _places(images: Mapping[str, Any], folder: Path, stored: StoredImages, resume: bool) -> dict[str, Any]:
    """Return where the images are, as the command line names them; store those that are not in folders or lists."""
    if all(one is None or is_path(one) for one in images.values()):
        return _given(images)
    from ..runs.pipeline import require_folder  # it imports torch, so wrong options are reported first

    require_folder(RunConfig(out=folder, target=Path(), resume=resume))
    with holding_folder(folder):
        shared = images["target"] is images["unlabelled"]  # rows with a label train, the others are the pool
        labelled = {"source": True, "target": not shared, "target_test": True, "unlabelled": False}
        return _given({name: stored.places(images[name], name, labelled=labelled[name]) for name in labelled})


def _fit(resolved: RunConfig, asked: set[str], progress: bool) -> None:
    """Train and test; the number of threads that torch computes on is afterwards what it was."""
    import torch

    from ..runs.pipeline import fit_run
    from .notebook_progress import progress_bar, watcher_of

    threads = torch.get_num_threads()
    try:
        with progress_bar(progress) as shown:
            fit_run(resolved, watcher_of(shown), asked)
    except Interrupted as error:
        again = f"sohot.fit(out={str(resolved.out)!r}, resume=True)"
        raise Interrupted(f"{error}: {again}", error.signal) from None
    finally:
        torch.set_num_threads(threads)
