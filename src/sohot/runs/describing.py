"""What a run is: trained on what, how, how well, and how to repeat it; also of a run that is not finished."""

from pathlib import Path
from typing import Any

from ..training.descriptions import checkpoint_folders, read_description
from .config import RunConfig
from .config_file import read_config
from .file_names import CONFIG, DESCRIPTION
from .reporting import command, read_report
from .selection_file import SELECTION


def describe_run(folder: Path) -> dict[str, Any]:
    """Collect what the files of a run's folder say, without loading its weights.

    Args:
        folder: The run's folder.

    Returns:
        state, method, selection (None unless the method was chosen), data, classes, accuracy (None without test),
        network, settings, versions and command.
    """
    if not folder.exists():
        raise FileNotFoundError(f"{folder}: there is no such run folder")
    if (folder / SELECTION).is_file() and not (folder / DESCRIPTION).is_file():
        raise FileNotFoundError(
            f"{folder} holds a run whose method is not chosen yet; go on by: sohot fit --out {folder} --resume"
        )
    if not (folder / DESCRIPTION).is_file():
        raise FileNotFoundError(f"{folder} is not the folder of a run: it has no {DESCRIPTION}")
    description = read_description(folder / DESCRIPTION)
    report = read_report(folder)
    newest = next(iter(checkpoint_folders(folder / "checkpoints")), None)
    done = 0 if newest is None else int(newest.name.removeprefix("step-"))
    try:
        settings, steps = description["settings"], int(description["settings"]["steps"])
        network, classes = description["config"]["network"], description["config"]["data"]["classes"]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{folder} holds a run that was not made by `sohot fit`") from None
    finished = report is not None and done >= steps
    state = f"{done} of {steps} steps done; go on" if done < steps else f"trained, {steps} steps, but not tested; do so"
    return {
        "run": str(folder),
        "state": f"finished, {steps} steps" if finished else f"{state} by: sohot fit --out {folder} --resume",
        "step": done,
        "method": settings["method"],
        "data": report and report["data"],
        "classes": classes,
        "selection": report and report.get("selection"),
        "accuracy": report and report["accuracy"],
        "seconds": report and report["seconds"],
        "network": network,
        "settings": settings,
        "versions": description["versions"],
        "command": _command(folder),
    }


def _command(folder: Path) -> str:
    """Give the command that repeats a run; its configuration file is the one thing it needs."""
    if (folder / CONFIG).is_file():
        return command(RunConfig.from_values(read_config(folder / CONFIG)), f"{folder}-again")
    return f"sohot fit --config {folder / CONFIG} --out {folder}-again"
