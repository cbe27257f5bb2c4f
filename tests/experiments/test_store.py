"""The store: attempts are added and never changed, and a cell is claimed by one living process at a time."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from experiment_work import make_cells, result_of

from sohot.experiments import database
from sohot.experiments import runners as module
from sohot.experiments.database import StoreError
from sohot.experiments.result import ChosenSettings
from sohot.experiments.store import Store


@pytest.fixture
def file(tmp_path):
    return tmp_path / "results.sqlite"


@pytest.fixture
def store(file):
    with Store(file) as opened:
        yield opened


def someone_else(file, **changes):
    """A store as another process would open it."""
    other = Store(file)
    other.runners.me = replace(other.runners.me, **changes)
    return other


def test_a_result_comes_back_as_it_was_given(store):
    cell = make_cells(1)[0]
    result = result_of(zeta=None, notes=["ζ"], chosen=ChosenSettings({"orders": [2, 3]}, 0.5, 4), curve={"step": [1]})
    assert store.claim(cell)
    store.finish(cell, result)
    (record,) = store.records()
    assert (record.key, record.status, record.result, record.error) == (cell.key, "done", result, None)
    assert record.cell == cell
    assert record.started <= record.finished
    assert set(record.versions) == {"sohot", "torch", "python"}
    assert record.host


def test_attempts_are_added_and_the_latest_counts(store, file):
    cell = make_cells(1)[0]
    store.claim(cell)
    store.fail(cell, "it was not to be")
    assert not store.claim(cell)
    with Store(file) as later:
        assert later.claim(cell, retry=True)
        later.finish(cell, result_of())
        assert not later.claim(cell, retry=True)
        assert [one.status for one in later.attempts()] == ["failed", "done"]
        assert [one.status for one in later.records()] == ["done"]


def test_a_cell_that_fails_again_is_not_tried_for_ever(store, file):
    cell = make_cells(1)[0]
    store.claim(cell)
    store.fail(cell, "first")
    with Store(file) as one, Store(file) as two:
        assert one.claim(cell, retry=True)
        one.fail(cell, "second")
        assert not one.claim(cell, retry=True)
        assert not two.claim(cell, retry=True)  # it was opened before: this retry was somebody else's
        assert two.settled(retry=True) == {cell.key: "failed"}


def test_a_claim_holds_against_living_runners_and_is_given_back_on_close(store, file):
    one, two = make_cells(2)
    assert store.claim(one)
    with Store(file) as other:
        assert not other.claim(one)
        assert other.claimed_by_others() == {one.key}
        assert other.claim(two)
    assert store.claim(two)


def test_the_claim_of_a_dead_process_is_taken_over_at_once(file):
    cell = make_cells(1)[0]
    code = (
        "import os, sys; from pathlib import Path; from sohot.experiments.store import Store\n"
        "from experiment_work import make_cells, result_of\n"
        "print(Store(Path(sys.argv[1])).claim(make_cells(1)[0]), flush=True); os.kill(os.getpid(), 9)"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "True\n"), done.stderr
    with Store(file) as store:
        assert store.claimed_by_others() == set()
        assert store.claim(cell)


def test_a_process_that_got_the_number_of_a_dead_one_is_not_taken_for_it(file):
    cell = make_cells(1)[0]
    before, now = someone_else(file, began="an hour before"), Store(file)
    assert before.claim(cell)
    assert now.claim(cell)  # the same number, begun at another time
    before.close()
    with Store(file) as third:
        assert not third.claim(cell)  # closing gave back nothing that was another's
    now.close()


def test_a_silent_runner_of_another_machine_is_waited_for_then_replaced(store, file, monkeypatch):
    cell = make_cells(1)[0]
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    away = someone_else(file, host="elsewhere", place="?")
    assert away.claim(cell)
    assert not store.claim(cell)
    clock[0] += module.TIMEOUT_SECONDS - 1
    assert not store.claim(cell)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE runners SET beat = beat + 1")
    connection.close()
    clock[0] += 2
    assert not store.claim(cell)  # it was heard of meanwhile
    clock[0] += module.TIMEOUT_SECONDS + 1
    assert store.claim(cell)
    away.close()


def test_hearts_beat(file, monkeypatch):
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.01)
    with Store(file) as store:
        store.claim(make_cells(1)[0])
        connection = sqlite3.connect(file)
        for _ in range(500):
            (beat,) = connection.execute("SELECT beat FROM runners").fetchone()
            if beat > 1:
                break
            store.runners._stop.wait(0.01)
        connection.close()
        assert beat > 1


def test_records_are_those_of_the_grid_planned_last(store):
    old, new = make_cells(2)
    for cell in (old, new):
        store.claim(cell)
        store.finish(cell, result_of())
    assert len(store.records()) == 2
    store.plan([new])
    assert [record.key for record in store.records()] == [new.key]
    assert len(store.records(every=True)) == 2


def test_one_plain_file_is_left(store, file):
    cell = make_cells(1)[0]
    store.claim(cell)
    store.finish(cell, result_of())
    store.close()
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert file.read_bytes()[18] == 1  # as SQLite's format says: no write-ahead log


def test_a_folder_shared_by_machines_does_without_the_log(file, monkeypatch):
    monkeypatch.setattr(database, "is_shared", lambda folder: folder == file.parent)
    with Store(file) as store:
        assert store.claim(make_cells(1)[0])
        assert store._database.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
        assert store._database.one("PRAGMA synchronous") == 3


def test_what_json_cannot_hold_is_refused_and_leaves_nothing(store):
    cell = make_cells(1)[0]
    store.claim(cell)
    with pytest.raises(ValueError, match="JSON"):
        store.finish(cell, result_of(micro=float("nan")))
    assert store.records() == []


def test_a_different_grid_waits_until_the_first_has_ended(store, file):
    first, second = make_cells(2)
    store.plan([first])
    with Store(file) as same:
        same.plan([first])  # the same grid is shared
    with Store(file) as other:
        with pytest.raises(BlockingIOError, match=rf"process {os.getpid()} on .* is computing a different grid"):
            other.plan([second])
        store.close()
        other.plan([second])
        assert store.file == other.file


def test_a_different_grid_of_another_machine_is_looked_for(file, monkeypatch):
    first, second = make_cells(2)
    clock = [100.0]
    away, beating = someone_else(file, host="elsewhere", place="?"), [True]
    away.plan([first])

    def sleep(seconds):
        clock[0] += seconds
        if beating[0] and clock[0] > 110:
            with closing(sqlite3.connect(file)) as connection, connection:
                connection.execute("UPDATE runners SET beat = beat + 1")

    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(module.time, "sleep", sleep)
    with (
        Store(file) as store,
        pytest.warns(UserWarning, match="on elsewhere was computing another grid here"),
        pytest.raises(BlockingIOError, match="on elsewhere is computing a different grid"),
    ):
        store.plan([second])
    beating[0], began = False, clock[0]
    with Store(file) as store, pytest.warns(UserWarning, match="looking if it still is"):
        store.plan([second])
    assert clock[0] - began == pytest.approx(module.TIMEOUT_SECONDS)
    with Store(file) as store:
        store.plan([first])  # it is not waited for again
    assert clock[0] - began == pytest.approx(module.TIMEOUT_SECONDS)
    away.close()


def test_another_file_and_another_version_are_refused(tmp_path, file):
    (tmp_path / "text").write_text("no database at all, but a long enough text to be looked at " * 20)
    with pytest.raises(ValueError, match="is not a results file"):
        Store(tmp_path / "text")
    Store(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ValueError, match="another version of sohot"):
        Store(file)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path / "missing" / "results.sqlite")


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_full_disk_is_told_in_a_sentence_and_loses_nothing(store):
    import resource

    one, two = make_cells(2)
    store.claim(one)
    store.finish(one, result_of(steps=1))
    store.claim(two)
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(store.file).st_size, before[1]))
    try:
        with pytest.raises(StoreError, match=r"the results in .* cannot be written"):
            store.finish(two, result_of(notes=["x" * 100_000]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [record.result for record in store.records()] == [result_of(steps=1)]
    store.finish(two, result_of(steps=2))
    assert len(store.records()) == 2


def test_reasons_are_sentences(tmp_path):
    full = database.reason(sqlite3.OperationalError("database or disk is full"), tmp_path / "a")
    read = database.reason(sqlite3.OperationalError("attempt to write a readonly database"), tmp_path / "a")
    assert "the disk is full" in full
    assert str(tmp_path) in read
