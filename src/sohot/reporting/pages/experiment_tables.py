"""The tables of an experiment's report: accuracies, differences, chosen settings, failed cells."""

from collections.abc import Mapping
from typing import Any

from ..published import backbone_label
from .blocks import Block, Entry, Number, Points, Section, Table, Words, number
from .experiment_folder import Experiment
from .experiment_plots import difference_plot
from .words import count

_DIFFERENCE = ("points", "from", "to", "verdict", "p (t)", "p (Wilcoxon)", "splits", "won / tied / lost")


def results(table: Mapping[str, Any]) -> list[Block]:
    """Show the accuracies, ours and published ones, with the notes that belong to them."""
    shifts, varied = table["shifts"], table["varied"]
    several = len(shifts) > 1
    rows: list[list[Entry]] = []
    for row, ours in [*((row, True) for row in table["rows"]), *((row, False) for row in table["published"])]:
        name = row["method"] if ours else row["label"]
        values = [_value(row["values"].get(one)) for one in varied]
        entries = [_accuracy(row["cells"].get(shift)) for shift in shifts]
        average = [_accuracy(row["average"])] if several else []
        origin = "ours" if ours else "published"
        rows.append([name, *values, origin, backbone_label(row["backbone"]), *entries, *average])
    columns = ["method", *varied, "origin", "backbone", *shifts, *(["average"] if several else [])]
    marked = frozenset(place for place, row in enumerate(table["rows"]) if row["method"] == table["baseline"])
    caption = "Accuracy in % on target images not trained on: mean ± standard deviation over the splits"
    blocks: list[Block] = [Table(caption, columns, rows, marked)]
    return [*blocks, Points(table["notes"])] if table["notes"] else blocks


def _value(value: Any) -> Entry:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Number(f"{value:g}", float(value))
    return "" if value is None else str(value)


def _accuracy(cell: Mapping[str, Any] | None) -> Number:
    if cell is None or cell["mean"] is None:
        return Number("–", None)
    alone = cell.get("std") is None or cell.get("count") == 1  # one split has no spread
    spread = "" if alone else f" ± {cell['std']:.1f}"
    some = cell.get("count") is not None and cell.get("expected") is not None and cell["count"] < cell["expected"]
    partial = f" ({cell['count']} of {cell['expected']})" if some else ""
    return Number(f"{cell['mean']:.1f}{spread}{partial}", cell["mean"])


def difference_sections(table: Mapping[str, Any]) -> list[Section]:
    """Show what each method gains over the baseline, and whether that is more than chance."""
    if not table["differences"]:
        return []
    rows: list[list[Entry]] = []
    for row in table["differences"]:
        parts = [*row["cells"].items(), *([("average", row["average"])] if len(table["shifts"]) > 1 else [])]
        for shift, one in parts:
            if one is not None:
                rows.append([row["label"], shift, *_difference_entries(one)])
    caption = (
        f"Difference to {table['baseline']} on the same splits, with its 95 % interval, and splits won, tied and lost"
    )
    blocks: list[Block] = [Table(caption, ["method", "shift", *_DIFFERENCE], rows)]
    plot = difference_plot(table)
    return [Section(f"Differences to {table['baseline']}", [*blocks, plot] if plot else blocks)]


def _difference_entries(one: Mapping[str, Any]) -> list[Entry]:
    return [
        number(one["mean"], 2, sign=True),
        number(one["low"], 2, sign=True),
        number(one["high"], 2, sign=True),
        _verdict(one),
        number(one["p_t"], 3),
        number(one["p_wilcoxon"], 3),
        number(one["pairs"], 0),
        f"{one['wins']} / {one['ties']} / {one['losses']}",
    ]


def no_interval(one: Mapping[str, Any]) -> str:
    """Say why a difference has no interval: one split tells nothing of chance, and neither do equal differences."""
    return "one split alone" if one["pairs"] < 2 else "the same in every split"


def _verdict(one: Mapping[str, Any]) -> str:
    if one["low"] is None:
        return no_interval(one)
    if one["low"] <= 0 <= one["high"]:
        return "not distinguishable"
    return "better" if one["mean"] > 0 else "worse"


def choice_sections(experiment: Experiment) -> list[Section]:
    """Show what was chosen for each cell, if anything was."""
    rows: list[list[Entry]] = []
    for record in experiment.done:
        if chosen := record["result"].get("chosen"):
            cell = record["cell"]
            settings = ", ".join(f"{name} = {value}" for name, value in chosen["settings"].items())
            score = number(100 * chosen["score"])
            rows.append(
                [cell["method"], cell["shift"], number(cell["split"], 0), settings, score, number(chosen["trials"], 0)]
            )
    if not rows:
        return []
    columns = ["method", "shift", "split", "settings", "score %", "trials"]
    told = "Chosen for each cell by the accuracy on labelled images that were held back, never by test images."
    return [Section("Chosen settings", [Words(told), Table("What was chosen, and its score", columns, rows)])]


def failure_sections(experiment: Experiment) -> list[Section]:
    """Show the cells that failed, and why."""
    if not experiment.failed:
        return []
    rows: list[list[Entry]] = []
    for record in experiment.failed:
        cell = record["cell"]
        settings = ", ".join(f"{name} = {value}" for name, value in {**cell["draw"], **cell["settings"]}.items())
        rows.append([cell["method"], cell["shift"], number(cell["split"], 0), settings, record["error"] or "failed"])
    told = "They are left out of all figures. With --retry-failed the same command tries them again."
    table = Table(f"{count(len(rows), 'cell')} that failed", ["method", "shift", "split", "settings", "error"], rows)
    return [Section("Failed", [Words(told), table])]
