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
    assert found["killed"] == found["whole"]
    assert set(found["killed"]["attempts"]) == {1}
    assert found["killed"]["claims"] == []


def test_two_runners_on_one_folder_share_the_cells(tmp_path):
    found = call("share", tmp_path, 7, 40, 2, 0)
    assert found["codes"] == [0, 0]
    assert found["begun"] == {str(number): 1 for number in range(1, 41)}
    assert len(found["runners"]) == 2


def test_runners_that_are_killed_lose_no_cell_and_repeat_none(tmp_path):
    found = call("share", tmp_path, 7, 60, 2, 8)
    assert found["deaths"] >= 1
    assert set(found["codes"]) == {0}
    assert found["attempts"] == [1] * 60  # a cell that is computed twice has two
    assert sum(found["begun"].values()) <= 60 + found["deaths"]
    assert found["claims"] == []
