import errno
import os
import sys

import pytest
import torch

from sohot.training import CheckpointError
from sohot.training.logs import CSVLog


def test_new_columns_may_come_later(tmp_path):
    log = CSVLog(tmp_path / "log.csv")
    log.log_metrics({"loss": 1.0}, step=1)
    log.log_metrics({"means": 2.0}, step=2)
    log.finalize("success")
    assert (tmp_path / "log.csv").read_text() == "step,loss,means\n1,1.0,\n2,,2.0\n"


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")  # of tensorboard's own dependencies
def test_tensorboard_is_written_where_it_is_installed(train, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(run_dir=tmp_path, loggers=None, steps=3)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == [1, 2, 3]


def test_tensorboard_that_is_not_installed_is_named(train, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ValueError, match="loggers: 'tensorboard' is not installed; try: pip install tensorboard"):
        train(run_dir=tmp_path, loggers="tensorboard")


def test_tensorboard_needs_a_folder(train):
    with pytest.raises(ValueError, match="needs a run_dir"):
        train(loggers="tensorboard")


def test_a_log_on_a_full_disk_ends_in_a_sentence(train, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(CSVLog, "log_metrics", full)
    with pytest.raises(CheckpointError, match="logs cannot be written: No space left on device; no checkpoint was"):
        train(run_dir=tmp_path)
    assert torch.is_grad_enabled()
