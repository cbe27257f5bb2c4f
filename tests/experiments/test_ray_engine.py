"""The engine for many machines, on a real cluster of two of which one is killed."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import sohot
from sohot import _ray_cluster as ray_cluster
from sohot.experiments.engines.ray import RayEngine

GOOD, MAX_RETRIES = 20, 1
# A dead machine is noticed within two seconds instead of half a minute.
_FAST_CHECKS = {
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "3",
}


def _drive(what: str, folder: Path) -> dict:
    """Run `ray_driver.py`; its standard output must hold one JSON object and nothing of Ray's."""
    if importlib.util.find_spec("ray") is None:
        assert os.environ.get("CI") != "true", "Ray must be there when tests run in CI"
        pytest.skip("needs Ray: pip install 'sohot[ray]'")
    paths = [str(Path(sohot.__file__).parents[1]), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, **_FAST_CHECKS, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, str(Path(__file__).with_name("ray_driver.py")), what, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict:
    return _drive("grid", tmp_path_factory.mktemp("grid"))


def _begun(seen: dict, method: str, node: str | None = None) -> list[str]:
    lines = (line for line in seen["attempts"] if line["what"] == "begin" and line["method"] == method)
    return [line["key"] for line in lines if node in (None, line["node"])]


def test_a_machine_was_killed_while_it_computed(seen):
    assert seen["killed"]
    ended_there = {line["key"] for line in seen["attempts"] if line["what"] == "end" and line["node"] == seen["second"]}
    lost = set(_begun(seen, "good", node=seen["second"])) - ended_there
    assert lost
    begun = Counter(_begun(seen, "good"))
    assert all(begun[key] == 2 for key in lost)


def test_the_grid_ends_complete_with_nothing_lost_and_nothing_twice(seen):
    keys = [key for key, *_ in seen["outcomes"]]
    assert len(keys) == len(set(keys)) == GOOD + 2
    done = [result["split"] for _, method, result, error, _ in seen["outcomes"] if error is None and method == "good"]
    assert sorted(done) == list(range(GOOD))
    assert sorted(key for key, _ in seen["stored"]) == sorted(keys)
    assert Counter(status for _, status in seen["stored"]) == {"done": GOOD, "failed": 2}


def test_cells_are_taken_only_when_there_is_room(seen):
    assert 2 <= seen["ahead"] <= 2 + 2  # two machines of one CPU, and a queue of two


def test_an_error_of_the_work_is_the_outcome_at_once(seen):
    ((result, error),) = [one[2:4] for one in seen["outcomes"] if one[1] == "raises"]
    assert result is None
    sentence, *where = error.splitlines()
    assert sentence == "this cell cannot be computed"
    assert "in work" in "".join(where)
    assert len(_begun(seen, "raises")) == 1


def test_a_cell_that_kills_its_worker_fails_after_retries_and_stops_no_other(seen):
    ((result, error),) = [one[2:4] for one in seen["outcomes"] if one[1] == "dies"]
    assert result is None
    assert error.startswith(f"Ray gave up after {MAX_RETRIES} retries: ")
    assert seen["lost"] == ["dies"]  # the next call tries it again; the cell that raised stays failed
    # The machine may have been killed between its death and its next attempt, which Ray then counts too.
    assert 1 <= len(_begun(seen, "dies")) <= 1 + MAX_RETRIES


def test_cells_use_the_threads_they_asked_for(seen):
    assert {(one[2]["threads"], one[2]["omp"]) for one in seen["outcomes"] if one[1] == "good"} == {(1, "1")}


def test_a_connection_is_closed_by_whoever_made_it(seen):
    assert seen["closed"]
    assert seen["kept_open"]


def test_a_cell_that_fits_on_no_machine_is_refused(seen):
    assert seen["too_much"] == "no machine of the Ray cluster has 64 CPUs and 0 GPUs"


def test_two_drivers_share_a_grid_and_one_goes_on_when_the_other_is_killed(tmp_path):
    seen = _drive("share", tmp_path)
    assert seen["codes"] == [0, 0]
    assert len(seen["done"]) == GOOD
    assert set(seen["held"]) <= set(seen["done"])
    assert seen["attempts"] == [1] * GOOD  # a cell that is computed twice has two
    assert {key for key, times in Counter(seen["begun"]).items() if times > 1} <= set(seen["held"])
    assert seen["claims"] == []


def test_without_a_cluster_ray_starts_here_and_a_signal_stops_it(tmp_path):
    seen = _drive("here", tmp_path)
    assert seen["result"]["threads"] == (os.cpu_count() or 1)
    assert seen["stopped"]  # the caller's own handler was called, and what it raised came out
    assert 0 < seen["left"] <= GOOD + 2 - 2
    assert seen["closed"]


def test_a_closed_port_is_refused_quickly(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    since = time.monotonic()
    monkeypatch.setattr(ray_cluster, "import_ray", lambda: _Unconnected)
    with (
        pytest.raises(ConnectionError, match=f"^cannot reach a Ray cluster at {address}: "),
        ray_cluster.connection(address),
    ):
        pytest.fail("connected to nothing")
    assert time.monotonic() - since < 10


@pytest.mark.parametrize("address", ["", "auto", "host", "host:", ":6379", "host:port", "host:0", "host:99999"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError, match="must be HOST:PORT"):
        RayEngine(address)


def test_without_ray_the_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'sohot\[ray\]'"):
        next(RayEngine().run(iter([]), dict))


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"device": "tpu"}, r"device must be one of 'auto', 'cpu', 'cuda', 'mps', got 'tpu'; did you mean 'cpu'\?"),
        ({"cpus_per_cell": 0}, "cpus_per_cell must be above 0, got 0"),
        ({"cpus_per_cell": float("nan")}, "cpus_per_cell must be above 0, got nan"),
        ({"gpus_per_cell": -1}, "gpus_per_cell must be 0 or more, got -1"),
        ({"max_retries": -1}, "max_retries must be 0 or more, got -1"),
    ],
)
def test_impossible_numbers_are_refused(bad, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        RayEngine(**bad)


class _Unconnected:
    """Ray before it is connected: these tests must not depend on it being installed."""

    @staticmethod
    def is_initialized() -> bool:
        return False
