"""What the kernel form saves over explicit tensors: the paper's claim, its own formula, and measured."""

import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..functional.distance import explicit_cost, gram_cost, scatter_distance
from ..networks.device import one_thread
from .tables.formats import Block, Document, to_text
from .tables.writing import to_csv, write_documents

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE, TARGET, FEATURES = 20, 3, 4096
"""Rows of a class in each domain and features, as in the paper's example."""
STATED = {2: 52, 3: 143_000}
"""How many times slower the explicit way is, as the paper's text states it."""

_SIZES = {2: (64, 128, 256, 512, 1024, 2048, 4096), 3: (16, 32, 64, 128, 256)}
_QUICK_SIZES = {2: (16, 64), 3: (8, 16)}
_LONG_ENOUGH = 2.0  # seconds for one size: what is quick gets more rounds
_WAYS = ("gram", "explicit")
_CALLS = {"gram": 5, "explicit": 1}  # in each turn: the median of what takes a millisecond needs more of them
_COLUMNS = ("order", "features", "stated", "formula", "measured", "gram_seconds", "explicit_seconds")

Progress = Callable[[int, int, str], None]


def measure_complexity(quick: bool = False, on_progress: Progress | None = None) -> dict[str, Any]:
    """Time the distance of two scatter tensors, forward and backward, both ways in turns.

    Args:
        quick: Small sizes and few rounds, to try it out; the numbers are then worth nothing.
        on_progress: Called before each size with how many are done, how many there are, and a name.

    Returns:
        Plain data for JSON: `rows`, each with `order`, `features`, what is `stated` in the paper, the ratio of costs by
        its `formula`, the ratio `measured`, and the seconds of both ways; and the circumstances. An order-3 tensor
        of 4096 features would take 256 GiB: there the formula stands alone.
    """
    sizes = _QUICK_SIZES if quick else _SIZES
    rounds = 2 if quick else 5
    cases = [(order, size) for order, of_order in sizes.items() for size in of_order]
    rows = []
    for done, (order, size) in enumerate(cases):
        if on_progress is not None:
            on_progress(done, len(cases), f"order {order}, {size} features")
        with one_thread():  # small work waits more for its threads than it computes, if the machine has other work
            rows.append(_row(order, size, _time_both(order, size, rounds)))
    rows += [_row(order, FEATURES, None) for order in sizes if FEATURES not in sizes[order]]
    if on_progress is not None:
        on_progress(len(cases), len(cases), "done")
    return {
        "name": "complexity",
        "title": "Kernel form against explicit scatter tensors",
        "source": SOURCE,
        "target": TARGET,
        "dtype": "float32",
        "rounds": rounds,
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
        "rows": sorted(rows, key=lambda row: (row["order"], row["features"])),
    }


def complexity_text(result: dict[str, Any]) -> str:
    """Give what `measure_complexity` found as a table for a terminal."""
    return to_text(_document(result))


def write_complexity(result: dict[str, Any], out: Path) -> list[Path]:
    """Write table.txt, .md, .tex, .csv and .json, and figures/complexity.png and .svg.

    Args:
        result: What `measure_complexity` found.
        out: Folder; made if it is not there.

    Returns:
        The files.
    """
    from .figures.canvas import save_figure

    lines = to_csv(list(_COLUMNS), ([row[name] for name in _COLUMNS] for row in result["rows"]))
    files = write_documents(_document(result), result, lines, out)
    return files + save_figure(complexity_figure(result), out / "figures", "complexity")


def complexity_figure(result: dict[str, Any]) -> "Figure":
    """Draw the seconds of both ways against the number of features, on logarithmic axes, a panel for each order."""
    from .figures.canvas import legend_beside, look, new_figure, tidy

    orders = sorted({row["order"] for row in result["rows"]})
    figure = new_figure(1.6 + 3.9 * len(orders), 3.7)
    panels = figure.subplots(1, len(orders), squeeze=False, sharey=True)[0]
    for axes, order in zip(panels, orders, strict=True):
        rows = [row for row in result["rows"] if row["order"] == order and row["measured"] is not None]
        for place, way in enumerate(reversed(_WAYS)):
            seconds = [1e3 * row[f"{way}_seconds"] for row in rows]
            axes.plot([row["features"] for row in rows], seconds, label=_NAMES[way], markersize=5, **look(place))
        axes.set_xscale("log", base=2)
        axes.set_xticks([row["features"] for row in rows], [str(row["features"]) for row in rows], fontsize=8)
        axes.set_yscale("log")
        axes.set_title(f"order {order}", fontsize=10)
        axes.set_xlabel("features, $d$")
        tidy(axes)
    panels[0].set_ylabel("forward + backward, ms")
    legend_beside(panels[-1])
    return figure


_NAMES = {"gram": "kernel form", "explicit": "explicit tensors"}


def _time_both(order: int, size: int, rounds: int) -> dict[str, float]:
    """Give the median seconds of each way; they take turns, so that a noisy moment hits both."""
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


def _row(order: int, size: int, seconds: dict[str, float] | None) -> dict[str, Any]:
    return {
        "order": order,
        "features": size,
        "stated": STATED.get(order) if size == FEATURES else None,
        "formula": explicit_cost(SOURCE, TARGET, size, order) / gram_cost(SOURCE, TARGET, size),
        "measured": None if seconds is None else seconds["explicit"] / seconds["gram"],
        "gram_seconds": None if seconds is None else seconds["gram"],
        "explicit_seconds": None if seconds is None else seconds["explicit"],
    }


def _document(result: dict[str, Any]) -> Document:
    header = ["order", "features", "stated", "by formula", "measured", "kernel form, ms", "explicit, ms"]
    rows = []
    for row in result["rows"]:
        times = [_number(None if row[f"{way}_seconds"] is None else 1e3 * row[f"{way}_seconds"]) for way in _WAYS]
        ratios = [_number(row[name]) for name in ("stated", "formula", "measured")]
        rows.append([str(row["order"]), str(row["features"]), *ratios, *times])
    orders = [row["order"] for row in result["rows"]]
    groups = [place for place in range(1, len(orders)) if orders[place] != orders[place - 1]]
    title = "How many times costlier explicit tensors are, and the time of each"
    notes = [
        f"One class, {result['source']} source and {result['target']} target rows, {result['dtype']}; forward and "
        f"backward, medians of {result['rounds']} rounds or more in turns, one thread, "
        f"torch {result['versions']['torch']}.",
        "By formula: (N + N* + 1) · D against (N² + N N* + N*²) · d multiplications of the distance alone, D the "
        "number of different coefficients, as the paper counts. Its text states 52 where its formula gives 104.8.",
        "Measured: all d^r coefficients, and the gradient; small sizes are ruled by fixed costs. An order-3 tensor of "
        "4096 features would take 256 GiB and is not measured.",
    ]
    return Document(result["title"], [Block(title, header, rows, left=0, groups=groups)], notes)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    return f"{value:,.0f}".replace(",", " ") if value >= 1000 else f"{value:.3g}" if value < 10 else f"{value:.1f}"
