"""A run killed with SIGKILL at any moment resumes to bit-identical weights: real processes, really killed."""

import json
import os
import signal
from pathlib import Path

import pytest
from warm_process import run_warm

import sohot

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# A checkpoint of the run makes 5 calls of fsync for files and folders, and 1 to 3 of replace.
MOMENTS = [
    ["step:1"],
    ["step:3", "step:7", "step:12", "step:30"],
    ["write:1", "write:2", "write:4", "write:5", "write:9"],
    ["mkdir:1", "mkdir+:2", "mkdir+:3"],
    [f"fsync:{number}" for number in range(1, 9)],
    ["fsync+:4", "fsync+:8", "fsync+:13"],
    ["replace:1", "replace+:1", "replace:2", "replace+:2", "replace:3", "replace+:4", "replace:5", "replace+:5"],
    ["time:0.02", "time:0.05", "time:0.09", "time:0.11"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def found(folder) -> dict:
    """What one worker process, which starts and kills the others, has seen."""
    worker = Path(__file__).with_name("kill_worker.py")
    paths = [str(Path(sohot.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = run_warm([worker, folder, *map(",".join, MOMENTS)], environment, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("number", range(len(MOMENTS)), ids=lambda number: MOMENTS[number][0].split(":")[0])
def test_a_killed_run_ends_in_the_same_bits(found, folder, number):
    undisturbed, run = found["undisturbed"], found["killed"][number]
    assert undisturbed["resumed_from"] is None
    assert set(run["deaths"]) <= {signal.SIGKILL, 0}  # 0: done before the moment came
    assert signal.SIGKILL in run["deaths"]
    assert run["end"] is not None
    assert (run["end"]["model"], run["end"]["objective"]) == (undisturbed["model"], undisturbed["objective"])
    left = sorted(path.name for path in (folder / str(number) / "checkpoints").iterdir())
    assert left[-1] == "step-00000030"
    assert all(name.startswith("step-") for name in left)


def test_most_moments_did_come(found):
    deaths = [death for run in found["killed"] for death in run["deaths"]]
    assert deaths.count(signal.SIGKILL) > 0.8 * len(deaths)
