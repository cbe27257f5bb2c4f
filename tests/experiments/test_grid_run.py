"""The driver: what fails is kept and told, what is done is kept, and nothing is held when it stops."""

import shutil
from dataclasses import replace
from functools import partial

import pytest
from experiment_work import InlineEngine, act, make_cells, result_of, small_grid, write_domains

from sohot.experiments import Store, plan_grid, read_grid, run_grid
from sohot.experiments.engines import Outcome, make_engine
from sohot.experiments.grid_run import GridWatcher, run_cells

ENGINE = InlineEngine()


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as opened:
        opened.plan(make_cells(3))
        yield opened


def failing(count, kind="fail"):
    good, bad = make_cells(count), make_cells(count, act=kind)
    return [bad[0], *good[1:]]


def test_a_failing_cell_does_not_stop_the_others(store):
    cells = failing(3)
    assert run_cells(cells, store, ENGINE, act).computed == 3
    assert [(one.status, one.error) for one in store.records(cells)] == [
        ("failed", "cell 1 fails on purpose"),
        ("done", None),
        ("done", None),
    ]


def test_a_result_that_cannot_be_stored_is_a_failure(store):
    cells = failing(2, "nan")
    run_cells(cells, store, ENGINE, act)
    records = store.records(cells)
    assert [one.status for one in records] == ["failed", "done"]
    assert "its result cannot be stored" in records[0].error


class KillingEngine:
    """An engine whose workers are killed by the system."""

    def run(self, cells, work):  # noqa: ARG002
        for cell in cells:
            yield Outcome(cell, None, "its worker process was killed", 1.0, killed=True)


def test_a_grid_whose_workers_are_killed_fails_and_goes_on_when_called_again(tmp_path):
    plan = plan_grid(small_grid(splits=(1,)), write_domains(tmp_path / "data"), tmp_path / "out", device="cpu")
    killed = run_grid(plan, KillingEngine())
    assert [(cell.key, error) for cell, error in killed.failed] == [
        (cell.key, "its worker process was killed") for cell in plan.cells
    ]
    again = run_grid(plan, ENGINE)
    assert (again.computed, again.failed) == (2, [])


def test_a_stopped_driver_holds_nothing(tmp_path):
    def stop(cell):
        raise KeyboardInterrupt(cell.label())

    cell = make_cells(1)[0]
    with Store(tmp_path) as store:
        store.plan([cell])
        with pytest.raises(KeyboardInterrupt):
            run_cells([cell], store, ENGINE, stop)
    with Store(tmp_path) as store:
        assert store.claim(cell)
        assert store.records() == []


def test_cells_of_another_runner_are_waited_for(tmp_path, store, monkeypatch):
    cells = make_cells(2)
    other = Store(tmp_path)
    assert other.claim(cells[0])
    waited = []

    class Watcher(GridWatcher):
        def waiting(self, count, hosts):
            waited.append((count, hosts))
            other.finish(cells[0], result_of(steps=77))

    monkeypatch.setattr("sohot.experiments.grid_run._POLL_SECONDS", 0.0)
    assert run_cells(cells, store, ENGINE, act, watcher=Watcher()).computed == 1
    assert waited == [(1, [])]
    assert {one.result.steps for one in store.records()} == {77, 2}


def test_a_grid_grows_and_keeps_what_is_done(tmp_path):
    root = write_domains(tmp_path / "data")
    plan = partial(plan_grid, root=root, out=tmp_path / "out", device="cpu", workers=0)
    first = run_grid(plan(small_grid(splits=(1,))), ENGINE)
    assert (first.total, first.computed, first.kept, first.failed) == (2, 2, 0, [])
    grown = run_grid(plan(small_grid(splits=(1, 2))), ENGINE)
    assert (grown.total, grown.computed, grown.kept) == (4, 2, 2)
    other = run_grid(plan(small_grid(splits=(1,)).changed({"steps": 1})), ENGINE)
    assert (other.total, other.computed, len(other.records)) == (2, 2, 2)  # records of another grid stay out
    assert read_grid(tmp_path / "out" / "grid.toml").settings["steps"] == 1


def test_a_different_grid_is_refused_while_the_first_is_computed(tmp_path):
    root = write_domains(tmp_path / "data")
    plan = partial(plan_grid, root=root, out=tmp_path / "out", device="cpu", workers=0)
    other = plan(small_grid(splits=(2,), methods=("t",)))

    class Watcher(GridWatcher):
        def started(self, cell):  # noqa: ARG002
            with pytest.raises(BlockingIOError, match=r"out is in use: process .* is computing a different grid"):
                run_grid(other, ENGINE)

    first = run_grid(plan(small_grid(splits=(1,))), ENGINE, watcher=Watcher())
    assert (first.computed, len(first.records)) == (2, 2)
    assert read_grid(tmp_path / "out" / "grid.toml").splits == (1,)
    assert run_grid(other, ENGINE).computed == 1  # now it is free


def test_a_grid_whose_cells_fail_says_which(tmp_path):
    root = write_domains(tmp_path / "data")
    grid = small_grid(splits=(1,), methods=("s+t",)).changed({"lr": 1e30})
    run = run_grid(plan_grid(grid, root, tmp_path / "out", device="cpu", workers=0), ENGINE)
    ((cell, error),) = run.failed
    assert cell.method == "s+t"
    assert "training diverged" in error


def test_what_would_make_all_cells_fail_ends_before_the_first(tmp_path):
    root = write_domains(tmp_path / "data")
    plan = partial(plan_grid, root=root, out=tmp_path / "out", device="cpu", workers=0)
    all_train = plan(small_grid(settings={"target_shots": 6}))
    with pytest.raises(ValueError, match="no images are left to test on"):
        run_grid(all_train, ENGINE)
    shutil.rmtree(root / "sketches")
    shutil.copytree(root / "photos", root / "sketches")  # then every source image is a copy of a target image
    with pytest.raises(ValueError, match="no source images are left to train on"):
        run_grid(plan(small_grid(shifts=("photos-sketches",), splits=(1,))), ENGINE)
    with Store(tmp_path / "out") as store:
        assert store.records() == []
        assert store.claim(replace(make_cells(1)[0], frozen=True))


def test_engines_go_by_name():
    assert make_engine("local", workers=3, device="cpu").workers == 3
    with pytest.raises(ValueError, match="engine must be one of"):
        make_engine("slurm")
    with pytest.raises(ValueError, match="--address needs --engine ray"):
        make_engine("local", address="auto")
