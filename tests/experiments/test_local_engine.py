"""The local engine: real processes, one cell each at a time, that die alone and with their driver."""

import os
import signal
import sys
import time
import warnings

import pytest
from experiment_work import act, acting, make_cells, notes
from warm_process import WarmProcess

from sohot._process import _began
from sohot.experiments.engines.local import LocalEngine, WorkersCannotStart

WORKERS = 2


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Outcomes of a row of cells of all kinds, and how many cells were taken before each outcome."""
    once = f"die once:{tmp_path_factory.mktemp('cells') / 'died'}"
    kinds = ["look", "fail", "look", once, "look", "die", "look", "", "crash"]
    cells = [cell for number, kind in enumerate(kinds) for cell in make_cells(number + 1, act=kind)[-1:]]
    taken, before = [], []

    def offer():
        for cell in cells:
            taken.append(cell)
            yield cell

    engine = LocalEngine(WORKERS, "cpu")
    outcomes, variables = {}, dict(os.environ)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for outcome in engine.run(offer(), act):
            before.append((len(taken), len(outcomes)))
            outcomes[outcome.cell.split] = outcome
    assert all("a worker process died meanwhile" in str(one.message) for one in told)
    assert 3 <= len(told) <= 3 + 2  # those that die, and the cell that the other worker had at that time
    assert dict(os.environ) == variables  # what workers find in theirs is not left in ours
    return kinds, outcomes, before


def test_every_cell_has_one_outcome(seen):
    kinds, outcomes, _ = seen
    assert sorted(outcomes) == list(range(1, len(kinds) + 1))
    well = [number for number, outcome in outcomes.items() if outcome.error is None]
    assert sorted(well) == [
        number for number, kind in enumerate(kinds, start=1) if kind in ("look", "") or "once" in kind
    ]


def test_a_failing_cell_and_a_dead_worker_say_why(seen):
    kinds, outcomes, _ = seen
    assert outcomes[kinds.index("fail") + 1].error == "cell 2 fails on purpose"
    died = {kinds.index(kind) + 1 for kind in ("die", "crash")}
    assert {number for number, outcome in outcomes.items() if outcome.killed} == died
    assert all("a worker process died meanwhile" in outcomes[number].error for number in died)


def test_cells_whose_workers_died_are_tried_again_after_the_others(seen):
    kinds, outcomes, _ = seen
    last = [kinds[number - 1].partition(":")[0] for number in outcomes][-5:]
    assert {"die", "die once", "crash"} <= {*last}


def test_cells_are_taken_when_a_worker_is_free_for_them(seen):
    _, _, before = seen
    interrupted = 5  # at most: they were taken, and have no outcome until the end
    assert all(taken <= given + 2 * WORKERS + interrupted for taken, given in before)
    assert before[0][0] <= 2 * WORKERS
    assert before[0][0] < len(before)


def test_processes_are_few_and_share_the_threads(seen):
    _, outcomes, _ = seen
    looks = [outcome.result for outcome in outcomes.values() if isinstance(outcome.result, dict)]
    assert len({look["pid"] for look in looks}) <= WORKERS + 1  # one of them died and was replaced
    assert os.getpid() not in {look["pid"] for look in looks}
    threads = LocalEngine(WORKERS, "cpu").threads
    assert {(look["omp"], look["threads"]) for look in looks} == {(str(threads), threads)}


DRIVER = """
import sys
from pathlib import Path
from experiment_work import acting, make_cells
from sohot.experiments.engines.local import LocalEngine

if __name__ == "__main__":
    for outcome in LocalEngine(1, "cpu").run(iter(make_cells(1, act="sleep:100")), acting(Path(sys.argv[1]))):
        print(outcome)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_workers_die_with_their_driver(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    driver = WarmProcess([tmp_path / "driver.py", tmp_path], environment)
    try:
        wait_until(lambda: notes(tmp_path))
        worker = int(notes(tmp_path)[0].split()[1])
        assert _began(worker)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        wait_until(lambda: _began(worker) is None)
        assert _began(worker) is None
    finally:
        driver.kill()
        driver.wait()


def test_each_worker_sees_a_gpu_of_its_own(tmp_path):
    engine = LocalEngine(WORKERS, "cpu")
    engine.gpus = ["3", "7"]
    looks = [outcome.result for outcome in engine.run(iter(make_cells(2, act="look")), acting(tmp_path))]
    assert {look["gpu"] for look in looks} == {"3", "7"}


def test_a_cell_without_memory_on_the_gpu_is_tried_again_alone(tmp_path):
    cells = [make_cells(number, act=kind)[-1] for number, kind in ((1, f"full once:{tmp_path / 'full'}"), (2, ""))]
    with pytest.warns(UserWarning, match="no memory; it is tried again at the end"):
        outcomes = list(LocalEngine(WORKERS, "cpu").run(iter(cells), act))
    assert [outcome.error for outcome in outcomes] == [None, None]


def test_a_worker_that_cannot_start_is_an_error_and_not_an_endless_loop(capfd):
    with pytest.raises(WorkersCannotStart, match="ended before they began"):
        list(LocalEngine(1, "cpu").run(iter(make_cells(1)), Unreadable()))
    assert "not on this side" in capfd.readouterr().err


class Unreadable:
    """Work that can be pickled and not be read back."""

    def __call__(self, cell):
        raise AssertionError(cell)

    def __reduce__(self):
        return (exec, ("raise ImportError('not on this side')",))


def test_a_number_of_workers_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="workers must be an integer of at least 1, got 0"):
        LocalEngine(0)


def wait_until(condition, seconds=60):
    for _ in range(seconds * 50):
        if condition():
            return
        time.sleep(0.02)
