"""The report of the experiment `complexity`: what the kernel form saves over explicit tensors."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import __version__
from . import plots
from .blocks import Block, Entry, Fact, Gallery, Listing, Number, Page, Pairs, Plot, Section, Side, Table
from .pictures import embed_figures
from .words import pairs_of

FILES = ("complexity.json", "table.json")
_WAYS = {"gram": "kernel form", "explicit": "explicit tensors"}


def find_complexity(folder: Path) -> dict[str, Any] | None:
    """Read what `measure_complexity` found from an experiment's folder; None if it is another experiment."""
    for file in (folder / name for name in FILES):
        if not file.is_file():
            continue
        try:
            content = json.loads(file.read_bytes())
        except ValueError as error:
            raise ValueError(f"{file} is damaged: {error}") from None
        if isinstance(content, dict) and content.get("name") == "complexity":
            return content
    return None


def complexity_page(folder: Path, found: Mapping[str, Any]) -> Page:
    """Put together the report of what was measured."""
    rows = found["rows"]
    measured = [row for row in rows if row["measured"] is not None]
    pictures, _ = embed_figures(sorted((folder / "figures").glob("*.png")))
    blocks: list[Block] = [_table(rows)]
    if measured:
        blocks.append(Side([_plot(measured, order) for order in sorted({row["order"] for row in measured})]))
    plain = {name: found[name] for name in ("source", "target", "dtype", "rounds", "threads") if name in found}
    sections = [
        Section("Costs", blocks),
        *([Section("Figures", [Gallery(pictures, wide=True)])] if pictures else []),
        Section("Configuration", [Pairs(pairs_of({**plain, **found.get("versions", {})}))]),
        Section("Repeat it", [Listing("sohot experiment complexity", "The command that measures it again:")]),
    ]
    summary = [
        "The distance of two scatter tensors and its gradient, computed from kernels of the rows and from the tensors "
        f"themselves, for one class of {found['source']} source and {found['target']} target images.",
        "The ratio by formula counts operations; the measured one is what this machine took, and it is far less where "
        "the sizes are small or the machine is good at large sums.",
    ]
    facts = [
        Fact(f"{row['measured']:,.0f} ×", f"faster at order {row['order']}", f"{row['features']} features, measured")
        for row in _largest(measured)
    ]
    title = found.get("title") or "Kernel form against explicit scatter tensors"
    return Page(title, "experiment", summary, facts, sections, f"Written by sohot {__version__}")


def _largest(rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    by_order: dict[int, Mapping[str, Any]] = {}
    for row in rows:
        if row["features"] >= by_order.get(row["order"], row)["features"]:
            by_order[row["order"]] = row
    return list(by_order.values())


def _table(rows: list[Mapping[str, Any]]) -> Table:
    columns = ["order", "features", "stated ×", "by formula ×", "measured ×", "kernel form, ms", "explicit, ms"]
    entries: list[list[Entry]] = []
    for row in rows:
        ratios = [
            _number(row[name], "{:,.0f}" if name == "stated" else "{:,.1f}")
            for name in ("stated", "formula", "measured")
        ]
        times = [_number(row[f"{way}_seconds"], "{:.3g}", 1e3) for way in _WAYS]
        entries.append([_number(row["order"], "{}"), _number(row["features"], "{}"), *ratios, *times])
    return Table(
        "How many times the explicit way costs more: as the paper states it, by formula, measured", columns, entries
    )


def _number(value: float | None, form: str, factor: float = 1) -> Number:
    return Number("–", None) if value is None else Number(form.format(value * factor if factor != 1 else value), value)


def _plot(rows: list[Mapping[str, Any]], order: int) -> Plot:
    of_order = [row for row in rows if row["order"] == order]
    sizes = [row["features"] for row in of_order]
    series = {name: (sizes, [1e3 * row[f"{way}_seconds"] for row in of_order]) for way, name in _WAYS.items()}
    figure = plots.lines(series, "features", "ms", log=True)
    figure["layout"]["xaxis"]["type"] = "log"
    what = f"Milliseconds forward and backward at order {order} against the number of features; both axes logarithmic."
    return Plot(figure, f"Order {order}", what)
