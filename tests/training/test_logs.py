import errno
import os
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from sohot.training import CheckpointError
from sohot.training.logs import CSVLog, read_csv_log


def test_lines_are_there_at_once(tmp_path):
    log = CSVLog(tmp_path / "log.csv")
    log.log_metrics({"loss": 0.1 + 0.2, "lr": 1e-9}, step=1)
    assert read_csv_log(tmp_path / "log.csv") == [{"step": 1, "loss": 0.1 + 0.2, "lr": 1e-9}]
    log.finalize("success")


def test_new_columns_may_come_later(tmp_path):
    log = CSVLog(tmp_path / "log.csv")
    log.log_metrics({"loss": 1.0}, step=1)
    log.log_metrics({"means": 2.0}, step=2)
    log.finalize("success")
    assert (tmp_path / "log.csv").read_text() == "step,loss,means\n1,1.0,\n2,,2.0\n"


def test_going_on_drops_what_is_done_again(tmp_path):
    (tmp_path / "log.csv").write_text("step,loss\n1,1.0\n2,2.0\n3,3.0\n4,")
    log = CSVLog(tmp_path / "log.csv", start=2)
    log.log_metrics({"loss": 9.0}, step=3)
    log.finalize("success")
    assert (tmp_path / "log.csv").read_text() == "step,loss\n1,1.0\n2,2.0\n3,9.0\n"


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")  # of tensorboard's own dependencies
def test_tensorboard_is_written_where_it_is_installed(train, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(run_dir=tmp_path, loggers=None, steps=3)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == [1, 2, 3]


@pytest.mark.parametrize("name", ["wandb", "mlflow", "tensorboard"])
def test_a_logger_that_is_not_installed_is_named(train, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=f"loggers: '{name}' is not installed; try: pip install {name}"):
        train(run_dir=tmp_path, loggers=(name,))


def test_tensorboard_needs_a_folder(train):
    with pytest.raises(ValueError, match="needs a run_dir"):
        train(loggers=("tensorboard",))


class _Spy(ModuleType):
    """Stands in for wandb and mlflow, which need an account or a server."""

    def __init__(self, name):
        super().__init__(name)
        self.seen = []

    def _note(self, what):
        def call(*arguments, **options):
            self.seen.append((what, arguments, options))
            finish, log = self._note("finish"), self._note("log")
            return SimpleNamespace(finish=finish, log=log, info=SimpleNamespace(run_id="abc"))

        return call

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self._note(name)


def test_wandb_gets_every_step_and_the_end(train, tmp_path, monkeypatch):
    spy = _Spy("wandb")
    monkeypatch.setitem(sys.modules, "wandb", spy)
    train(run_dir=tmp_path, loggers=("wandb",), steps=2)
    assert [what for what, _, _ in spy.seen] == ["init", "log", "log", "finish"]
    assert spy.seen[2][2] == {"step": 2}
    assert spy.seen[-1][2] == {"exit_code": 0}
    first = spy.seen[0][2]["id"]
    train(run_dir=tmp_path, loggers=("wandb",), steps=2, resume=True)
    assert spy.seen[4][2]["id"] == first


def test_mlflow_gets_every_step_and_goes_on_under_its_number(train, tmp_path, monkeypatch):
    spy = _Spy("mlflow")
    monkeypatch.setitem(sys.modules, "mlflow", spy)
    train(run_dir=tmp_path, loggers=("mlflow",), steps=2)
    assert [what for what, _, _ in spy.seen] == ["set_experiment", "start_run", "log_metrics", "log_metrics", "end_run"]
    train(run_dir=tmp_path, loggers=("mlflow",), steps=2, resume=True)
    assert spy.seen[6][2] == {"run_id": "abc"}


def test_a_run_that_fails_is_told_so(train, monkeypatch):
    spy = _Spy("mlflow")
    monkeypatch.setitem(sys.modules, "mlflow", spy)
    with pytest.raises(ZeroDivisionError):
        train(loggers=("mlflow",), on_step=lambda _: 1 / 0)
    assert spy.seen[-1][:2] == ("end_run", ("FAILED",))


def test_a_log_on_a_full_disk_ends_in_a_sentence(train, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(CSVLog, "log_metrics", full)
    with pytest.raises(CheckpointError, match="logs cannot be written: No space left on device; no checkpoint was"):
        train(run_dir=tmp_path)
    assert torch.is_grad_enabled()
