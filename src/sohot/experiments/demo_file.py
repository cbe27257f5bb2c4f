"""What the demo leaves in its folder beside the pictures: one JSON file that a report is made of."""

import json
import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._files import write_json
from ..training import FitResult
from ..training.run_folder import versions
from .digit_splits import SHOTS, SOURCE_PER_CLASS
from .digit_training import STEPS

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
