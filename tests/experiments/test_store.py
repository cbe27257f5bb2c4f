"""The store: one living process at a time has a cell, what is stored stays, and nothing is lost with a process."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from experiment_work import make_cells, result_of

from sohot.experiments import Store
from sohot.experiments.result import ChosenSettings

CELLS = make_cells(3)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as opened:
        opened.plan(CELLS)
        yield opened


def change_claim(store, cell, **changes):
    """Make a claim look as if another process had made it."""
    file = store.folder / f"{cell.key}.claim"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def of_another_process(folder, cell, **changes):
    """Claim a cell for another process."""
    other = Store(folder)
    assert other.claim(cell)
    change_claim(other, cell, **changes)
    return other


def later(folder, **options):
    """Open the store as the next command does."""
    store = Store(folder)
    store.plan(CELLS, **options)
    return store


def test_a_result_comes_back_as_it_was_given(store):
    cell = CELLS[0]
    result = result_of(zeta=None, notes=["ζ"], chosen=ChosenSettings({"orders": [2, 3]}, 0.5, 4), curve={"step": [1]})
    assert store.claim(cell)
    store.finish(cell, result)
    (record,) = store.records()
    assert (record.key, record.status, record.result, record.error) == (cell.key, "done", result, None)
    assert record.cell == cell
    assert record.started <= record.finished
    assert set(record.versions) == {"sohot", "torch", "python"}
    assert record.host


def test_a_claim_holds_against_a_living_process_until_it_is_released(store, tmp_path):
    one, two, _ = CELLS
    assert store.claim(one)
    with Store(tmp_path) as other:
        assert not other.claim(one)
        assert list(other.claimed_by_others()) == [one.key]
        assert other.claim(two)
    assert store.claim(two)
    store.release(one)
    assert Store(tmp_path).claim(one)


@pytest.mark.usefixtures("store")
def test_only_one_of_many_gets_a_cell(tmp_path):
    of_another_process(tmp_path, CELLS[0], pid=2**22 + 1)
    claims, together = [], threading.Barrier(8)

    def claim():
        mine = Store(tmp_path)
        together.wait()
        claims.extend(cell.split for cell in CELLS if mine.claim(cell))

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claims) == [1, 2, 3]  # also the one whose process is dead


KILLED = """
import os, sys
from pathlib import Path
from sohot.experiments import Store
from experiment_work import make_cells
print(Store(Path(sys.argv[1])).claim(make_cells(1)[0]), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_the_claim_of_a_dead_process_is_taken_over_at_once(store, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "True\n"), done.stderr
    assert store.claimed_by_others() == {}
    assert store.claim(CELLS[0])
    assert store.records() == []


@pytest.mark.skipif(sys.platform != "linux", reason="the beginning of a process is read from /proc")
def test_a_process_that_got_the_number_of_a_dead_one_is_not_taken_for_it(store, tmp_path):
    of_another_process(tmp_path, CELLS[0], began="an hour before")
    assert store.claim(CELLS[0])


def test_nothing_is_released_that_is_another_process_s(store):
    assert store.claim(CELLS[0])
    change_claim(store, CELLS[0], host="elsewhere")  # it was told that we are dead
    store.release()
    assert [holder.host for holder in store.claimed_by_others().values()] == ["elsewhere"]


def test_the_claim_of_another_machine_holds_until_a_retry(store, tmp_path):
    one, two, _ = CELLS
    of_another_process(tmp_path, one, host="elsewhere")
    assert not store.claim(one)
    assert [holder.host for holder in store.claimed_by_others().values()] == ["elsewhere"]
    with Store(tmp_path) as here:
        assert here.claim(two)
        again = later(tmp_path, retry=True)
        assert again.claim(one)
        assert not again.claim(two)  # its process is on this machine, and alive


@pytest.mark.parametrize("content", ["", "{", "[]", '{"host": 1}', "\0" * 90])
def test_a_claim_that_was_never_written_is_nobodys(store, content):
    (store.folder / f"{CELLS[0].key}.claim").write_text(content)
    assert store.claim(CELLS[0])


def test_a_failed_cell_is_tried_again_once_by_a_command_that_retries(store, tmp_path):
    cell = CELLS[0]
    store.claim(cell)
    store.fail(cell, "first")
    assert not store.claim(cell)
    assert not later(tmp_path).claim(cell)
    one, two = later(tmp_path, retry=True), later(tmp_path, retry=True)
    assert one.settled(CELLS) == {}
    assert one.claim(cell)
    one.fail(cell, "second")
    assert not one.claim(cell)
    assert not two.claim(cell)  # it began before: this retry was the other's
    assert two.settled(CELLS) == {cell.key: "failed"}
    assert [record.error for record in two.records()] == ["second"]


def test_failed_attempts_are_kept_and_the_latest_counts(store, tmp_path):
    cell = CELLS[0]
    store.claim(cell)
    store.fail(cell, "it was not to be")
    again = later(tmp_path, retry=True)
    assert again.claim(cell)
    again.finish(cell, result_of())
    assert not later(tmp_path, retry=True).claim(cell)
    assert [record.status for record in again.records()] == ["done"]
    stored = json.loads((store.folder / f"{cell.key}.json").read_text())["attempts"]
    assert [one["error"] for one in stored] == ["it was not to be", None]


def test_a_cell_that_another_process_finished_is_not_claimed(store, tmp_path):
    with Store(tmp_path) as other:
        other.claim(CELLS[0])
        other.finish(CELLS[0], result_of())
    assert not store.claim(CELLS[0])
    assert store.settled(CELLS) == {CELLS[0].key: "done"}
    assert list(store.folder.glob("*.claim")) == []


def test_records_are_those_of_the_grid_planned_last(store, tmp_path):
    for cell in CELLS[:2]:
        store.claim(cell)
        store.finish(cell, result_of())
    store.plan(CELLS[1:])
    assert [record.key for record in Store(tmp_path).records()] == [CELLS[1].key]
    assert [record.key for record in store.records(CELLS)] == [cell.key for cell in CELLS[:2]]


@pytest.mark.usefixtures("store")
def test_a_different_grid_of_another_machine_ends_with_a_retry(tmp_path):
    of_another_process(tmp_path, CELLS[0], host="elsewhere")
    with pytest.raises(BlockingIOError, match=r"on elsewhere is computing .* if it is dead, add --retry"):
        Store(tmp_path).plan(CELLS[1:])
    Store(tmp_path).plan(CELLS[1:], retry=True)


def test_what_json_cannot_hold_is_refused_and_leaves_nothing(store):
    store.claim(CELLS[0])
    with pytest.raises(ValueError, match="JSON"):
        store.finish(CELLS[0], result_of(micro=float("nan")))
    assert store.records() == []
    assert list(store.folder.glob("*.json")) == [store.folder / "plan.json"]


def test_a_look_at_a_folder_writes_nothing(tmp_path):
    with Store(tmp_path / "missing") as store:
        assert store.records() == []
        assert store.records(CELLS) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_full_disk_is_told_in_a_sentence_and_loses_nothing(store):
    import resource

    one, two, _ = CELLS
    store.claim(one)
    store.finish(one, result_of(steps=1))
    store.claim(two)
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        with pytest.raises(OSError, match=f"{two.key}.json"):
            store.finish(two, result_of(notes=["x" * 100_000]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [record.result for record in store.records()] == [result_of(steps=1)]
    store.finish(two, result_of(steps=2))
    assert len(store.records()) == 2
    assert not [path for path in store.folder.iterdir() if path.suffix == ".tmp"]
