"""The demo: from printed to handwritten digits, with and without alignment, in about a minute, without a download."""

import shlex
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ._device import one_thread
from ._files import holding_folder
from .experiments.demo_result import DemoResult, SplitAccuracies, save_demo
from .experiments.digit_splits import SHOTS, draw_split
from .experiments.digit_training import STEPS, fit_digits, new_model, settings_for
from .experiments.grid import BASELINE
from .methods import options
from .methods.registry import method
from .reporting.figures.demo import draw_pictures
from .reporting.pages.words import count
from .reporting.statistics import paired_difference
from .training.training_run import FitResult

METHODS = ("s", "t", "s+t", "m", "means", "so", "so+zeta", "so+to+fo+zeta")
"""The methods the demo compares by default; it has settings for those of `OTHER_NAMES` too."""


class DemoProgress(NamedTuple):
    """Progress after one more network is trained and tested."""

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
        out: Folder for the pictures and demo.json, from which a report is made; created if missing.
        splits: Number of random splits.
        seed: Seed of the splits and of the networks.
        methods: Names of the methods, see `sohot.methods.method`; None for those of `METHODS`.
        on_progress: Called after each network with a `DemoProgress`.
        steps: Number of training steps of each network.

    Returns:
        Accuracies by method, the seconds spent, and the paths of the pictures.
    """
    began = time.perf_counter()
    names = _check_methods(METHODS if methods is None else methods)
    for within, value, name in (
        (options.from_to(1, 1000), splits, "splits"),
        (options.SEED, seed, "seed"),
        (options.STEPS, steps, "steps"),
    ):
        within.check(value, name)
    folder = _make_folder(Path(out))
    accuracies: dict[str, list[float]] = {name: [] for name in names}
    shown: dict[str, FitResult] = {}  # the networks of the first split, for the pictures
    with holding_folder(folder), one_thread():
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
    """Normalize the names of methods."""
    if isinstance(methods, str):
        raise TypeError(f"methods must be a list of names, got the string {methods!r}")
    records = [method(name) for name in methods]
    if without := [record.name for record in records if record.needs_pool]:
        raise ValueError(
            f"method {without[0]!r} learns from unlabelled images, which the demo does not have: leave it out"
        )
    names = [record.name for record in records]
    if not names:
        raise ValueError("methods is empty: name at least one")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"methods names {', '.join(repeated)} more than once")
    return names


def _make_folder(folder: Path) -> Path:
    """Create the folder for the pictures before training, so that an unusable folder fails at once."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(f"out must be a folder, but {folder} is a file") from None
    except OSError as error:
        raise type(error)(f"out cannot be created: {folder}: {error.strerror or error}") from None
    return folder


_NEXT = """\
What to try next:
  your own images, a folder per class:  sohot fit --source DIR --target DIR --shots 3 --out RUN
  these results as JSON:                sohot demo --json
  these results as an HTML page:        sohot report {folder}
  the loss in your own training loop:
      from sohot import ScatterAlignment
      align = ScatterAlignment(num_classes=10, sigma1=0.1, sigma2=0.1, feature_scale="initial")
      loss = loss + align(source_features, source_labels, target_features, target_labels)"""


def describe(result: DemoResult) -> str:
    """Describe the result of `run_demo` as text.

    Args:
        result: What `run_demo` returned.

    Returns:
        The table (mean ± standard deviation; the difference from s+t, split by split, with the p-value of a paired
        t-test), the pictures, and what to try next; several lines, without a trailing newline.

    Example:
        >>> methods = {"s+t": SplitAccuracies.of([80.0, 82.0]), "so": SplitAccuracies.of([83.0, 88.0])}
        >>> print(describe(DemoResult(methods, seconds=9.0, pictures=[])).split("What to try next")[0].rstrip())
        From printed to handwritten digits: 3 labels per class, 2 splits, 9 s.
        Accuracy in % on handwritten digits not seen in training:
        <BLANKLINE>
          method                                       mean ± std   difference from s+t
          s+t            both, no alignment            81.0 ± 1.0
          so             both, class scatters aligned  85.5 ± 2.5   +4.5 ± 1.5, better in 2 of 2 splits, p 0.205
    """
    methods = result.methods
    labels = {name: method(name).label for name in methods}
    names, meanings = max(13, *map(len, methods)), max(map(len, labels.values()))
    spent = f"{count(result.splits, 'split')}, {result.seconds:.0f} s"
    lines = [
        f"From printed to handwritten digits: {SHOTS} labels per class, {spent}.",
        "Accuracy in % on handwritten digits not seen in training:",
        "",
        f"  {'method':<{names}}  {'':<{meanings}}  mean ± std"
        + (f"   difference from {BASELINE}" if BASELINE in methods else ""),
    ]
    for name, values in methods.items():
        cells = f"  {name:<{names}}  {labels[name]:<{meanings}}  {values.mean:4.1f} ± {values.std:3.1f}"
        lines.append(f"{cells}   {_difference(name, methods)}".rstrip())
    if result.pictures:
        lines += ["", "Pictures:", *(f"  {file}" for file in result.pictures)]
    folder = Path(result.pictures[0]).parent if result.pictures else "FOLDER"
    return "\n".join([*lines, "", _NEXT.format(folder=shlex.quote(str(folder)))])


def _difference(name: str, methods: Mapping[str, SplitAccuracies]) -> str:
    """Compare a method with the baseline split by split: both have the same images and initial weights."""
    if name == BASELINE or BASELINE not in methods:
        return ""
    mine, its = (methods[one].splits for one in (name, BASELINE))
    spread = statistics.pstdev(one - other for one, other in zip(mine, its, strict=True))
    found = paired_difference(dict(enumerate(mine)), dict(enumerate(its)))
    assert found is not None  # there is a split
    words = f"{found.mean:+.1f} ± {spread:.1f}, better in {found.wins} of {count(found.pairs, 'split')}"
    return f"{words}{_chance(found.p_t)}"


def _chance(p: float | None) -> str:
    """Format the p-value of the paired t-test; empty if one split, or equal differences, give none."""
    if p is None:
        return ""
    return ", p < 0.001" if p < 0.001 else f", p {p:.3f}"
