"""Runs grids in child processes that die by SIGKILL at random moments. Run by test_killed.py as a process.

    python kill_grid.py kill KIND FOLDER SEED LIVES            one grid again and again until LIVES children have died
    python kill_grid.py share FOLDER SEED CELLS RUNNERS KILLS  several runners on one folder, of which KILLS are killed
                                                               and replaced

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
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from experiment_work import InlineEngine, acting, make_cells, note, notes, small_grid, write_domains

from sohot.experiments import Store, plan_grid, run_grid
from sohot.experiments.grid_run import GridWatcher, run_cells


class Noting(GridWatcher):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def started(self, cell) -> None:
        note(self.folder, cell.key)


def run_trivial(folder: Path, count: int = 30, seconds: float = 0.005) -> None:
    cells = make_cells(count, act=f"sleep:{seconds}")
    with Store(folder) as store:
        store.plan(cells)
        run_cells(cells, store, InlineEngine(), acting(folder / "work"), watcher=Noting(folder))


def run_network(folder: Path) -> None:
    root = folder.parent / "images"
    plan = plan_grid(small_grid(), root, folder, device="cpu", workers=0)
    run_grid(plan, InlineEngine(), watcher=Noting(folder))


def start(job) -> int:
    """Do a job in a process; return its number."""
    child = os.fork()
    if child == 0:
        try:
            job()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return child


def in_child(job, delay: float | None) -> int:
    """Do a job in a process that dies after a while; return the signal it died of, 0 if it was done before."""

    def dying() -> None:
        if delay is not None:
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
        job()

    code = os.waitstatus_to_exitcode(os.waitpid(start(dying), 0)[1])
    if code > 0:
        raise SystemExit(f"a child failed with {code}")
    return -code


def table(folder: Path) -> dict:
    """What is stored, without the times; and how many attempts there were at each cell."""
    records = Store(folder).records()
    results = {one.key: {k: v for k, v in asdict(one.result).items() if k != "seconds"} for one in records}
    files = [json.loads((folder / "cells" / f"{one.key}.json").read_text()) for one in records]
    claims = [file.name for file in (folder / "cells").glob("*.claim")]
    return {"results": results, "attempts": [len(one["attempts"]) for one in files], "claims": claims}


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


def share(folder: Path, seed: int, cells: int, runners: int, kills: int) -> dict:
    (folder / "work").mkdir(parents=True)
    chance, deaths = random.Random(seed), 0

    def job() -> None:
        run_trivial(folder, cells, 0.01)

    children = {start(job) for _ in range(runners)}
    while deaths < kills:
        time.sleep(chance.uniform(0.0, 0.05))
        child = chance.choice(sorted(children))
        if os.waitpid(child, os.WNOHANG)[0]:
            children.remove(child)  # everything is done
            break
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        deaths += 1
        children = children - {child} | {start(job)}
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    done = [line.split() for line in notes(folder / "work")]
    found = table(folder)
    return {
        "codes": codes,
        "deaths": deaths,
        "stored": len(found["results"]),
        "attempts": found["attempts"],
        "claims": found["claims"],
        "begun": Counter(cell for cell, _ in done),
        "runners": sorted({pid for _, pid in done}),
    }


def main() -> None:
    import torch

    torch.set_num_threads(1)  # threads do not survive a fork
    mode, *rest = sys.argv[1:]
    if mode == "kill":
        found = kill(rest[0], Path(rest[1]), int(rest[2]), int(rest[3]))
    else:
        found = share(Path(rest[0]), *map(int, rest[1:]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
