"""Runs grids in child processes that die by SIGKILL at random moments. Run by test_killed.py as a process.

    python kill_grid.py kill KIND FOLDER SEED LIVES       the same grid again and again until LIVES children have died
    python kill_grid.py share FOLDER CELLS RUNNERS        several runners at once on one folder

KIND is `trivial` (cells that take a moment) or `network` (a small network on tiny images). The last line printed is a
JSON object.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from experiment_work import InlineEngine, acting, make_cells, note, notes, small_grid, write_domains

from sohot.experiments.grid_run import GridWatcher, plan_grid, run_cells, run_grid
from sohot.experiments.store import Store


class Noting(GridWatcher):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def started(self, cell) -> None:
        note(self.folder, cell.key)


def run_trivial(folder: Path, count: int = 30, seconds: float = 0.005) -> None:
    cells = make_cells(count, act=f"sleep:{seconds}")
    with Store(folder / "results.sqlite") as store:
        run_cells(cells, store, InlineEngine(), acting(folder / "work"), watcher=Noting(folder))


def run_network(folder: Path) -> None:
    root = folder.parent / "images"
    plan = plan_grid(small_grid(), root, folder, device="cpu", workers=0)
    run_grid(plan, InlineEngine(), watcher=Noting(folder))


def in_child(job, delay: float | None) -> int:
    """Do a job in a process that dies after a while; return the signal it died of, 0 if it was done before."""
    child = os.fork()
    if child == 0:
        if delay is not None:
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
        try:
            job()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"a child failed with {os.WEXITSTATUS(status)}")
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def table(folder: Path) -> dict:
    with Store(folder / "results.sqlite") as store:
        records, attempts = store.records(), store.attempts()
    results = {one.key: {k: v for k, v in one.result.as_json().items() if k != "seconds"} for one in records}
    return {"results": results, "attempts": len(attempts), "states": sorted({one.status for one in records})}


def kill(kind: str, root: Path, seed: int, lives: int) -> dict:
    folder, job = root / "killed", run_trivial if kind == "trivial" else run_network
    for each in (folder / "work", root / "whole" / "work"):
        each.mkdir(parents=True)
    if kind == "network":
        write_domains(root / "images")
    began = time.perf_counter()
    job(root / "whole")
    whole = time.perf_counter() - began
    chance, deaths, again = random.Random(seed), 0, []
    for _ in range(4 * lives):
        done = set(table(folder)["results"])
        earlier = len(notes(folder))
        died = in_child(lambda: job(folder), chance.uniform(0.0, 0.5 * whole))
        deaths += died == signal.SIGKILL
        again += [key for key in notes(folder)[earlier:] if key in done]
        if deaths == lives or not died:
            break
    in_child(lambda: job(folder), None)
    return {"deaths": deaths, "again": again, "killed": table(folder), "whole": table(root / "whole")}


def share(folder: Path, cells: int, runners: int) -> dict:
    (folder / "work").mkdir(parents=True)
    children = []
    for _ in range(runners):
        child = os.fork()
        if child == 0:
            try:
                run_trivial(folder, cells, 0.01)
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    done = [line.split() for line in notes(folder / "work")]
    return {"codes": codes, "cells": [cell for cell, _ in done], "runners": sorted({pid for _, pid in done})}


def main() -> None:
    import torch

    torch.set_num_threads(1)  # threads do not survive a fork
    mode, *rest = sys.argv[1:]
    if mode == "kill":
        found = kill(rest[0], Path(rest[1]), int(rest[2]), int(rest[3]))
    else:
        found = share(Path(rest[0]), int(rest[1]), int(rest[2]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
