"""The report of a finished run, and the command that repeats it."""

import json
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import RunConfig
from .options import flag

if TYPE_CHECKING:  # a report is also read where nothing is trained
    from ..training import FitResult, FitSettings
    from .gathering import RunData

REPORT = "report.json"


def read_report(folder: Path) -> dict[str, Any] | None:
    """Read the report of a finished run; None if there is none."""
    file = folder / REPORT
    if not file.is_file():
        return None
    try:
        report: dict[str, Any] = json.loads(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    return report


def command(config: RunConfig, out: str) -> str:
    """Write the command that asks for a configuration; the method is always named, whatever the default.

    >>> command(RunConfig(shots=3, leave_out=True), "again")
    'sohot fit --shots 3 --leave-out --method means --out again'
    """
    words, changed = ["sohot", "fit"], config.changed()
    asked = {name: value for name, value in config.stored().items() if name in changed or name == "method"}
    for name, value in asked.items():
        words.append(flag(name))
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, list) else str(value))
    return shlex.join([*words, "--out", out])


def make_report(
    config: RunConfig,
    data: "RunData",
    settings: "FitSettings",
    result: "FitResult",
    accuracy: dict[str, Any] | None,
    seconds: float,
    selection: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Put together what is worth knowing of a finished run, as it fits into JSON."""
    out = str(config.out)
    return {
        "run": out,
        "method": settings.resolved_method().name,
        "data": data.as_json(),
        "settings": settings.as_json(),
        "selection": selection,
        "accuracy": accuracy,
        "steps": result.steps,
        "resumed_from": result.resumed_from,
        "last_step": _finite(result.history[-1]) if result.history else None,
        "training_seconds": result.seconds,
        "seconds": seconds,
        "command": command(config, f"{out}-again"),
    }


def _finite(record: dict[str, float]) -> dict[str, float | None]:
    """Replace what JSON cannot hold."""
    return {name: value if math.isfinite(value) else None for name, value in record.items()}
