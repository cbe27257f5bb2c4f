"""`sohot info`: describes a run."""

from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from ..runs.description import describe_run, values_of
from .console import Console
from .output import percent, print_json


def show_info(folder: Path, *, json: bool) -> None:
    """Print the description of a run."""
    described = describe_run(folder)
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
    Console().print(f"\n{described['command']}", markup=False, highlight=False, soft_wrap=True)


def _lines(described: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [("run", described["run"]), ("state", described["state"]), ("method", described["method"])]
    if described["selection"]:
        lines.append(("chosen", described["selection"]["reason"]))
    data = described["data"] or {}
    for part in ("source", "target", "test"):
        if content := data.get(part):
            lines.append((part, f"{content['images']} images from {content['folder']}"))
    classes = described["classes"]
    lines.append((f"{len(classes)} classes", ", ".join(classes)))
    if accuracy := described["accuracy"]:
        low, high = accuracy["interval95"]
        lines.append(
            (
                "accuracy",
                f"{percent(accuracy['micro'])} % of {accuracy['rows']} images ({percent(low)} to {percent(high)}), "
                f"mean of classes {percent(accuracy['macro'])} %",
            )
        )
    lines += [("network", _pairs(described["network"])), ("settings", _pairs(described["settings"]))]
    lines += [("versions", _pairs(described["versions"])), ("repeat with", "")]
    return lines


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None and name != "input")
