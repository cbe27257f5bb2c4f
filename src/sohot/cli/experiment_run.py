"""What `sohot experiment` does with a grid: show the plan, run it, print the results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from ..experiments.cell import Cell
from ..experiments.engines import Engine
from ..experiments.engines.local import LocalEngine
from ..experiments.grid import COMPLEXITY
from ..experiments.grid_run import GridPlan, GridRun, run_grid, time_left
from ..experiments.store import Store
from .exit_codes import FAILED
from .live_progress import watch_grid
from .output import MOST_LISTED, print_json, print_text, results_only, say


def show_plan(plan: GridPlan, *, workers: int | None, retry: bool, json: bool) -> None:
    """Print the cells, their states, and the time that the rest will take; write nothing."""
    from ..reporting.pages.words import duration

    records = Store(plan.where.out).records(plan.cells)
    known = {record.key: record.status for record in records}
    states = [known.get(cell.key, "to do") for cell in plan.cells]
    settled = ("done",) if retry else ("done", "failed")
    pending = [cell for cell, state in zip(plan.cells, states, strict=True) if state not in settled]
    parallel = 1 if plan.cells[0].frozen else LocalEngine(workers, plan.where.device).workers
    seconds = time_left(pending, records, parallel)
    if json:
        cells = [{"key": cell.key, "state": state, **cell.as_dict()} for cell, state in _with(plan, states)]
        print_json({**_head(plan), "cells": cells, "seconds": seconds})
        return
    for cell, state in _with(plan, states):
        print_text(f"{state:<8}{cell.label()}")
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    print_text(f"{len(plan.cells)} cells: {counts}; in {plan.where.out}")
    if seconds is not None:
        print_text(f"about {duration(seconds)} to compute {len(pending)}, {parallel} in parallel")


def _with(plan: GridPlan, states: Sequence[str]) -> list[tuple[Cell, str]]:
    return list(zip(plan.cells, states, strict=True))


def _head(plan: GridPlan) -> dict[str, Any]:
    return {"experiment": plan.grid.name, "title": plan.grid.title, "out": str(plan.where.out)}


def run_experiment(plan: GridPlan, engine: Engine, again: str, *, retry: bool, quiet: bool, json: bool) -> None:
    """Compute the cells, write tables, figures and the report, and print the table."""
    with results_only(), watch_grid(quiet) as watcher:
        run = run_grid(plan, engine, retry=retry, watcher=watcher)
    _present(plan, run, again, quiet, json)
    if run.failed:
        raise typer.Exit(FAILED)


def _present(plan: GridPlan, run: GridRun, again: str, quiet: bool, json: bool) -> None:
    from ..reporting import write_outputs
    from ..reporting.tables import lay_out, result_table, to_text

    with results_only(), watch_grid(quiet) as watcher:
        files = write_outputs(run.records, plan.grid, plan.where.out, watcher.progress)
        done = any(record.result is not None for record in run.records)
        tables = {one.pool[0]: result_table(run.records, one) for one in plan.grid.by_pool()} if done else {}
    if json:
        failed = [{"key": cell.key, "cell": cell.as_dict(), "error": error} for cell, error in run.failed]
        counts = {"total": run.total, "computed": run.computed, "kept": run.kept, "failed": len(run.failed)}
        content = {pool: table.as_json() for pool, table in tables.items()}
        one = {"table": content.get(plan.grid.pool[0])} if len(plan.grid.pool) == 1 else {"tables": content}
        shown = [str(file) for file in files]
        print_json({**_head(plan), "cells": counts, "failed": failed, **one, "files": shown})
    else:
        for place, table in enumerate(tables.values()):
            print_text(("\n\n" if place else "") + to_text(lay_out(table)))
    if run.failed:
        say(f"{len(run.failed)} of {run.total} cells failed:")
        for cell, error in run.failed[:MOST_LISTED]:
            say(f"  {cell.label()}: {error}")
        if len(run.failed) > MOST_LISTED:
            say(f"  … and {len(run.failed) - MOST_LISTED} more")
        stored = any(record.result is None for record in run.records)
        tried = " --retry" if stored and "--retry" not in again else ""
        say(f"retry them with: {again}{tried}")
    say(f"{run.total} cells, {run.computed} computed now, {run.kept} kept; results in {plan.where.out}")


def run_complexity(out: Path, json: bool) -> None:
    """Measure the savings of the kernel form, write tables, figures and the report, and print the table."""
    from ..reporting.complexity import complexity_text, measure_complexity, write_complexity
    from ..reporting.pages import write_report

    with results_only():
        result = measure_complexity(on_progress=lambda done, of, name: say(f"[{min(done + 1, of)}/{of}] {name}"))
        files = [str(file) for file in (*write_complexity(result, out), write_report(out))]
    if json:
        print_json({"experiment": COMPLEXITY, "out": str(out), "table": result.as_json(), "files": files})
    else:
        print_text(complexity_text(result))
