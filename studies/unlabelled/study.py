"""The study of unlabelled images: what they add, by protocol and by method, in one harness.

    python studies/unlabelled/study.py office31 DATA/office31 --out study-office31
    python studies/unlabelled/study.py pacs DATA/pacs --out study-pacs
    python studies/unlabelled/study.py pacs DATA/pacs --out study-pacs --development
    python studies/unlabelled/study.py pacs DATA/pacs --out study-pacs-lite2 --backbone lite2

Finished cells are kept: the same command goes on where it stopped (`--minutes` stops it in time), and `cells.csv` in
the folder lists them; those of an earlier list (`--known FILE`) are not computed again. `rows.py` says what is
compared, `tables.py` shows it. Development splits served to choose settings, those of one data set for the other: none
of their results is reported as one. A GPU with 16 cores takes about a quarter of an hour for each data set.
"""

import argparse
import csv
import multiprocessing
import os
import time
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from rows import Row, development, other_network, study

from sohot._device import choose_device
from sohot._start import prepare_process
from sohot.experiments.cell import Cell
from sohot.experiments.cell_training import Workplace
from sohot.experiments.cell_trunks import needed_features
from sohot.experiments.engines import Outcome
from sohot.experiments.engines.local import LocalEngine
from sohot.experiments.grid_run import GridPlan, GridWatcher, plan_grid, run_grid
from sohot.experiments.store import Store
from sohot.methods.choices import TWO_PASSES
from sohot.runs.trunk_folder import CHUNK, TrunkFolder, join_images
from sohot.training.collapse import Collapse

PLACE = ("data", "network", "row", "protocol", "shots", "shift", "split")
FIELDS = (*PLACE, "accuracy", "mean of classes", "collapse")


class OutOfTime(Exception):  # noqa: N818 - it names what happened
    """The time is up; what is finished is kept."""


class Clock(GridWatcher):
    """Says how far it is, and stops in time."""

    def __init__(self, seconds: float) -> None:
        self.began, self.seconds, self.done = time.perf_counter(), seconds, 0

    def finished(self, outcome: Outcome) -> None:
        """Count a cell."""
        self.done += 1
        passed = time.perf_counter() - self.began
        if outcome.error is not None:
            print(f"{outcome.cell.label()}: {outcome.error}", flush=True)
        if self.done % 50 == 0:
            print(f"{self.done} cells in {passed:.0f} s", flush=True)
        if passed > self.seconds:
            raise OutOfTime


def place_of(data: str, cell: Cell, row: Row) -> tuple[str, ...]:
    """Return what names a cell in the list."""
    network = row.backbone.rpartition(":")[2]
    return data, network, row.name, cell.pool, str(row.shots), cell.shift, str(cell.split)


def read_known(file: Path | None) -> dict[tuple[str, ...], list[str]]:
    """Read a list of cells: its lines by what names them."""
    if file is None:
        return {}
    with open(file, newline="", encoding="utf-8") as lines:
        return {tuple(line[: len(PLACE)]): line for line in csv.reader(lines) if line != [*FIELDS]}


def read_once(file: Path | None) -> set[tuple[str, ...]]:
    """Read where held-out labels chose one pass: data set, protocol, shots, shift and split."""
    if file is None:
        return set()
    with open(file, newline="", encoding="utf-8") as lines:
        return {tuple(line[:5]) for line in csv.reader(lines) if line[5] != TWO_PASSES}


def plan(
    rows: Sequence[Row],
    root: Path,
    out: Path,
    device: str,
    known: Collection[tuple[str, ...]] = (),
    once: Collection[tuple[str, ...]] = (),
) -> tuple[GridPlan, dict[str, Row]]:
    """List the cells of all rows, those of one split together: they share what they start from.

    Args:
        rows: The rows.
        root: The images.
        out: Where results go.
        device: Where to compute.
        known: Cells to leave out, see `place_of`.
        once: Where to leave out rows with two passes, see `read_once`.
    """
    named: dict[str, Row] = {}
    cells: list[Cell] = []
    where: Workplace | None = None
    for row in rows:
        planned = plan_grid(row.grid(), root, out, device=device)
        where = planned.where
        places = {cell.key: place_of(row.data, cell, row) for cell in planned.cells}
        unwanted = once if row.settings.get("batch_norm") == TWO_PASSES else ()
        cells += [
            cell
            for cell in planned.cells
            if places[cell.key] not in known
            and (places[cell.key][0], *places[cell.key][3:]) not in unwanted
            and cell.key not in named
        ]
        named |= {cell.key: row for cell in planned.cells}
    assert where is not None
    cells.sort(key=lambda cell: (named[cell.key].phase, cell.shift, cell.split, cell.pool))
    return GridPlan(planned.grid, cells, where), named


def fill(part: int, parts: int, cells: Sequence[Cell], where: Workplace) -> None:
    """Pass a part of the images through the trunks."""
    for folder, lists in needed_features(cells, where):
        for images in join_images(lists):
            missing = folder.missing(images)
            for start in range(part * CHUNK, len(missing), parts * CHUNK):
                some = images.subset(missing[start : start + CHUNK])
                TrunkFolder(folder.folder.parent, folder.trunk, folder.spec, folder.views).add(
                    some, choose_device(where.device), 1
                )


def read_statistics(cell: Cell, where: Workplace) -> None:
    """Leave the statistics of a cell's target images where others find them."""
    needed_features([cell], where)


def prepare(cells: Iterable[Cell], where: Workplace, processes: int) -> None:
    """Pass all images through the trunks in several processes: one process is held up by its own threads."""
    decisive = ("trains", "batch_norm")
    one_each = {
        (cell.shift, cell.split, cell.pool, *(cell.settings.get(name) for name in decisive)): cell for cell in cells
    }
    twice = [cell for cell in one_each.values() if cell.settings.get("batch_norm") == TWO_PASSES]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=prepare_process) as workers:
        list(workers.map(partial(read_statistics, where=where), twice))
        work = partial(fill, parts=processes, cells=[*one_each.values()], where=where)
        list(workers.map(work, range(processes)))


def write_cells(
    planned: GridPlan, named: dict[str, Row], data: str, known: Mapping[tuple[str, ...], Sequence[str]]
) -> None:
    """Write the known cells, and the accuracy of every finished one."""
    records = [record for record in Store(planned.where.out).records(planned.cells) if record.result is not None]
    with open(planned.where.out / "cells.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(known.values())
        for record in records:
            place, result = place_of(data, record.cell, named[record.key]), record.result
            assert result is not None
            if place in known:
                continue
            numbers = [f"{100 * share:.3f}" for share in (result.accuracy.micro, result.accuracy.macro)]
            collapsed = any(sign.value in note for sign in Collapse for note in result.notes)
            writer.writerow([*place, *numbers, int(collapsed)])


def main() -> None:
    """Run the study, or the part of it that serves development."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=("office31", "pacs"))
    parser.add_argument("root", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--development", action="store_true")
    parser.add_argument("--backbone", default="lite0", help="for other rows: five splits; not with --development")
    parser.add_argument("--weights", help="file of the backbone's weights")
    parser.add_argument("--known", type=Path, help="list of cells that need not be computed again")
    parser.add_argument("--chosen", type=Path, help="list of chosen.py: two passes only where it says so")
    parser.add_argument("--phases", default="", help="only these, such as 1,2")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.development:
        rows = development(given.data)
    elif given.backbone == "lite0":
        rows = study(given.data)
    else:
        rows = other_network(given.data, given.backbone, given.weights)
    if given.phases:
        rows = [row for row in rows if str(row.phase) in given.phases.split(",")]
    known = read_known(given.known)
    planned, named = plan(rows, given.root, given.out, given.device, known, read_once(given.chosen))
    clock = Clock(60 * given.minutes)
    print(f"{len(planned.cells)} cells", flush=True)
    prepare(planned.cells, planned.where, given.workers)
    print(f"prepared in {time.perf_counter() - clock.began:.0f} s", flush=True)
    try:
        run_grid(planned, LocalEngine(given.workers, given.device), watcher=clock)
    except OutOfTime:
        print(f"the time is up after {clock.done} cells", flush=True)
    write_cells(planned, named, given.data, known)


if __name__ == "__main__":
    main()
