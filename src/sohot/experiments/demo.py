"""The demo: from printed to handwritten digits, with and without alignment, in about a minute, without a download."""

import json
import math
import shlex
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from .._files import write_json
from ..functional.plain_checks import check_count
from ..methods.registry import method
from ..networks.device import one_thread
from ..reporting.figures.demo import draw_pictures
from ..reporting.statistics import paired_difference
from ..training.run_folder import versions
from ..training.training_run import FitResult
from .digit_splits import SHOTS, SOURCE_PER_CLASS, draw_split
from .digit_training import STEPS, fit_digits, new_model, settings_for
from .grid import BASELINE

DEMO = "demo.json"
FORMAT = 1
_LOSSES = ("step", "loss", "cross_entropy", "alignment")
_MOST_POINTS = 100


def save_demo(
    folder: Path, result: Mapping[str, Any], trained: Mapping[str, FitResult], *, seed: int, steps: int
) -> Path:
    """Write what the demo found, with the curves and class weights of its first split.

    Args:
        folder: The demo's folder.
        result: What `run_demo` returns.
        trained: What `fit` gave on the first split, by method.
        seed: Seed of the demo.
        steps: Steps of each network.
    """
    splits = len(next(iter(result["methods"].values()))["splits"])
    words = ["sohot", "demo", "--splits", str(splits), "--seed", str(seed), "--methods", ",".join(result["methods"])]
    command = None if steps != STEPS else shlex.join([*words, "--out", f"{folder}-again"])  # steps are no option of it
    content = {
        "format": FORMAT,
        **result,
        "pictures": [Path(file).name for file in result["pictures"]],
        "first_split": {
            name: {"curve": _curve(one), "zeta": one.objective.learned_weights()} for name, one in trained.items()
        },
        "settings": {
            "splits": splits,
            "seed": seed,
            "steps": steps,
            "shots": SHOTS,
            "source_per_class": SOURCE_PER_CLASS,
        },
        "versions": versions(),
        "command": command,
    }
    write_json(folder / DEMO, content)
    return folder / DEMO


def read_demo(folder: Path) -> dict[str, Any]:
    """Read what `save_demo` wrote.

    Raises:
        FileNotFoundError: There is no demo in the folder.
        ValueError: The file is damaged or of another version.
    """
    file = folder / DEMO
    try:
        content: dict[str, Any] = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} is not the folder of a demo: it has no {DEMO}") from None
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{file} is damaged or of another version of sohot: this one reads format {FORMAT}")
    return content


def _curve(result: FitResult) -> dict[str, list[float | None]]:
    rows = result.history[:: max(1, math.ceil(len(result.history) / _MOST_POINTS))]
    return {name: [_finite(row[name]) for row in rows] for name in _LOSSES if rows and name in rows[0]}


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


_NEXT = """\
What to try next:
  your own images, a folder per class:  sohot fit --source DIR --target DIR --shots 3 --out RUN
  these figures for a program:          sohot demo --json
  these figures as a page to read:      sohot report {folder}
  the loss in your own training loop:
      from sohot import ScatterAlignment
      align = ScatterAlignment(num_classes=10, sigma1=0.1, sigma2=0.1, feature_scale="initial")
      loss = loss + align(source_features, source_labels, target_features, target_labels)"""


def describe(result: Mapping[str, Any]) -> str:
    """Say the result of `run_demo` in words.

    Args:
        result: What `run_demo` returned.

    Returns:
        The table (mean ± standard deviation; the difference to s+t, split by split, with the p of a paired t-test), the
        pictures, and what to try next; several lines, without a newline at the end.

    Example:
        >>> result = {"methods": {"s+t": {"mean": 81.0, "std": 1.0, "splits": [80.0, 82.0]},
        ...                       "so": {"mean": 85.5, "std": 2.5, "splits": [83.0, 88.0]}},
        ...           "seconds": 9.0, "pictures": []}
        >>> print(describe(result).split("What to try next")[0].rstrip())
        From printed to handwritten digits: 3 labels per class, 2 splits, 9 s.
        Accuracy in % on handwritten digits not seen in training:
        <BLANKLINE>
          method                                       mean ± std   difference to s+t
          s+t            both, no alignment            81.0 ± 1.0
          so             both, class scatters aligned  85.5 ± 2.5   +4.5 ± 1.5, better in 2 of 2 splits, p 0.205
    """
    methods: Mapping[str, Any] = result["methods"]
    splits = len(next(iter(methods.values()))["splits"])
    names, meanings = max(13, *map(len, methods)), max(len(method(name).label) for name in methods)
    spent = f"{_count(splits, 'split')}, {result['seconds']:.0f} s"
    lines = [
        f"From printed to handwritten digits: {SHOTS} labels per class, {spent}.",
        "Accuracy in % on handwritten digits not seen in training:",
        "",
        f"  {'method':<{names}}  {'':<{meanings}}  mean ± std"
        + (f"   difference to {BASELINE}" if BASELINE in methods else ""),
    ]
    for name, values in methods.items():
        cells = f"  {name:<{names}}  {method(name).label:<{meanings}}  {values['mean']:4.1f} ± {values['std']:3.1f}"
        lines.append(f"{cells}   {_difference(name, methods)}".rstrip())
    if result["pictures"]:
        lines += ["", "Pictures:", *(f"  {file}" for file in result["pictures"])]
    folder = Path(result["pictures"][0]).parent if result["pictures"] else "FOLDER"
    return "\n".join([*lines, "", _NEXT.format(folder=shlex.quote(str(folder)))])


def _difference(name: str, methods: Mapping[str, Any]) -> str:
    """Compare a method with the baseline split by split: both have the same images and the same first weights."""
    if name == BASELINE or BASELINE not in methods:
        return ""
    mine, its = (methods[one]["splits"] for one in (name, BASELINE))
    spread = statistics.pstdev(one - other for one, other in zip(mine, its, strict=True))
    found = paired_difference(dict(enumerate(mine)), dict(enumerate(its)))
    assert found is not None  # there is a split
    words = f"{found.mean:+.1f} ± {spread:.1f}, better in {found.wins} of {_count(found.pairs, 'split')}"
    return f"{words}{_chance(found.p_t)}"


def _chance(p: float | None) -> str:
    """Give the p of the paired t-test; nothing where one split, or equal differences, leave nothing to judge by."""
    if p is None:
        return ""
    return ", p < 0.001" if p < 0.001 else f", p {p:.3f}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


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
) -> dict[str, Any]:
    """Train every method on every split, test on handwritten digits not seen in training, and draw pictures.

    Args:
        out: Folder for the pictures and demo.json, the result to make a report of; made if it is not there.
        splits: Number of random splits.
        seed: Seed of the splits and of the networks.
        methods: Names of the methods, see `sohot.training.method`; None for those of `METHODS`.
        on_progress: Called after each network with a `DemoProgress`.
        steps: Number of training steps of each network.

    Returns:
        `{"methods": {name: {"mean": …, "std": …, "splits": […]}, …}, "seconds": …, "pictures": […]}`: accuracies in per
        cent, their mean and standard deviation (of the population) over the splits, and the paths of the pictures. All
        of it fits into JSON; all but the seconds is the same for the same seed on the same machine.
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
    summary = {
        name: {"mean": statistics.fmean(values), "std": statistics.pstdev(values), "splits": values}
        for name, values in accuracies.items()
    }
    seconds = time.perf_counter() - began
    found = {"methods": summary, "seconds": seconds, "pictures": [str(file) for file in pictures]}
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
