"""The report of a run of `sohot fit`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from ... import __version__
from ..._reading import require_regular
from ...data.labelled import Progress
from ...data.names import printable
from ...methods.registry import method
from ...runs.auto import choice_in_words
from ...runs.calibration_file import read_calibration
from ...runs.description import CONFIG, DESCRIPTION, accuracy_name, describe_run, head_in_words, read_config
from ...training.evaluation import Evaluation
from ...training.logs import read_csv_log
from ...training.run_files import checkpoint_folders, read_description
from ..figures.classes import class_weight_figure, term_name
from ..figures.curves import lines_figure
from .blocks import Block, Chart, Fact, Listing, Page, Pairs, Points, Section, Side, Table, Words, number
from .confusion import class_sections
from .run_confidence import confidence_sections
from .run_pictures import picture_sections
from .run_pool import pool_sections
from .words import accuracy_in_words, count, join, method_in_words, pairs_of, percent

_MOST_POINTS = 400
_FOLDERS = ("source", "target", "target_test", "unlabelled")
_LOSSES = ("loss", "cross_entropy", "alignment", "head_penalty")


def run_page(
    folder: Path, images: int, progress: Progress | None = None, figures: Path | None = None, trust: bool = False
) -> Page:
    """Build the report of a run, finished or not.

    Args:
        folder: The run's folder.
        images: How many sample images to show; 0 to read none.
        progress: Called with the progress of the work on images.
        figures: Folder for the figures; None to write none.
        trust: Import the Python file that the run names as its network.
    """
    found = describe_run(folder)
    options = read_config(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    accuracy = None if found["accuracy"] is None else Evaluation.from_json(found["accuracy"])
    title = _title(found, options)
    calibration = read_calibration(folder)
    temperature = 1.0 if calibration is None else calibration.temperature
    description, log = read_description(folder / DESCRIPTION), read_csv_log(folder / "log.csv")
    sections = [
        *([] if accuracy is None else class_sections(accuracy, figures)),
        *([] if accuracy is None else confidence_sections(folder, calibration, figures)),
        *_choice_sections(found["selection"]),
        *picture_sections(folder, accuracy, description, images, progress, figures, trust, temperature),
        *pool_sections(folder, options, log, images),
        *_curve_sections(log),
        *_weight_sections(folder, found["classes"], _orders(found)),
        *_data_sections(found["data"], options),
        Section("Configuration", [_configuration(found, options)]),
        Section("Repeat it", [Listing(found["command"], "The command that trains the same model again:")]),
    ]
    summary = _summary(found, accuracy, options)
    return Page(title, "run", summary, _facts(found, accuracy), sections, f"Written by sohot {__version__}")


def _title(found: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    source, target = (_name(options.get(part)) for part in ("source", "target"))
    if not target:
        return f"A run of {found['method']}"
    return f"{source} → {target}" if source else target


def _name(path: Any) -> str:
    """Name a folder, or several."""
    paths = path if isinstance(path, (list, tuple)) else [path] if path else []
    return join([printable(Path(str(one)).name) for one in paths])


def _summary(found: Mapping[str, Any], accuracy: Evaluation | None, options: Mapping[str, Any]) -> list[str]:
    classes, data = found["classes"], found["data"] or {}
    trained = [
        f"{count(data[part]['images'], 'labelled image')} of the {part} ({_name(options.get(part)) or part})"
        for part in ("source", "target")
        if data.get(part)
    ]
    network = found["network"].get("backbone", "")
    first = (
        f"A classifier of {count(len(classes), 'class', 'classes')} with {network}, {method_in_words(found['method'])}"
    )
    where = ", on frozen features" if found["solved"] else ""
    first += f" ({found['method']}){where}" + (f": {' and '.join(trained)}." if trained else ".")
    if accuracy is not None:
        return [first, *accuracy_in_words(accuracy, len(classes), found["protocol"]), *_start(found)]
    if found["data"] is None:
        return [first, f"The run is not finished: {found['state']}."]
    return [first, "No target images were left for testing, so its accuracy is unknown."]


def _start(found: Mapping[str, Any]) -> list[str]:
    """Say how good the classifier on frozen features is: this one, or the one from which training started."""
    head = found["head"]
    if not head or (found["solved"] and not head["held_out"]):
        return []
    if found["solved"]:
        return [
            f"Of its {head['held_out']['images']} labelled target images, held out in turn, it gets "
            f"{head['held_out']['right']} right."
        ]
    right = head_in_words(head, found["protocol"])
    return [f"Training started from a classifier on frozen features that gets {right} right."]


def _facts(found: Mapping[str, Any], accuracy: Evaluation | None) -> list[Fact]:
    facts = []
    if accuracy is not None:
        low, high = accuracy.interval95
        facts += [
            Fact(
                percent(accuracy.micro),
                accuracy_name(found["protocol"]),
                f"95 % interval {100 * low:.1f} to {100 * high:.1f} %",
            ),
            Fact(percent(accuracy.macro), "mean of classes", count(len(found["classes"]), "class", "classes")),
            Fact(f"{accuracy.rows:,}", "test images", f"{accuracy.rows - accuracy.correct:,} classified wrongly"),
        ]
    facts.append(Fact(found["method"], "method", found["network"].get("backbone", "")))
    took = "" if found["seconds"] is None else f"{found['seconds']:.0f} s in total"
    facts.append(Fact("none", "layers trained", took) if found["solved"] else Fact(f"{found['step']:,}", "steps", took))
    return facts


def _choice_sections(selection: Mapping[str, Any] | None) -> list[Section]:
    """Show how candidates did on held-out labelled target images."""
    if not selection:
        return []
    words = choice_in_words(selection)
    outcome = f"{words[0].upper()}{words[1:]}."
    if not selection["candidates"]:
        return [Section("Choice of the method", [Words(outcome)])]
    rows = [
        [
            one["name"] + (" (failed)" if one["failure"] else ""),
            *(number(None if one[key] is None else 100 * one[key]) for key in ("accuracy", "standard_error")),
            number(sum(one["images"]), 0),
        ]
        for one in selection["candidates"]
    ]
    marked = frozenset(place for place, one in enumerate(selection["candidates"]) if one["name"] == selection["chosen"])
    columns = ["candidate", "accuracy %", "standard error", "images"]
    told = f"Labelled target images, held out in turn, decide here, never test images. {outcome}"
    return [Section("Choice of the method", [Words(told), Table("Held-out target images", columns, rows, marked)])]


def _curve_sections(rows: list[dict[str, float]]) -> list[Section]:
    if not rows:
        return []
    few = rows[:: max(1, len(rows) // _MOST_POINTS)]
    steps = [row["step"] for row in few]
    losses = {name.replace("_", "-"): (steps, [row[name] for row in few]) for name in _LOSSES if name in rows[0]}
    shares = {
        f"{domain} images of the batch": (steps, [100 * row[f"accuracy_{domain}"] for row in few])
        for domain in ("source", "target")
        if f"accuracy_{domain}" in rows[0]
    }
    last = rows[-1]
    drawn = [
        Chart(
            lines_figure(losses, "loss"),
            "Loss",
            f"The loss and its parts over {len(rows)} steps, from {rows[0]['loss']:.3g} to {last['loss']:.3g}.",
        )
    ]
    if shares:
        what = "Share of training images in a batch that are classified correctly; not the accuracy on unseen images."
        drawn.append(Chart(lines_figure(shares, "per cent correct"), "Accuracy during training", what))
    return [Section("Training", [Side(drawn)])]


def _weight_sections(folder: Path, classes: list[str], orders: Sequence[int]) -> list[Section]:
    """Show ζ and ζ̄ of the newest checkpoint, if the method learned them."""
    weights = learned_weights(folder, orders)
    if not weights or any(len(values) != len(classes) for values in weights.values()):
        return []
    told = "All weights start at 1. Below 1, a class was aligned less strongly because its domains are far apart."
    chart = Chart(class_weight_figure({"": weights}, classes), "ζ of each class", told)
    return [Section("Learned class weights", [chart])]


def _orders(found: Mapping[str, Any]) -> Sequence[int]:
    try:
        return method(found["method"], found["settings"].get("orders") or None).orders
    except (TypeError, ValueError):
        return ()


def learned_weights(folder: Path, orders: Sequence[int] = ()) -> dict[str, list[float]]:
    """Read the class weights of the newest checkpoint by what they weight; empty if none were learned."""
    for checkpoint in checkpoint_folders(folder / "checkpoints")[:1]:
        try:
            require_regular(checkpoint / "objective.safetensors")
            tensors = load_file(checkpoint / "objective.safetensors")
        except (OSError, SafetensorError):
            return {}
        read = {name.rpartition(".")[2]: values.clamp(min=0) for name, values in tensors.items()}
        if "raw_zeta" in read and "raw_zeta_bar" in read:
            weights = {term_name("means"): read["raw_zeta_bar"].tolist()}
            for place, row in enumerate(read["raw_zeta"].tolist()):
                weights[term_name(f"order{orders[place]}" if place < len(orders) else "scatters")] = row
            return weights
    return {}


def _data_sections(data: Mapping[str, Any] | None, options: Mapping[str, Any]) -> list[Section]:
    if data is None:
        return []
    parts = {part: data[part] for part in ("source", "target", "test") if data.get(part)}
    rows = [
        [name, *(number(content["per_class"][place], 0) for content in parts.values())]
        for place, name in enumerate(data["classes"])
    ]
    heads = {"source": "source, training", "target": "target, training", "test": "target, test"}
    blocks: list[Block] = [Table("Images of each class", ["class", *(heads[part] for part in parts)], rows)]
    given = (options.get(part) or [] for part in _FOLDERS)
    roots = [str(root) for one in given for root in (one if isinstance(one, (list, tuple)) else [one])]
    if data["notes"]:
        blocks.append(Points([_below(note, roots) for note in data["notes"]]))
    if data["left_out"]:
        blocks.append(Words(f"Left out: {count(len(data['left_out']), 'file or folder', 'files and folders')}."))
        blocks.append(Points([f"{_below(one['path'], roots)}: {one['reason']}" for one in data["left_out"]]))
    return [Section("Images", blocks)]


def _below(text: str, roots: list[str]) -> str:
    """Name files relative to the folder of their domain, whose location stays private."""
    for root in roots:
        text = text.replace(root, Path(root).name)
    return text


def _configuration(found: Mapping[str, Any], options: Mapping[str, Any]) -> Pairs:
    values = {name: value for name, value in options.items() if name not in _FOLDERS}
    return Pairs([*pairs_of(values), *((f"version of {name}", text) for name, text in found["versions"].items())])
