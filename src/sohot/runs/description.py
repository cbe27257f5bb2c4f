"""Description of a run, finished or not: what it was trained on, how, how well, and how to repeat it."""

import math
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import parse_toml
from .._reading import read_json, read_text
from ..data.pools import SUPERVISED, TRANSDUCTIVE
from ..methods.options import flag
from ..training.run_files import checkpoint_folders, read_description
from .auto import SELECTION
from .config import FOLDERS, RunConfig, known_key
from .trust import refuse_code

if TYPE_CHECKING:  # reading a report does not need training code
    from .run_data import RunData
    from .train_and_test import TrainedModel

CONFIG = "config.toml"
"""The resolved options."""

DESCRIPTION = "run.json"
"""Description of the run: settings, network, images, versions."""

REPORT = "report.json"
"""Results of the finished run."""


POOL_LABELS = "pool.csv"
"""What the finished run says about each unlabelled image."""

HEAD = "model.safetensors"
"""The model in the folder of a head, which `sohot fit-features` writes."""


def is_head(path: Path) -> bool:
    """Tell whether a path is a head on features: a file, or a folder with the model of one, and not a run."""
    return path.is_file() or ((path / HEAD).is_file() and not (path / DESCRIPTION).is_file())


def read_config(file: Path) -> dict[str, Any]:
    """Read a TOML file of options, flat or in tables; the names of the tables do not matter.

    Args:
        file: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not TOML, or a key is not an option or appears twice.
    """
    try:
        content = parse_toml(read_text(file))
    except (FileNotFoundError, IsADirectoryError):
        raise FileNotFoundError(f"--config {file}: there is no such file") from None
    except ValueError as error:  # of the encoding, or of TOML itself
        raise ValueError(f"--config {file} is not TOML: {error}") from None
    values: dict[str, Any] = {}
    _collect(content, values, file)
    return values


def _collect(table: Mapping[str, Any], values: dict[str, Any], file: Path) -> None:
    for key, value in table.items():
        if isinstance(value, dict):
            _collect(value, values, file)
            continue
        try:
            name = known_key(key)
        except ValueError as error:
            raise ValueError(f"--config {file}: {error}") from None
        if name in values:
            raise ValueError(f"--config {file}: {key!r} appears twice")
        values[name] = value


def stored_config(folder: Path, *, trust: bool = False) -> RunConfig:
    """Read the configuration of a run from its folder, to build its network again.

    Args:
        folder: The run's folder.
        trust: Accept a configuration that names a Python file to import.
    """
    values = read_config(folder / CONFIG)
    if not trust:
        refuse_code(values, folder)
    return RunConfig.from_values(values)


@contextmanager
def values_of(folder: Path) -> Iterator[None]:
    """Report values in the files of a run that are missing or of another kind, because somebody edited them."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        found = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ValueError(f"{folder} holds a run that is damaged or was not made by `sohot fit` ({found})") from error


def describe_run(folder: Path) -> dict[str, Any]:
    """Collect the facts in the files of a run's folder, without loading its weights.

    Args:
        folder: The run's folder.

    Returns:
        state, solved (whether it is a classifier on frozen features), method, selection (None unless the method was
        chosen), data, protocol (what its unlabelled images are to the test), classes, head (how good the classifier on
        frozen features is; None without pre-trained weights), accuracy (None without a test), network, settings,
        versions and command.
    """
    if not folder.exists():
        raise FileNotFoundError(f"{folder}: there is no such run folder")
    if (folder / SELECTION).is_file() and not (folder / DESCRIPTION).is_file():
        raise FileNotFoundError(
            f"{folder} holds a run whose method is not chosen yet; continue with: sohot fit --out {folder} --resume"
        )
    if not (folder / DESCRIPTION).is_file():
        raise FileNotFoundError(f"{folder} is not a run folder: it has no {DESCRIPTION}")
    description = read_description(folder / DESCRIPTION)
    report = read_report(folder)
    newest = next(iter(checkpoint_folders(folder / "checkpoints")), None)
    done = 0 if newest is None else int(newest.name.removeprefix("step-"))
    with values_of(folder):
        return _described(folder, description, report, done)


def _described(
    folder: Path, description: Mapping[str, Any], report: Mapping[str, Any] | None, done: int
) -> dict[str, Any]:
    settings, steps = description["settings"], int(description["settings"]["steps"])
    network, classes = description["config"]["network"], description["config"]["data"]["classes"]
    finished = report is not None and done >= steps
    solved = bool(description["config"].get("solved"))
    counted = "on frozen features" if solved else f"{steps} steps"
    state = f"{done} of {steps} steps done" if done < steps else f"trained, {counted}, but not tested"
    return {
        "run": str(folder),
        "state": f"finished, {counted}" if finished else f"{state}; continue: sohot fit --out {folder} --resume",
        "step": done,
        "solved": solved,
        "method": settings["method"],
        "data": report and report["data"],
        "protocol": report and report["protocol"],
        "classes": classes,
        "selection": report and report["selection"],
        "head": report and report["head"],
        "accuracy": report and report["accuracy"],
        "seconds": report and report["seconds"],
        "network": network,
        "settings": settings,
        "versions": description["versions"],
        "command": _command(folder),
    }


def _command(folder: Path) -> str:
    """Return the command that repeats a run; it needs only the run's configuration file."""
    if (folder / CONFIG).is_file():
        return command(RunConfig.from_values(read_config(folder / CONFIG)), f"{folder}-again")
    return f"sohot fit --config {folder / CONFIG} --out {folder}-again"


def read_report(folder: Path) -> dict[str, Any] | None:
    """Read the report of a finished run; None if there is none."""
    file = folder / REPORT
    if not file.is_file():
        return None
    try:
        report: dict[str, Any] = read_json(file)
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {error}; remove it, and --resume writes it again") from None
    if not isinstance(report, dict) or not {"data", "accuracy", "seconds"} <= set(report):
        raise ValueError(f"{file} is damaged: remove it, and --resume writes it again")
    return report


def command(config: RunConfig, out: str) -> str:
    """Write the command for a configuration; it always names the method, whatever the default.

    >>> command(RunConfig(shots=3, leave_out=True), "again")
    'sohot fit --shots 3 --leave-out --method means --out again'
    """
    words, changed = ["sohot", "fit"], config.changed()
    asked = {name: value for name, value in config.stored().items() if name in changed or name == "method"}
    for name, value in asked.items():
        if name in FOLDERS and isinstance(value, list):
            words += [word for folder in value for word in (flag(name), folder)]
            continue
        words.append(flag(name))
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, list) else str(value))
    return shlex.join([*words, "--out", out])


def make_report(
    config: RunConfig,
    data: "RunData",
    trained: "TrainedModel",
    accuracy: dict[str, Any] | None,
    seconds: float,
    selection: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Assemble the report of a finished run, as JSON values."""
    out, result, settings = str(config.out), trained.result, trained.settings
    return {
        "run": out,
        "method": settings.resolved_method().name,
        "trains": trained.model.trains,
        "data": data.as_json(),
        "protocol": data.protocol,
        "settings": settings.as_json(),
        "selection": selection,
        "pool": _pool(data, trained, selection),
        "head": _head(trained),
        "accuracy": accuracy,
        "steps": result.steps,
        "resumed_from": result.resumed_from,
        "last_step": _finite(result.history[-1]) if result.history else None,
        "training_seconds": result.seconds,
        "seconds": seconds,
        "command": command(config, f"{out}-again"),
    }


def _pool(data: "RunData", trained: "TrainedModel", selection: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Describe whether the unlabelled images count, and their estimated class shares; None without any."""
    if data.pool is None:
        return None
    if trained.solved and trained.start is not None and (choice := trained.start.pool) is not None:
        return {"kept": choice.kept, "sentence": choice.reason, "prior": None, "collapse": None}
    learned = trained.result.pool
    if learned is not None and learned["collapse"] is not None:
        sentence = str(learned["collapse"])
    elif selection is not None:
        sentence = str(selection["because"])
    elif learned is None:
        sentence = "the unlabelled images were labelled, and nothing was learned from them"
    else:
        sentence = "the unlabelled images count; nothing was held out to say whether they help (--keep better does)"
    prior = None if learned is None else dict(zip(data.classes, learned["prior"], strict=True))
    kept = learned is not None and learned["collapse"] is None
    return {"kept": kept, "sentence": sentence, "prior": prior, "collapse": learned and learned["collapse"]}


def _head(trained: "TrainedModel") -> dict[str, Any] | None:
    """Describe how good the classifier on frozen features is, from which training started; None if nobody knows."""
    if trained.start is None:
        return None
    held, tested = trained.start.held_out, trained.evaluation if trained.solved else trained.start_evaluation
    if held is None and tested is None:
        return None
    return {
        "held_out": None if held is None else _share(held.right, len(held)),
        "test": None if tested is None else _share(tested.correct, tested.rows),
    }


def _share(right: int, images: int) -> dict[str, Any]:
    return {"images": images, "right": right, "accuracy": right / images}


def accuracy_name(protocol: str | None) -> str:
    """Name the accuracy of a run: with unlabelled images it matters whether the test images are among them.

    Args:
        protocol: The protocol in its report; None for a report that names none.

    >>> accuracy_name("transductive"), accuracy_name("supervised")
    ('transductive accuracy', 'accuracy')
    """
    return "accuracy" if protocol in (None, SUPERVISED) else f"{protocol} accuracy"


def head_in_words(head: Mapping[str, Any], protocol: str | None = None) -> str:
    """Say what the classifier on frozen features gets right.

    Args:
        head: The accuracy on held-out and on test images, as in `report.json`.
        protocol: The protocol there.

    >>> head_in_words({"held_out": {"images": 21, "right": 16, "accuracy": 16 / 21}, "test": None})
    '76.2 % of 21 held-out target images'
    """
    tested = f"test images ({protocol})" if protocol == TRANSDUCTIVE else "test images"
    parts = {"held_out": "held-out target images", "test": tested}
    found = [
        f"{100 * head[part]['accuracy']:.1f} % of {head[part]['images']} {name}"
        for part, name in parts.items()
        if head[part]
    ]
    return " and ".join(found)


def _finite(record: dict[str, float]) -> dict[str, float | None]:
    """Replace what JSON cannot hold."""
    return {name: value if math.isfinite(value) else None for name, value in record.items()}
