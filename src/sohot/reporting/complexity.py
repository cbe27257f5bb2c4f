"""What the kernel form saves over explicit tensors: as the paper states it, by its formula, and measured."""

import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .. import __version__
from .._device import one_thread
from .._files import refuse_link, to_csv
from .._reading import read_json
from ..functional.distance import explicit_cost, gram_cost, scatter_distance
from .figures.canvas import chart, legend_below, look, new_figure, plain_log, save_figure
from .pages.blocks import Chart, Fact, Listing, Number, Page, Pairs, Section, Table
from .pages.words import pairs_of
from .tables.formats import Document, TextTable, to_text, write_documents

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE, TARGET, FEATURES = 20, 3, 4096
"""Rows of a class in each domain and features, as in the paper's example."""
STATED = {2: 52, 3: 143_000}
"""How many times slower explicit tensors are, as the paper's text states it."""

_SIZES = {2: (64, 128, 256, 512, 1024, 2048, 4096), 3: (16, 32, 64, 128, 256)}
_QUICK_SIZES = {2: (16, 64), 3: (8, 16)}
_LONG_ENOUGH = 2.0  # seconds for one size: quick ones get more rounds
_WAYS = ("gram", "explicit")
_CALLS = {"gram": 5, "explicit": 1}  # per turn: the median of a call that takes a millisecond needs more of them
_NAMES = {"gram": "kernel form", "explicit": "explicit tensors"}


@dataclass(frozen=True)
class Cost:
    """What explicit tensors cost at one order and number of features, in multiples of the kernel form.

    Attributes:
        order: The order.
        features: Number of features.
        stated: The ratio that the paper states.
        formula: The ratio by the paper's formula.
        measured: The ratio of the seconds below; None if it would take too much memory.
        gram_seconds: Seconds of the kernel form.
        explicit_seconds: Seconds of explicit tensors.
    """

    order: int
    features: int
    stated: int | None
    formula: float
    measured: float | None
    gram_seconds: float | None
    explicit_seconds: float | None

    def milliseconds(self) -> list[float | None]:
        """Return the times of the kernel form and of explicit tensors."""
        return [None if one is None else 1e3 * one for one in (self.gram_seconds, self.explicit_seconds)]


@dataclass(frozen=True)
class Complexity:
    """Costs by order and number of features, and the circumstances."""

    name: str
    title: str
    source: int
    target: int
    dtype: str
    rounds: int
    versions: Mapping[str, str]
    rows: Sequence[Cost]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Complexity":
        """Read what `as_json` returned.

        Raises:
            KeyError: Something is missing.
            TypeError: Something has the wrong type.
        """
        rows = [Cost(**row) for row in content["rows"]]
        circumstances = {name: content[name] for name in ("name", "title", "source", "target", "dtype", "rounds")}
        return cls(**circumstances, versions=dict(content["versions"]), rows=rows)

    def of_order(self, order: int) -> list[Cost]:
        """Return the measured costs of an order."""
        return [row for row in self.rows if row.order == order and row.measured is not None]


_TITLE = "Kernel form against explicit scatter tensors"


def measure_complexity(quick: bool = False, on_progress: Callable[[int, int, str], None] | None = None) -> Complexity:
    """Time the distance between two scatter tensors, forward and backward, taking turns between both ways.

    Args:
        quick: Use small sizes and few rounds, to try it out; the numbers mean nothing.
        on_progress: Called before each size with the number done, the total, and a name.

    Returns:
        The costs. An order-3 tensor of 4096 features would take 256 GiB and has only the formula.
    """
    sizes = _QUICK_SIZES if quick else _SIZES
    rounds = 2 if quick else 5
    cases = [(order, size) for order, of_order in sizes.items() for size in of_order]
    rows = []
    for done, (order, size) in enumerate(cases):
        if on_progress is not None:
            on_progress(done, len(cases), f"order {order}, {size} features")
        with one_thread():  # on a busy machine, small work would mostly wait for its threads
            rows.append(_row(order, size, _time_both(order, size, rounds)))
    rows += [_row(order, FEATURES, None) for order in sizes if FEATURES not in sizes[order]]
    if on_progress is not None:
        on_progress(len(cases), len(cases), "done")
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    rows.sort(key=lambda row: (row.order, row.features))
    return Complexity("complexity", _TITLE, SOURCE, TARGET, "float32", rounds, versions, rows)


def complexity_text(result: Complexity) -> str:
    """Return what `measure_complexity` found as a table for a terminal."""
    return to_text(_document(result))


def write_complexity(result: Complexity, out: Path) -> list[Path]:
    """Write table.txt, .md, .tex, .csv and .json, and figures/complexity.png and .svg.

    Args:
        result: What `measure_complexity` found.
        out: Folder; created if missing.

    Returns:
        The files.
    """
    columns = [one.name for one in fields(Cost)]
    lines = to_csv([columns, *([getattr(row, name) for name in columns] for row in result.rows)])
    files = write_documents(_document(result), result.as_json(), lines, out)
    return files + save_figure(complexity_figure(result), refuse_link(out / "figures"), "complexity")


@chart
def complexity_figure(result: Complexity) -> "Figure":
    """Draw the seconds of both ways against the number of features, on logarithmic axes, one panel per order."""
    orders = [order for order in sorted({row.order for row in result.rows}) if result.of_order(order)]
    figure = new_figure(0.6 + 4.2 * len(orders), 3.9)
    panels = figure.subplots(1, len(orders), squeeze=False, sharey=True)[0]
    for axes, order in zip(panels, orders, strict=True):
        rows = result.of_order(order)
        sizes = [row.features for row in rows]
        for place, way in enumerate(reversed(_WAYS)):
            times = [row.milliseconds()[_WAYS.index(way)] for row in rows]
            axes.plot(sizes, times, label=_NAMES[way], **look(place))
        plain_log(axes, x=sizes, y=True)
        axes.set_title(f"order {order}")
        axes.set_xlabel("features, d")
    panels[0].set_ylabel("forward + backward, ms")
    legend_below(figure, panels[0])
    return figure


def _time_both(order: int, size: int, rounds: int) -> dict[str, float]:
    """Return the median seconds of each way; they take turns, so that a noisy moment affects both."""
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(rows, size, generator=generator).requires_grad_() for rows in (SOURCE, TARGET))
    seconds: dict[str, list[float]] = {way: [] for way in _WAYS}
    for way in _WAYS:
        _once(x, y, order, way)  # the first call of anything is slow
    done = 0
    while done < rounds or (done < 5 * rounds and _total(seconds) < _LONG_ENOUGH):
        for way, calls in _CALLS.items():
            seconds[way] += [_once(x, y, order, way) for _ in range(calls)]
        done += 1
    return {way: statistics.median(values) for way, values in seconds.items()}


def _total(seconds: dict[str, list[float]]) -> float:
    return sum(map(sum, seconds.values()))


def _once(x: Tensor, y: Tensor, order: int, way: str) -> float:
    x.grad = y.grad = None
    start = time.perf_counter()
    scatter_distance(x, y, order, way).backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - start


def _row(order: int, size: int, seconds: dict[str, float] | None) -> Cost:
    return Cost(
        order=order,
        features=size,
        stated=STATED.get(order) if size == FEATURES else None,
        formula=explicit_cost(SOURCE, TARGET, size, order) / gram_cost(SOURCE, TARGET, size),
        measured=None if seconds is None else seconds["explicit"] / seconds["gram"],
        gram_seconds=None if seconds is None else seconds["gram"],
        explicit_seconds=None if seconds is None else seconds["explicit"],
    )


def _document(result: Complexity) -> Document:
    header = ["order", "features", "stated", "by formula", "measured", "kernel form, ms", "explicit, ms"]
    rows = []
    for row in result.rows:
        numbers = [row.stated, row.formula, row.measured, *row.milliseconds()]
        rows.append([str(row.order), str(row.features), *map(_number, numbers)])
    orders = [row.order for row in result.rows]
    groups = [place for place in range(1, len(orders)) if orders[place] != orders[place - 1]]
    title = "Cost of explicit tensors relative to the kernel form, and the time of each"
    notes = [
        f"One class, {result.source} source and {result.target} target rows, {result.dtype}; forward and "
        f"backward, medians of at least {result.rounds} rounds in turns, one thread, "
        f"torch {result.versions['torch']}.",
        "By formula: (N + N* + 1) · D against (N² + N N* + N*²) · d multiplications for the distance alone, where D is "
        "the number of distinct coefficients, as the paper counts. Its text states 52, its formula gives 104.8.",
        "Measured: all d^r coefficients, and the gradient; fixed costs dominate small sizes. An order-3 tensor of "
        "4096 features would take 256 GiB and is not measured.",
    ]
    return Document(result.title, [TextTable(title, header, rows, left=0, groups=groups)], notes)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    return f"{value:,.0f}".replace(",", " ") if value >= 1000 else f"{value:.3g}" if value < 10 else f"{value:.1f}"


def find_complexity(folder: Path) -> Complexity | None:
    """Read what `measure_complexity` found from its folder; None if the folder holds another experiment."""
    file = folder / "table.json"
    if not file.is_file():
        return None
    try:
        content = read_json(file)
        is_complexity = isinstance(content, dict) and content.get("name") == "complexity"
        return Complexity.from_json(content) if is_complexity else None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    except KeyError as error:
        raise ValueError(f"{file} is damaged: it has no {error}") from None


def complexity_page(found: Complexity) -> Page:
    """Build the report of what was measured."""
    orders = [order for order in sorted({row.order for row in found.rows}) if found.of_order(order)]
    told = "Milliseconds forward and backward against the number of features; both axes are logarithmic."
    charts = [Chart(complexity_figure(found), "Time of both ways", told)] if orders else []
    plain = {name: getattr(found, name) for name in ("source", "target", "dtype", "rounds")}
    sections = [
        Section("Costs", [_table(found.rows), *charts]),
        Section("Configuration", [Pairs(pairs_of({**plain, **found.versions}))]),
        Section("Repeat it", [Listing("sohot experiment complexity", "The command that measures it again:")]),
    ]
    summary = [
        "The distance between two scatter tensors and its gradient, computed from kernels of the rows and from the "
        f"tensors themselves, for one class of {found.source} source and {found.target} target images.",
        "The ratio by formula counts operations; the measured ratio compares times on this machine, and is far smaller "
        "if the sizes are small or the machine is good at large sums.",
    ]
    largest = [max(found.of_order(order), key=lambda row: row.features) for order in orders]
    facts = [
        Fact(f"{row.measured:,.0f} ×", f"faster at order {row.order}", f"{row.features} features, measured")
        for row in largest
    ]
    return Page(found.title, "experiment", summary, facts, sections, f"Written by sohot {__version__}")


def _table(rows: Sequence[Cost]) -> Table:
    columns = ["order", "features", "stated ×", "by formula ×", "measured ×", "kernel form, ms", "explicit, ms"]
    entries: list[list[Number]] = []
    for row in rows:
        ratios = [_entry(row.stated, "{:,.0f}"), _entry(row.formula, "{:,.1f}"), _entry(row.measured, "{:,.1f}")]
        times = [_entry(row.gram_seconds, "{:.3g}", 1e3), _entry(row.explicit_seconds, "{:.3g}", 1e3)]
        entries.append([_entry(row.order, "{}"), _entry(row.features, "{}"), *ratios, *times])
    return Table(
        "Cost of explicit tensors relative to the kernel form: stated by the paper, by formula, measured",
        columns,
        entries,
    )


def _entry(value: float | None, form: str, factor: float = 1) -> Number:
    return Number("–", None) if value is None else Number(form.format(value * factor if factor != 1 else value), value)
