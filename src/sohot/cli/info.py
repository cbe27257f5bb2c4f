"""`sohot info`: describes a run."""

from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from ..runs.auto import choice_in_words
from ..runs.description import accuracy_name, head_in_words, values_of
from ..runs.model_card import calibration_in_words, describe_model
from .console import Console
from .output import percent, print_json


def show_info(folder: Path, *, json: bool) -> None:
    """Print the description of a run."""
    described = describe_model(folder)
    if json:
        print_json(described)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    with values_of(folder):
        for name, text in _lines(described):
            table.add_row(name, escape(text))
    Console().print(table)
    if described["command"]:
        Console().print(f"\n{described['command']}", markup=False, highlight=False, soft_wrap=True)


def _lines(described: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [("run", described["run"]), ("state", described["state"]), ("method", described["method"])]
    if described["selection"]:
        lines.append(("chosen", choice_in_words(described["selection"])))
    data = described["data"] or {}
    for part in ("source", "target", "test"):
        if content := data.get(part):
            of_run = "images" in content  # a head knows rows of features, and not where they are from
            held = f"{content['images']} images from {content['folder']}" if of_run else f"{content['rows']} rows"
            lines.append((part, held))
    if pool := data.get("pool"):
        lines.append(("pool", f"{pool['images']} images without labels from {pool['folder']}"))
    classes = described["classes"]
    lines.append((f"{len(classes)} classes", ", ".join(classes)))
    protocol = described.get("protocol")
    if accuracy := described["accuracy"]:
        low, high = accuracy["interval95"]
        lines.append(
            (
                accuracy_name(protocol),
                f"{percent(accuracy['micro'])} % of {accuracy['rows']} images ({percent(low)} to {percent(high)}), "
                f"mean of classes {percent(accuracy['macro'])} %",
            )
        )
    lines.append(("probabilities", calibration_in_words(described["calibration"])))
    if described.get("head"):
        right = head_in_words(described["head"], protocol)
        lines.append(("frozen features", f"{right} right with a classifier on these alone"))
    lines += [("network", _pairs(described["network"])), ("settings", _pairs(described["settings"]))]
    if described["versions"] is not None:
        lines.append(("versions", _pairs(described["versions"])))
    if described["command"]:
        lines.append(("repeat with", ""))
    return lines


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None and name != "input")
