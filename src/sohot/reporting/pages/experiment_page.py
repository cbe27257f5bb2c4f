"""The report of an experiment, finished or still running."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ... import __version__
from ..._reading import read_text
from ...data.names import enumerate_words
from ...data.pools import POOLS, SUPERVISED
from ...experiments.cell import relevant_settings
from ...experiments.grid import Grid, read_grid
from ...experiments.result import Attempt, DoneCell, done_cells
from ...experiments.store import Store
from ...runs.description import accuracy_name
from ..published import backbone_label
from ..results import ResultRow, collect
from ..statistics import PairedDifference
from ..tables.result_table import ResultTable, result_table
from .blocks import Block, Chart, Fact, Listing, Page, Pairs, Section, Side
from .experiment_blocks import (
    choice_sections,
    curve_chart,
    difference_sections,
    failure_sections,
    mistakes_chart,
    no_interval,
    result_blocks,
    setting_charts,
    split_chart,
    weight_chart,
)
from .words import count, differences_in_words, duration, pairs_of, points

GRID = "grid.toml"


@dataclass(frozen=True)
class Experiment:
    """The contents of an experiment's folder, those with one value of `pool`: results of others are never mixed in.

    Attributes:
        folder: The folder.
        grid: The grid, with this value of `pool`.
        records: The latest attempt at each cell with it.
        table: The table of the records.
    """

    folder: Path
    grid: Grid
    records: list[Attempt]
    table: ResultTable

    @cached_property
    def rows(self) -> list[ResultRow]:
        """The records by method and varied settings."""
        return collect(self.records, self.grid)

    @property
    def done(self) -> list[DoneCell]:
        """The cells that are done."""
        return done_cells(self.records)

    @property
    def failed(self) -> list[Attempt]:
        """The records of cells that failed."""
        return [record for record in self.records if record.result is None]

    def progress(self) -> tuple[int, int, int]:
        """Count the cells that are done, those that failed, and all cells of the grid."""
        each = len(self.table.shifts) * len(self.grid.splits)
        wanted = 0
        frozen = any(record.cell.frozen for record in self.records)
        given = self.grid.frozen if frozen else self.grid.settings
        for method in self.grid.methods:
            looked_at = relevant_settings(method, {**given, **self.grid.vary}, frozen=frozen, pool=self.table.pool)
            wanted += each * math.prod(len(values) for name, values in self.grid.vary.items() if name in looked_at)
        return len(self.done), len(self.failed), wanted


def load_experiments(folder: Path) -> list[Experiment]:
    """Read an experiment, finished or not: one part for each value of `pool` in its grid.

    Raises:
        FileNotFoundError: The folder has no grid.
        ValueError: A file in it is damaged.
    """
    if not (folder / GRID).is_file():
        raise FileNotFoundError(f"{folder} is not an experiment's folder: it has no {GRID}")
    records = Store(folder).records()
    grid = read_grid(folder / GRID)
    parts = []
    for part in grid.by_pool():
        records_of_part = [record for record in records if record.cell.pool in part.pool]
        parts.append(Experiment(folder, part, records_of_part, result_table(records_of_part, part)))
    return parts


def experiment_page(folder: Path) -> Page:
    """Build the report of an experiment."""
    parts = load_experiments(folder)
    sections = [section for part in parts for section in _named(_sections(part), part, len(parts))]
    sections += [
        Section("Configuration", [Pairs(_configuration(parts))]),
        Section("Repeat it", _repeat(next((part for part in parts if part.records), parts[0]))),
    ]
    summary = [sentence for part in parts for sentence in _summary(part)]
    seconds = sum(sum(result.seconds.values()) for part in parts for _, result in part.done)
    facts = [fact for part in parts for fact in _facts(part, len(parts))]
    facts.append(Fact(duration(seconds), "computing time", "over all cells"))
    return Page(parts[0].table.title, "experiment", summary, facts, sections, f"Written by sohot {__version__}")


def _named(sections: list[Section], part: Experiment, parts: int) -> list[Section]:
    """Put the value of `pool` before the headings, if there are several."""
    return (
        sections
        if parts == 1
        else [replace(one, title=f"{part.table.pool.capitalize()}: {one.title}") for one in sections]
    )


def _sections(experiment: Experiment) -> list[Section]:
    """Show the results with one value of `pool`."""
    table = experiment.table
    return [
        Section("Results", result_blocks(table)),
        *difference_sections(table),
        *_charts("Splits", [] if table.varied else [split_chart(table)]),
        *_charts("What is varied", setting_charts(experiment)),
        *_charts("Mistakes", [_confusion(experiment)]),
        *_charts("Training", [curve_chart(experiment)]),
        *_charts("Learned class weights", [weight_chart(experiment)]),
        *choice_sections(experiment),
        *failure_sections(experiment),
    ]


def _means(table: ResultTable) -> dict[str, float]:
    """Return the averages over all shifts and finished splits, of the rows that have one."""
    return {row.label: row.average.mean for row in table.rows if row.average.mean is not None}


def _differences(table: ResultTable) -> dict[str, PairedDifference | None]:
    return {row.label: row.average for row in table.differences}


def _summary(experiment: Experiment) -> list[str]:
    table = experiment.table
    done, failed, wanted = experiment.progress()
    shifts = f"{count(len(table.shifts), 'shift')} ({enumerate_words(table.shifts, 6)})"
    first = (
        f"{count(len(experiment.grid.methods), 'method')} on {table.dataset}, {shifts}, "
        f"{count(len(table.splits), 'split')} each, with the backbone {backbone_label(table.backbone)} and the "
        f"protocol “{table.protocol}”; {table.pool}: {POOLS[table.pool]}."
    )
    told = differences_in_words(_means(table), table.baseline, _differences(table), accuracy_name(table.pool))
    summary = [first, told if done >= wanted else told.replace("accuracy is", "accuracy so far is", 1)]
    if done < wanted:
        told = f"The experiment is not complete: {done} of {wanted} cells are done"
        summary.append(f"{told}, {failed} failed." if failed else f"{told}.")
    return summary


def _facts(experiment: Experiment, parts: int) -> list[Fact]:
    table = experiment.table
    means, (done, failed, wanted) = _means(table), experiment.progress()
    facts = []
    if means:
        best = max(means, key=lambda name: means[name])
        average = "average" if table.pool == SUPERVISED else f"{table.pool} average"
        facts.append(Fact(f"{means[best]:.1f} %", f"highest {average}", best))
        if one := _differences(table).get(best):
            interval = no_interval(one)
            if one.low is not None and one.high is not None:
                interval = f"95 %: {points(one.low)} to {points(one.high)}"
            facts.append(Fact(points(one.mean), f"points against {table.baseline}", interval))
    which = "results" if parts == 1 else f"{table.pool} results"
    facts.append(Fact(f"{done} of {wanted}", which, f"{failed} failed" if failed else "none failed"))
    return facts


def _charts(title: str, drawn: Sequence[Chart | None]) -> list[Section]:
    charts = [chart for chart in drawn if chart is not None]
    return [Section(title, [Side(charts)] if len(charts) > 1 else charts)] if charts else []


def _confusion(experiment: Experiment) -> Chart | None:
    means = _means(experiment.table)
    if not means or experiment.table.varied:  # if settings vary, no single one represents a method
        return None
    return mistakes_chart(experiment, max(means, key=lambda name: means[name]))


def _configuration(parts: Sequence[Experiment]) -> list[tuple[str, str]]:
    grid = replace(parts[0].grid, pool=tuple(part.table.pool for part in parts))
    records = [record for part in parts for record in part.records]
    shown = ("dataset", "protocol", "pool", "backbone", "shifts", "splits", "methods")
    plain = {name: getattr(grid, name) for name in shown}
    varied = {f"varied: {name}": values for name, values in grid.vary.items()}
    frozen = any(record.cell.frozen for record in records)
    pairs = [*pairs_of(plain), *pairs_of(grid.frozen if frozen else grid.settings), *pairs_of(varied)]
    for name in ("sohot", "torch", "python"):
        found = dict.fromkeys(str(record.versions.get(name)) for record in records)
        pairs += [(f"version of {name}", ", ".join(found))] if found else []
    machines = len({record.host for record in records})
    return [*pairs, ("machines", str(machines))] if machines > 1 else pairs


def _repeat(experiment: Experiment) -> list[Block]:
    folder = experiment.folder
    words = ["sohot", "experiment", str(folder / GRID), "--data", "ROOT", *_options(experiment)]
    words += ["--out", f"{folder}-again"]
    blocks: list[Block] = [
        Listing(shlex.join(words), "The command that repeats the experiment; ROOT is the folder of the images:")
    ]
    text = read_text(folder / GRID, errors="replace")
    return [*blocks, Listing(text, f"The grid ({GRID})", folded=True)]


def _options(experiment: Experiment) -> list[str]:
    """Return the options that are stored in the cells but not in the grid."""
    if not experiment.records:
        return []
    cell = experiment.records[0].cell
    trials = cell.search.get("trials")
    options = [] if cell.select == "none" else ["--select", cell.select]
    options += [] if cell.select == "none" or trials is None else ["--trials", str(trials)]
    return [*options, "--frozen"] if cell.frozen else options
