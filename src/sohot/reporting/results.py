"""Records of an experiment grouped into rows: one for each method, backbone and combination of varied settings."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ..data.protocols.paper import PAPER
from ..experiments.cell import Cell, relevant_settings
from ..experiments.grid import BASELINE
from ..experiments.result import Attempt, DoneCell
from ..functional.plain_checks import check_choice
from ..methods.settings import FitSettings, HeadSettings
from ..runs.config import RunConfig
from .statistics import ShiftSplit, Summary, summarise

if TYPE_CHECKING:
    from ..experiments.grid import Grid

ACCURACIES = ("micro", "macro")
_DEFAULTS = {
    **{one.name: one.default for one in fields(FitSettings)},
    **{one.name: one.default for one in fields(RunConfig) if one.default is not None},
}
_FROZEN_DEFAULTS = {**_DEFAULTS, **{one.name: one.default for one in fields(HeadSettings)}}


@dataclass
class ResultRow:
    """All records of one method with one backbone and one combination of varied settings.

    Attributes:
        method: Its name.
        backbone: Its backbone.
        values: Varied settings by name; None where the method ignores one.
        done: Cells that are done, by (shift, split).
        failed: Errors by (shift, split).
    """

    method: str
    backbone: str
    values: dict[str, Any]
    done: dict[ShiftSplit, DoneCell] = field(default_factory=dict)
    failed: dict[ShiftSplit, str] = field(default_factory=dict)

    def accuracies(self, kind: str = "micro") -> dict[ShiftSplit, float]:
        """Return accuracies in per cent by (shift, split)."""
        check_choice(kind, ACCURACIES, "accuracy")
        shares = {place: one.result.accuracy for place, one in self.done.items()}
        return {place: 100 * (one.micro if kind == "micro" else one.macro) for place, one in shares.items()}

    def over_splits(self, shift: str, kind: str = "micro") -> Summary | None:
        """Return mean and standard deviation over the splits of a shift; None if none is done."""
        found = self.accuracies(kind)
        return summarise([found[place] for place in sorted(found) if place[0] == shift])

    @property
    def label(self) -> str:
        """The method and its varied settings."""
        varied = [f"{name} = {show_value(value)}" for name, value in self.values.items() if value is not None]
        return ", ".join([self.method, *varied])


def shifts_of(records: Iterable[Attempt], grid: "Grid") -> tuple[str, ...]:
    """Name the shifts of an experiment: those of the grid, or those of its records if the grid names none (all)."""
    return grid.shifts or tuple(dict.fromkeys(record.cell.shift for record in records))


def collect(records: Iterable[Attempt], grid: "Grid") -> list[ResultRow]:
    """Group the records that belong to a grid into rows.

    Args:
        records: Records as the store returns them. Of two attempts at the same cell, the later one counts.
        grid: Names the shifts, splits, methods and the pool; records of others are left out.

    Returns:
        The rows in the order of the grid's methods and varied values, including methods without a record.

    Raises:
        ValueError: The grid has several values of `pool`, whose results are not comparable.
    """
    if len(grid.pool) > 1:
        raise ValueError(f"results with the pools {', '.join(grid.pool)} are not comparable: use grid.by_pool()")
    records = sorted(records, key=lambda one: one.finished)
    shifts = shifts_of(records, grid)
    rows: dict[tuple[Any, ...], ResultRow] = {}
    for record in records:
        cell = record.cell
        place = (cell.shift, cell.split)
        if cell.method not in grid.methods or place[0] not in shifts or place[1] not in grid.splits:
            continue
        if cell.pool not in grid.pool:
            continue
        values = {name: value_of(cell, name) for name in grid.vary}
        row = ResultRow(cell.method, cell.backbone, values)
        row = rows.setdefault((row.method, row.backbone, *values.values()), row)
        if record.result is not None:
            row.done[place] = DoneCell(cell, record.result)
            row.failed.pop(place, None)
        elif place not in row.done:
            row.failed[place] = record.error or "failed"
    seen = {row.method for row in rows.values()}
    empty = [ResultRow(name, grid.backbone, dict.fromkeys(grid.vary)) for name in grid.methods if name not in seen]
    return sorted([*rows.values(), *empty], key=lambda row: _place(row, grid))


def baseline_of(row: ResultRow, rows: Iterable[ResultRow], baseline: str = BASELINE) -> ResultRow | None:
    """Find the baseline to compare with: the same backbone and the same values of the settings it uses."""
    for other in rows:
        same = all(value is None or value == row.values[name] for name, value in other.values.items())
        if other.method == baseline and other.backbone == row.backbone and same and other is not row:
            return other
    return None


def value_of(cell: Cell, name: str) -> Any:
    """Look up a setting in a cell, which stores neither defaults nor what its method ignores.

    Returns:
        Its value, with lists as tuples; None if the method ignores it.
    """
    given = {**cell.settings, **cell.draw}
    if name in given:
        return tuple(given[name]) if isinstance(given[name], list) else given[name]
    if name not in relevant_settings(cell.method, {**cell.settings, name: None}, frozen=cell.frozen, pool=cell.pool):
        return None
    if name == "target_shots" and cell.protocol in ("paper", "paper-folds") and cell.dataset in PAPER:
        return PAPER[cell.dataset].target[0]
    return (_FROZEN_DEFAULTS if cell.frozen else _DEFAULTS).get(name)


def show_value(value: Any) -> str:
    """Write the value of a setting.

    >>> show_value(0.05), show_value(1e-7), show_value((2, 3)), show_value(5)
    ('0.05', '1e-07', '2, 3', '5')
    """
    if isinstance(value, (tuple, list)):
        return ", ".join(map(show_value, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _place(row: ResultRow, grid: "Grid") -> tuple[Any, ...]:
    """Return the sort key of a row: the method, then the varied settings, in the order of the grid."""
    order = []
    for name, choices in grid.vary.items():
        known = [tuple(one) if isinstance(one, list) else one for one in choices]
        value = row.values[name]
        order.append(-1 if value is None else known.index(value) if value in known else len(known))
    return grid.methods.index(row.method), *order, row.backbone
