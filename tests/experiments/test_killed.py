"""A grid killed by SIGKILL at random moments goes on: the same table, and nothing that was finished twice."""

import json
import os
import sys
from pathlib import Path

import pytest
from warm_process import run_warm

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def call(*arguments) -> dict:
    script = Path(__file__).with_name("kill_grid.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = run_warm([script, *arguments], environment, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("kind", "lives"), [("trivial", 12), ("network", 5)])
def test_a_killed_grid_goes_on(tmp_path, kind, lives):
    found = call("kill", kind, tmp_path, 7, lives)
    assert found["deaths"] >= 1
    assert found["again"] == []  # no cell was begun that had been finished
    assert found["killed"]["results"] == found["whole"]["results"]
    assert found["killed"]["attempts"] == found["whole"]["attempts"] == len(found["whole"]["results"]) > 0
    assert found["killed"]["states"] == ["done"]


def test_two_runners_on_one_folder_share_the_cells(tmp_path):
    found = call("share", tmp_path, 40, 2)
    assert found["codes"] == [0, 0]
    assert sorted(map(int, found["cells"])) == list(range(1, 41))  # each of them once
    assert len(found["runners"]) == 2
