"""Started by test_ray_engine.py: runs grids by Ray in a process of its own and prints what it saw, one JSON object."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import ray
import torch
from experiment_work import result_of
from ray.cluster_utils import Cluster

from sohot.experiments import Store
from sohot.experiments.cell import Cell
from sohot.experiments.engines.ray import RayEngine
from sohot.experiments.grid_run import run_cells
from sohot.experiments.result import CellResult

GOOD = 20
MAX_RETRIES = 1
ENDED_BEFORE = 5
"""So many cells end before a machine is killed."""


def make_cells() -> list[Cell]:
    cells = [Cell("toy", "A-W", number, "good", "none") for number in range(GOOD)]
    cells.insert(2, Cell("toy", "A-W", 0, "raises", "none"))
    cells.insert(4, Cell("toy", "A-W", 0, "dies", "none"))
    return cells


def work(log: Path, cell: Cell, machines: int = 2) -> dict:
    """Note the attempt, then do as the cell's method says."""
    note(log, "begin", cell)
    print("work speaks on standard output")
    if cell.method == "raises":
        raise ValueError("this cell cannot be computed")
    if cell.method == "dies":
        os._exit(3)
    if machines == 2:
        wait_for_both(log)
        wait_for_the_kill(log)
    time.sleep(0.25)
    note(log, "end", cell)
    return {"split": cell.split, "threads": torch.get_num_threads(), "omp": os.environ["OMP_NUM_THREADS"]}


def wait_for_both(log: Path) -> None:
    """Let no cell end before both machines compute one, for a minute in all: on a busy machine one starts late."""
    while True:
        lines = attempts(log)
        nodes = {line["node"] for line in lines if line["method"] == "good"}
        if len(nodes) == 2 or time.time() > lines[0]["at"] + 60:
            return
        time.sleep(0.05)


def wait_for_the_kill(log: Path) -> None:
    """Let no cell end after the first few until a machine is killed, for a minute: it must be killed with a cell."""
    since = time.time()
    while ended_keys(log, ENDED_BEFORE) and not killed_mark(log).exists() and time.time() < since + 60:
        time.sleep(0.05)


def ended_keys(log: Path, least: int) -> set[str]:
    """Return the cells that have ended, if there are enough of them."""
    ended = {line["key"] for line in attempts(log) if line["what"] == "end"}
    return ended if len(ended) >= least else set()


def killed_mark(log: Path) -> Path:
    return log.with_suffix(".killed")


def note(log: Path, what: str, cell: Cell) -> None:
    node = ray.get_runtime_context().get_node_id()
    line = {"what": what, "key": cell.key, "method": cell.method, "node": node, "pid": os.getpid(), "at": time.time()}
    with open(log, "a") as stream:  # one short write in append mode: lines of several processes do not mix
        stream.write(json.dumps(line) + "\n")


def attempts(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def kill_node(node, log: Path) -> None:
    """Kill a machine of the cluster with all its processes, in the middle, while it computes a cell."""
    while True:
        here = [line for line in attempts(log) if line["node"] == node.node_id]
        ended = ended_keys(log, ENDED_BEFORE)
        begun = {line["key"] for line in here if line["what"] == "begin" and line["method"] == "good"}
        if ended and begun - ended:
            break
        time.sleep(0.005)
    running = {process.process.pid for kind in node.all_processes.values() for process in kind}
    for pid in running | {line["pid"] for line in here if Path(f"/proc/{line['pid']}").exists()}:
        os.kill(pid, signal.SIGKILL)
    killed_mark(log).touch()


def run_grid(folder: Path) -> dict:
    """Run a grid on two machines, of which one is killed."""
    log = folder / "attempts.jsonl"
    small = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    second = cluster.add_node(**small)
    store = Store(folder)
    store.plan(make_cells())
    pulled: list[str] = []

    def claimed() -> Iterator[Cell]:
        for cell in make_cells():
            assert store.claim(cell)
            pulled.append(cell.key)
            yield cell

    killer = threading.Thread(target=kill_node, args=(second, log), daemon=True)
    killer.start()
    outcomes, ahead = [], 0
    for outcome in RayEngine(cluster.address, max_retries=MAX_RETRIES).run(claimed(), partial(work, log)):
        ahead = max(ahead, len(pulled) - len(outcomes))
        outcomes.append(outcome)
        if outcome.error is None:
            store.finish(outcome.cell, result_of())
        else:
            store.fail(outcome.cell, outcome.error)
    closed = not ray.is_initialized()
    report = {
        "outcomes": [[one.cell.key, one.cell.method, one.result, one.error, one.seconds] for one in outcomes],
        "lost": [one.cell.method for one in outcomes if one.killed],
        "stored": [[record.key, record.status] for record in store.records()],
        "attempts": attempts(log),
        "second": second.node_id,
        "ahead": ahead,
        "closed": closed,
        "killed": not killer.is_alive(),
        **ask_too_much(cluster.address),
    }
    ray.shutdown()
    cluster.shutdown()
    return report


def ask_too_much(address: str) -> dict:
    """Ask for more than any machine has, with a connection that is there already and is not ours to close."""
    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    try:
        next(RayEngine(cpus_per_cell=64).run(iter(make_cells()), partial(work, Path("not used"))))
        sentence = ""
    except ValueError as error:
        sentence = str(error)
    return {"too_much": sentence, "kept_open": ray.is_initialized()}


def share_grid(folder: Path) -> dict:
    """Run a grid on two machines with two drivers at once, of which one is killed while it has cells."""
    small = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    cluster.add_node(**small)
    command = [sys.executable, __file__, "drive", str(folder), cluster.address]
    first, second = (subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2))
    held: set[str] = set()
    while not held or len(Store(folder).records()) < ENDED_BEFORE:
        assert first.poll() is None, "the first driver ended before it was killed"
        held = {key for key, holder in Store(folder).claimed_by_others().items() if holder.pid == first.pid}
        time.sleep(0.02)
    first.kill()
    first.wait()
    codes = [second.wait(), subprocess.call(command, stdout=subprocess.DEVNULL)]
    files = [json.loads(file.read_text()) for file in (folder / "cells").glob("*.json")]
    records = Store(folder).records()
    cluster.shutdown()
    return {
        "codes": codes,
        "held": sorted(held),
        "done": [record.key for record in records if record.status == "done"],
        "attempts": [len(one["attempts"]) for one in files if "cell" in one],
        "begun": [line["key"] for line in attempts(folder / "attempts.jsonl") if line["what"] == "begin"],
        "claims": [file.name for file in (folder / "cells").glob("*.claim")],
    }


def drive(folder: Path, address: str) -> dict:
    """Run the cells that do well, of a grid that others may be computing, too."""
    cells = [cell for cell in make_cells() if cell.method == "good"]
    with Store(folder) as store:
        store.plan(cells)
        run_cells(cells, store, RayEngine(address, workers=2), partial(well, folder / "attempts.jsonl"))
    return {}


def well(log: Path, cell: Cell) -> CellResult:
    """Note the attempt, and take a moment."""
    note(log, "begin", cell)
    time.sleep(0.25)
    return result_of(steps=cell.split)


class Terminated(BaseException):
    """What whoever uses the engine raises at SIGTERM."""


def answer_sigterm(*_: object) -> None:
    raise Terminated


def run_here(folder: Path) -> dict:
    """Run without a cluster, at most two cells ahead, until SIGTERM comes while the engine waits."""
    signal.signal(signal.SIGTERM, answer_sigterm)
    log, cells = folder / "attempts.jsonl", iter(make_cells())
    engine = RayEngine(workers=2, device="cpu", cpus_per_cell=float(os.cpu_count() or 1))
    running = engine.run(cells, partial(work, log, machines=1))
    result = next(running).result
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
    stopped = False
    try:
        for _ in running:
            pass
    except Terminated:
        stopped = True
    return {"result": result, "stopped": stopped, "left": len(list(cells)), "closed": not ray.is_initialized()}


if __name__ == "__main__":
    modes = {"grid": run_grid, "share": share_grid, "drive": drive, "here": run_here}
    print(json.dumps(modes[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
