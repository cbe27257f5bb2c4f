"""The report of an experiment, finished or under way."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import __version__
from ...data.names import enumerate_words
from ..published import backbone_label
from .blocks import Block, Fact, Gallery, Listing, Page, Pairs, Plot, Section, Side, Words
from .experiment_folder import GRID, Experiment, load_experiment
from .experiment_plots import curve_plots, mistakes_plot, split_plot, varied_plots, zeta_plots
from .experiment_tables import choice_sections, difference_sections, failure_sections, no_interval, results
from .pictures import embed_figures
from .words import count, differences_in_words, pairs_of, points


def experiment_page(folder: Path) -> Page:
    """Put together the report of an experiment."""
    experiment = load_experiment(folder)
    table = experiment.table
    sections = [
        Section("Results", results(table)),
        *difference_sections(table),
        *_plots("Splits", [split_plot(table)]),
        *_plots("What is varied", varied_plots(table)),
        *_plots("Mistakes", [_confusion(experiment)]),
        *_plots("Training", curve_plots(experiment), side=True),
        *_plots("Learned class weights", zeta_plots(experiment), side=True),
        *_figure_sections(experiment),
        *choice_sections(experiment),
        *failure_sections(experiment),
        Section("Configuration", [Pairs(_configuration(experiment))]),
        Section("Repeat it", _repeat(experiment)),
    ]
    title = table["title"] or table["name"]
    return Page(
        title, "experiment", _summary(experiment), _facts(experiment), sections, f"Written by sohot {__version__}"
    )


def _means(table: Mapping[str, Any]) -> dict[str, float]:
    """Give the averages of rows that have one: of all shifts, on all splits that are done."""
    return {row["label"]: row["average"]["mean"] for row in table["rows"] if row["average"]["mean"] is not None}


def _differences(table: Mapping[str, Any]) -> dict[str, Mapping[str, Any] | None]:
    return {row["label"]: row["average"] for row in table["differences"]}


def _summary(experiment: Experiment) -> list[str]:
    table = experiment.table
    done, failed, wanted = experiment.progress()
    shifts = f"{count(len(table['shifts']), 'shift')} ({enumerate_words(table['shifts'], 6)})"
    first = (
        f"{count(len(experiment.grid.methods), 'method')} on {table['dataset']}, {shifts}, "
        f"{count(len(table['splits']), 'split')} each, with the backbone {backbone_label(table['backbone'])} and the "
        f"protocol “{table['protocol']}”."
    )
    told = differences_in_words(_means(table), table["baseline"], _differences(table))
    summary = [first, told if done >= wanted else told.replace("Highest is", "Highest so far is", 1)]
    if done < wanted:
        told = f"The experiment is not complete: {done} of {wanted} results are there"
        summary.append(f"{told}, {failed} failed." if failed else f"{told}.")
    return summary


def _facts(experiment: Experiment) -> list[Fact]:
    table = experiment.table
    means, (done, failed, wanted) = _means(table), experiment.progress()
    facts = []
    if means:
        best = max(means, key=lambda name: means[name])
        facts.append(Fact(f"{means[best]:.1f} %", "highest average", best))
        if one := _differences(table).get(best):
            known = one["low"] is not None
            interval = f"95 %: {points(one['low'])} to {points(one['high'])}" if known else no_interval(one)
            facts.append(Fact(points(one["mean"]), f"points against {table['baseline']}", interval))
    facts.append(Fact(f"{done} of {wanted}", "results", f"{failed} failed" if failed else "none failed"))
    seconds = sum(sum((record["result"].get("seconds") or {}).values()) for record in experiment.done)
    return [*facts, Fact(_duration(seconds), "computing time", "of all cells together")]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _plots(title: str, drawn: list[Plot | None] | list[Plot], *, side: bool = False) -> list[Section]:
    found = [plot for plot in drawn if plot is not None]
    if not found:
        return []
    return [Section(title, [Side(found)] if side and len(found) > 1 else found)]


def _confusion(experiment: Experiment) -> Plot | None:
    means = _means(experiment.table)
    rows = {row["label"]: row["method"] for row in experiment.table["rows"]}
    if not means or experiment.table["varied"]:  # with something varied no one setting stands for a method
        return None
    best = max(means, key=lambda name: means[name])
    return mistakes_plot(experiment, best, rows[best])


def _figure_sections(experiment: Experiment) -> list[Section]:
    pictures, left_out = embed_figures(experiment.figures)
    blocks: list[Block] = [Gallery(pictures, wide=True)] if pictures else []
    if left_out:
        blocks.append(Words(f"Too large for a page, to be seen in the folder figures: {', '.join(left_out)}.", True))
    return [Section("Figures", blocks)] if blocks else []


def _configuration(experiment: Experiment) -> list[tuple[str, str]]:
    grid = experiment.grid
    plain = {name: getattr(grid, name) for name in ("dataset", "protocol", "backbone", "shifts", "splits", "methods")}
    varied = {f"varied: {name}": values for name, values in grid.vary.items()}
    frozen = any(record["cell"].get("frozen") for record in experiment.done)
    pairs = [*pairs_of(plain), *pairs_of(grid.frozen if frozen else grid.settings), *pairs_of(varied)]
    for name in ("sohot", "torch", "python"):
        found = dict.fromkeys(str(record["versions"].get(name)) for record in experiment.records)
        pairs += [(f"version of {name}", ", ".join(found))] if found else []
    machines = len({record["host"] for record in experiment.records})
    return [*pairs, ("machines", str(machines))] if machines > 1 else pairs


def _repeat(experiment: Experiment) -> list[Block]:
    folder = experiment.folder
    words = ["sohot", "experiment", str(folder / GRID), "--data", "ROOT", *_options(experiment)]
    words += ["--out", f"{folder}-again"]
    blocks: list[Block] = [
        Listing(shlex.join(words), "The command that does the same again; ROOT is the folder of the images:")
    ]
    text = (folder / GRID).read_text(encoding="utf-8", errors="replace")
    return [*blocks, Listing(text, f"The grid ({GRID})", folded=True)]


def _options(experiment: Experiment) -> list[str]:
    """Give the options that the grid does not hold but the cells do."""
    cell = experiment.records[0]["cell"] if experiment.records else {}
    select, trials = cell.get("select", "none"), (cell.get("search") or {}).get("trials")
    options = [] if select == "none" else ["--select", select]
    options += [] if select == "none" or trials is None else ["--trials", str(trials)]
    return [*options, "--frozen"] if cell.get("frozen") else options
