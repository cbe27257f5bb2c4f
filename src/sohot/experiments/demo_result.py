"""Results of the demo: the accuracies of its methods, stored in a file."""

import math
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .._files import write_json
from .._reading import read_json
from ..training.run_folder import versions
from ..training.training_run import FitResult
from .digit_splits import SHOTS, SOURCE_PER_CLASS
from .digit_training import STEPS
from .result import Curve

DEMO = "demo.json"
FORMAT = 1
_LOSSES = ("step", "loss", "cross_entropy", "alignment")
_MOST_POINTS = 100


@dataclass(frozen=True)
class SplitAccuracies:
    """Accuracies of a method in per cent: mean, standard deviation (of the population), and each split's."""

    mean: float
    std: float
    splits: list[float]

    @classmethod
    def of(cls, splits: Sequence[float]) -> "SplitAccuracies":
        """Summarize the accuracies of some splits."""
        return cls(statistics.fmean(splits), statistics.pstdev(splits), list(splits))


@dataclass(frozen=True)
class DemoResult:
    """Results of `run_demo`; all but the seconds are the same for the same seed on the same machine.

    Attributes:
        methods: Accuracies by method.
        seconds: How long it took.
        pictures: The files of the pictures.
    """

    methods: Mapping[str, SplitAccuracies]
    seconds: float
    pictures: list[str]

    @property
    def splits(self) -> int:
        """Number of splits."""
        return len(next(iter(self.methods.values())).splits)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain numbers, texts, lists and dicts."""
        return asdict(self)


@dataclass(frozen=True)
class FirstSplit:
    """Losses and learned class weights of a method on the first split."""

    curve: Curve
    zeta: Mapping[str, list[float]] | None


@dataclass(frozen=True)
class DemoSettings:
    """How the demo was run: splits, seed, steps, and images per class of the target and of the source."""

    splits: int
    seed: int
    steps: int
    shots: int = SHOTS
    source_per_class: int = SOURCE_PER_CLASS


@dataclass(frozen=True)
class SavedDemo:
    """A demo as stored in its file.

    Attributes:
        result: Its results, with pictures by name.
        first_split: Curves and class weights by method.
        settings: How it was run.
        versions: Versions of sohot and its dependencies.
        command: The command that repeats it; None if there is none.
    """

    result: DemoResult
    first_split: Mapping[str, FirstSplit]
    settings: DemoSettings
    versions: Mapping[str, str]
    command: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        content = asdict(self)
        return {"format": FORMAT, **content.pop("result"), **content}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "SavedDemo":
        """Read the output of `as_json`.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: Something is missing or has the wrong type.
        """
        methods = {
            name: SplitAccuracies(float(one["mean"]), float(one["std"]), list(map(float, one["splits"])))
            for name, one in content["methods"].items()
        }
        if not methods:
            raise ValueError("it has no method")
        first = {name: FirstSplit(**one) for name, one in content["first_split"].items()}
        return cls(
            DemoResult(methods, float(content["seconds"]), list(content["pictures"])),
            first,
            DemoSettings(**content["settings"]),
            dict(content["versions"]),
            content["command"],
        )


def save_demo(folder: Path, result: DemoResult, trained: Mapping[str, FitResult], *, seed: int, steps: int) -> Path:
    """Write the demo's results, with the curves and class weights of its first split.

    Args:
        folder: The demo's folder.
        result: The result of `run_demo`.
        trained: Results of `fit` on the first split, by method.
        seed: Seed of the demo.
        steps: Steps of each network.
    """
    words = ["sohot", "demo", "--splits", str(result.splits), "--seed", str(seed)]
    words += ["--methods", ",".join(result.methods), "--out", f"{folder}-again"]
    saved = SavedDemo(
        replace(result, pictures=[Path(file).name for file in result.pictures]),
        {name: FirstSplit(_curve(one), one.objective.learned_weights()) for name, one in trained.items()},
        DemoSettings(result.splits, seed, steps),
        versions(),
        shlex.join(words) if steps == STEPS else None,  # it has no option for steps
    )
    write_json(folder / DEMO, saved.as_json())
    return folder / DEMO


def read_demo(folder: Path) -> SavedDemo:
    """Read what `save_demo` wrote.

    Raises:
        FileNotFoundError: There is no demo in the folder.
        ValueError: The file is damaged or from another version.
    """
    file = folder / DEMO
    try:
        content = read_json(file)
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} is not a demo folder: it has no {DEMO}") from None
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{file} is damaged or from another version of sohot: this one reads format {FORMAT}")
    try:
        return SavedDemo.from_json(content)
    except KeyError as error:
        raise ValueError(f"{file} is damaged: it has no {error}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{file} is damaged: {error}") from None


def _curve(result: FitResult) -> Curve:
    rows = result.history[:: max(1, math.ceil(len(result.history) / _MOST_POINTS))]
    return {name: [_finite(row[name]) for row in rows] for name in _LOSSES if rows and name in rows[0]}


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
