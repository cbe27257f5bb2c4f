"""The demo: from printed to handwritten digits, with and without alignment, in about a minute, without a download."""

import time
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ..functional.plain_checks import check_count
from ..methods.registry import method
from ..networks.device import one_thread
from ..reporting.figures.demo import draw_pictures
from ..training.training_run import FitResult
from .demo_result import DemoResult, SplitAccuracies, describe, save_demo
from .digit_splits import draw_split
from .digit_training import STEPS, fit_digits, new_model, settings_for

__all__ = ["METHODS", "DemoProgress", "describe", "run_demo"]

METHODS = ("s", "t", "s+t", "m", "means", "so", "so+zeta", "so+to+fo+zeta")
"""The methods the demo compares unless it is told others; it has settings for those of `OTHER_NAMES` too."""


class DemoProgress(NamedTuple):
    """One more network is trained and tested."""

    done: int
    """Networks so far."""
    total: int
    """Networks in all."""
    split: int
    """Number of the split, from 0."""
    method: str
    accuracy: float
    """On the test images, in per cent."""


def run_demo(
    out: str | PathLike[str],
    *,
    splits: int = 3,
    seed: int = 0,
    methods: Sequence[str] | None = None,
    on_progress: Callable[[DemoProgress], None] | None = None,
    steps: int = STEPS,
) -> DemoResult:
    """Train every method on every split, test on handwritten digits not seen in training, and draw pictures.

    Args:
        out: Folder for the pictures and demo.json, the result to make a report of; made if it is not there.
        splits: Number of random splits.
        seed: Seed of the splits and of the networks.
        methods: Names of the methods, see `sohot.training.method`; None for those of `METHODS`.
        on_progress: Called after each network with a `DemoProgress`.
        steps: Number of training steps of each network.

    Returns:
        Accuracies by method, the seconds spent, and the paths of the pictures.
    """
    began = time.perf_counter()
    names = _check_methods(METHODS if methods is None else methods)
    for value, name, lowest in ((splits, "splits", 1), (seed, "seed", 0), (steps, "steps", 1)):
        check_count(value, name, lowest)
    folder = _make_folder(Path(out))
    accuracies: dict[str, list[float]] = {name: [] for name in names}
    shown: dict[str, FitResult] = {}  # the networks of the first split, for the pictures
    with one_thread():
        for split in range(splits):
            data = draw_split(split, seed=seed)
            for name in names:
                accuracy, result = fit_digits(data, settings_for(name, steps=steps, seed=seed + split))
                accuracies[name].append(accuracy)
                if split == 0:
                    shown[name] = result
                if on_progress is not None:
                    done = sum(map(len, accuracies.values()))
                    on_progress(DemoProgress(done, splits * len(names), split, name, accuracy))
        pictures = draw_pictures(folder, draw_split(0, seed=seed), new_model(seed), shown)
    methods_found = {name: SplitAccuracies.of(values) for name, values in accuracies.items()}
    found = DemoResult(methods_found, time.perf_counter() - began, [str(file) for file in pictures])
    save_demo(folder, found, shown, seed=seed, steps=steps)
    return found


def _check_methods(methods: Sequence[str]) -> list[str]:
    """Bring the names of methods into one spelling."""
    if isinstance(methods, str):
        raise TypeError(f"methods must be a list of names, got the string {methods!r}")
    names = [method(name).name for name in methods]
    if not names:
        raise ValueError("methods is empty: name at least one")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"methods names {', '.join(repeated)} more than once")
    return names


def _make_folder(folder: Path) -> Path:
    """Make the folder for the pictures before anything is trained: no minute is lost on a folder that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(f"out must be a folder, but {folder} is a file") from None
    except OSError as error:
        raise type(error)(f"out cannot be made: {folder}: {error.strerror or error}") from None
    return folder
