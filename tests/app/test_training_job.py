"""A training in its own process is watched through its files, fails in a sentence, and can be stopped."""

import time
from pathlib import Path

import pytest

from sohot.app import training_job
from sohot.app.training_job import TrainingJob


def wait_for(job: TrainingJob) -> None:
    for _ in range(600):
        if not job.running:
            return
        time.sleep(0.1)
    pytest.fail("it does not end")


def test_a_wrong_request_fails_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text("steps = 0")
    job = TrainingJob(tmp_path / "wrong.toml", tmp_path / "new", tmp_path / "log")
    wait_for(job)
    found = job.as_json()
    assert found["state"] == "failed"
    assert found["said"].startswith("--steps must be")
    assert found["curves"] == {}
    assert found["steps"] is None


def test_one_that_is_stopped_ends_and_says_so(tmp_path: Path) -> None:
    job = TrainingJob(tmp_path / "nothing.toml", tmp_path / "new", tmp_path / "log")
    assert job.state() == "running"
    job.stop()
    job.stop()
    assert job.state() == "stopped"


def test_curves_are_thinned_and_hold_numbers_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = object.__new__(TrainingJob)
    job.out = tmp_path
    lines = [f"{step},{100 - step},{'nan' if step == 3 else 0.5}" for step in range(1, 101)]
    (tmp_path / "log.csv").write_text("\n".join(["step,loss,accuracy_target", *lines, "101,cut o"]))
    whole = job.curves()
    assert whole["loss"] == [[step, 100 - step] for step in range(1, 101)]
    assert len(whole["accuracy_target"]) == 99
    monkeypatch.setattr(training_job, "MOST_POINTS", 7)
    thin = job.curves()["loss"]
    assert len(thin) <= 8
    assert thin[-1] == whole["loss"][-1]


def test_what_it_says_is_not_written_through_a_planted_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "log").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"):
        TrainingJob(tmp_path / "nothing.toml", tmp_path / "new", tmp_path / "log")
    assert (tmp_path / "precious").read_text() == "mine"
