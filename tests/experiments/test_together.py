"""Several cells in one process of the local engine: how many, and what becomes of them if it fails or dies."""

import threading
from multiprocessing import Pipe

import pytest
import torch
from experiment_work import make_cells, result_of

from sohot.experiments.engines import Ended, local
from sohot.experiments.engines.local import LocalEngine, _Worker
from sohot.experiments.engines.worker import READY, Message, _compute, _message


class Dies(BaseException):
    """Ends a worker without a word, as a kill does."""


class Work:
    """Does what the cells' settings say; notes which cells it was given together."""

    def __init__(self):
        self.given = []

    def __call__(self, cell):
        self.given.append([cell.split])
        return self.act(cell, alone=True)

    def together(self, cells):
        self.given.append([cell.split for cell in cells])
        for cell in cells:
            try:
                yield Ended(cell, self.act(cell, alone=False), None, 0.0)
            except Exception as error:
                yield Ended(cell, None, error, 0.0)

    def act(self, cell, *, alone):
        kind = cell.settings.get("act", "")
        if kind == "fail":
            raise ValueError("on purpose")
        if kind == "full" or (kind == "full in company" and not alone):
            raise torch.OutOfMemoryError("no memory")
        if kind == "die" or (kind == "die in company" and not alone):
            raise Dies
        return result_of(steps=cell.split)


class Process:
    """A thread that behaves as a worker process does."""

    def __init__(self, pipe, work, code):
        self.pipe, self.work, self.code, self.exitcode = pipe, work, code, None
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        self.pipe.send(Message(READY))
        try:
            while True:
                for ended in _compute(self.work, self.pipe.recv()):
                    self.pipe.send(_message(ended))
        except EOFError:
            self.exitcode = 0
        except Dies:
            self.exitcode = self.code
        self.pipe.close()

    def is_alive(self):
        return self.thread.is_alive()

    def join(self):
        self.thread.join()

    def kill(self):
        pass

    def close(self):
        pass


@pytest.fixture
def run(monkeypatch):
    """Run cells of given kinds in an engine with a GPU and threads for processes; return the work and the outcomes."""

    def run(kinds, workers=1, code=-9, gpus=("0",)):
        work = Work()

        def start(_engine, _slot, _task):
            ours, theirs = Pipe()
            return _Worker(Process(theirs, work, code), ours)

        monkeypatch.setattr(LocalEngine, "_start", start)
        monkeypatch.setattr(local.pickle, "dumps", lambda _: b"")
        engine = LocalEngine(workers, "cpu")
        engine.gpus = list(gpus)
        cells = [make_cells(number, act=kind)[-1] for number, kind in enumerate(kinds, start=1)]
        return work, {outcome.cell.split: outcome for outcome in engine.run(iter(cells), work)}

    return run


def test_a_process_takes_twice_as_many_cells_each_time(run):
    work, outcomes = run([""] * 20)
    assert [len(some) for some in work.given] == [1, 2, 4, 8, 5]
    assert sorted(outcomes) == list(range(1, 21))
    assert [outcomes[number].result.steps for number in (1, 20)] == [1, 20]


def test_a_processor_takes_one_cell_at_a_time(run):
    work, _ = run([""] * 4, gpus=())
    assert work.given == [[1], [2], [3], [4]]


def test_a_cell_that_fails_fails_alone(run):
    _, outcomes = run(["", "fail", "", ""])
    assert [outcomes[number].error for number in (1, 2, 3, 4)] == [None, "on purpose", None, None]


@pytest.mark.parametrize("code", [-9, 1])
def test_cells_whose_process_dies_are_tried_again_alone(run, code):
    with pytest.warns(UserWarning, match="tried again alone at the end"):
        work, outcomes = run(["", "", "die in company", "", "", "", ""], code=code)
    assert all(outcome.error is None for outcome in outcomes.values())
    assert work.given == [[1], [2, 3], [4], [5, 6], [7], [3]]  # another process begins with one again


def test_a_crash_is_the_fault_of_a_cell_that_was_alone(run):
    with pytest.warns(UserWarning, match="tried again"):
        _, outcomes = run(["", "die", ""], code=3)
    assert [outcomes[number].error is None for number in (1, 2, 3)] == [True, False, True]
    assert "exit code 3" in outcomes[2].error
    assert not outcomes[2].killed


def test_a_cell_without_memory_is_tried_again_alone_with_fewer_processes(run):
    with pytest.warns(UserWarning, match=r"no memory: 1 worker goes on, and the cell is tried again alone"):
        work, outcomes = run(["", "", "", "full in company", "", ""], workers=2)
    assert all(outcome.error is None for outcome in outcomes.values())
    assert work.given[-1] == [4]


def test_a_cell_that_never_has_memory_fails(run):
    with pytest.warns(UserWarning, match="no memory"):
        _, outcomes = run(["full", ""])
    assert outcomes[1].error == "no memory"
    assert outcomes[2].error is None
