"""`sohot experiment` as a user calls it; tables, figures and the report have tests of their own."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from experiment_work import InlineEngine, small_grid, write_domains
from warm_process import WarmProcess

from sohot.experiments import Store, engines
from sohot.experiments.grid import write_grid
from sohot.methods import OTHER_NAMES


@pytest.fixture
def mine(tmp_path):
    """The options that name a small grid of one's own, its images and its folder."""
    write_grid(small_grid(), tmp_path / "mine.toml")
    write_domains(tmp_path / "data")
    return "experiment", tmp_path / "mine.toml", "--data", tmp_path / "data", "--out", tmp_path / "out"


@pytest.fixture
def quick(monkeypatch):
    """No processes."""
    made = []

    def make(name, **options):
        made.append((name, options))
        return InlineEngine()

    monkeypatch.setattr(engines, "make_engine", make)
    return made


@pytest.mark.usefixtures("quick")
def test_a_grid_runs_and_is_kept(sohot, mine, tmp_path):
    first = sohot(*mine)
    assert first.code == 0
    assert "so+zeta" in first.out
    assert "[4/4]" in first.err
    assert "4 cells, 4 computed now, 0 kept" in first.last
    again = sohot(*mine, "--json", "--quiet")
    assert again.code == 0
    assert again.json["cells"] == {"total": 4, "computed": 0, "kept": 4, "failed": 0}
    assert [row["method"] for row in again.json["table"]["rows"]] == ["s+t", "so+zeta"]
    assert str(tmp_path / "out" / "table.txt") in again.json["files"]


@pytest.mark.parametrize("options", [(), ("--select", "cv")], ids=["fixed", "selected"])
def test_other_methods_run_on_frozen_features(sohot, mine, options):
    named = ("--methods", ",".join(["s+t", *OTHER_NAMES]), "--splits", "1-1", "--set", "steps=5", "--device", "cpu")
    done = sohot(*mine, "--frozen", *named, *options, "--json")
    assert done.code == 0
    assert done.json["cells"] == {"total": 9, "computed": 9, "kept": 0, "failed": 0}
    assert [row["method"] for row in done.json["table"]["rows"]] == ["s+t", *OTHER_NAMES]


def test_the_baseline_can_be_chosen(sohot, mine):
    head = ("--methods", "s+t,variance", "--splits", "1-1", "--set", "steps=5", "--device", "cpu", "--frozen")
    done = sohot(*mine, *head, "--baseline", "variance", "--json")
    assert [one["method"] for one in done.json["table"]["differences"]] == ["s+t"]
    assert sohot(*mine, *head, "--baseline", "nothing").code == 2


def test_parts_of_a_grid_are_chosen_on_the_command_line(sohot, mine, quick):
    options = ("--splits", "2-2", "--methods", "so", "--set", "steps=1", "--set", "sigma1=0.5", "--shifts")
    done = sohot(*mine, *options, "sketches-photos", "--engine", "local", "--workers", 3, "--threads", 2, "--json")
    assert done.code == 0
    assert done.json["cells"]["total"] == 1
    assert quick == [("local", {"workers": 3, "device": "auto", "address": None, "threads": 2})]


@pytest.mark.usefixtures("quick")
def test_failed_cells_are_listed_and_tried_again_when_asked(sohot, mine):
    options = (*mine, "--methods", "s+t", "--splits", "1", "--set", "lr=1e30")
    failed = sohot(*options)
    assert failed.code == 1
    assert "1 of 1 cells failed:\n  photos-sketches split 1 s+t" in failed.err
    assert "training diverged" in failed.err
    assert "--set lr=1e30 --out" in failed.err
    assert failed.err.count("--retry") == 1
    kept = sohot(*options, "--json")
    assert kept.code == 1
    assert kept.json["cells"] == {"total": 1, "computed": 0, "kept": 0, "failed": 1}
    assert "diverged" in kept.json["failed"][0]["error"]
    again = sohot(*options, "--retry", "--json")
    assert (again.code, again.json["cells"]["computed"]) == (1, 1)


@pytest.mark.usefixtures("quick")
def test_a_dry_run_shows_the_cells_and_writes_nothing(sohot, mine, tmp_path):
    before = sohot(*mine, "--dry-run")
    assert before.code == 0
    assert before.out.count("to do   photos-sketches") == 4
    assert "4 cells: 4 to do" in before.out
    assert "to compute" not in before.out  # nothing is known before a cell is finished
    assert not (tmp_path / "out").exists()
    sohot(*mine, "--splits", "1", "--quiet")
    after = sohot(*mine, "--dry-run", "--json").json
    assert [cell["state"] for cell in after["cells"]] == ["done", "done", "to do", "to do"]
    assert after["seconds"] > 0
    assert "to compute 2, " in sohot(*mine, "--dry-run").out


@pytest.mark.usefixtures("quick")
def test_a_dry_run_names_the_pool_of_each_cell(sohot, mine):
    options = ("--methods", "s+t", "--splits", "1", "--pool", "supervised,inductive", "--dry-run")
    shown = sohot(*mine, *options).out
    assert "to do   photos-sketches split 1 s+t inductive" in shown
    assert [cell["pool"] for cell in sohot(*mine, *options, "--json").json["cells"]] == ["supervised", "inductive"]


def test_experiments_are_listed(sohot):
    listed = sohot("experiment", "--list", "--json").json["experiments"]
    assert {"office-alexnet", "complexity"} <= set(listed)
    assert "office-vgg" in sohot("experiment", "--list").out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "NAME_OR_TOML is missing"),
        (("office-alexnet",), "--data is missing"),
        (("ofice-alexnet",), "did you mean 'office-alexnet'"),
        (("none.toml",), "none.toml: there is no such file"),
        (("office-alexnet", "--set", "lr"), "--set must read KEY=VALUE"),
        (("office-alexnet", "--set", "learning=1"), "--set: unknown setting 'learning'"),
        (("office-alexnet", "--methods", "soo"), "method must be one of"),
        (("office-alexnet", "--splits", "a"), "splits must be a number"),
        (("office-alexnet", "--pool", "half"), "pool must be one of 'supervised', 'transductive', 'inductive'"),
        (("office-alexnet", "--engine", "slurm"), "--engine must be one of local, ray"),
        (("office-alexnet", "--select", "test"), "--select must be one of none, cv, validation"),
        (("office-alexnet", "--data", "nowhere"), "the folder nowhere does not exist"),
    ],
)
def test_a_wrong_call_is_a_sentence(sohot, options, sentence):
    ended = sohot("experiment", *options)
    assert (ended.code, ended.out) == (2, "")
    assert sentence in ended.last


@pytest.mark.usefixtures("quick")
def test_what_the_data_set_has_not_is_a_sentence(sohot, mine):
    for options, sentence in (
        (("--shifts", "photos-films"), "shift must be one of"),
        (("--backbone", "lite9"), "lite9"),
        (("--select", "validation"), "--select validation needs validation images"),
        (("--frozen", "--engine", "ray"), "omit --engine ray"),
        (("--frozen", "--set", "learning_rate=0.1"), "unknown setting on frozen features 'learning_rate'"),
        (("--set", "target_shots=0"), "target_shots must be at least 1"),
        (("--device", "tpu"), "--device must be one of"),
    ):
        ended = sohot(*mine, *options)
        assert ended.code == 2
        assert sentence in ended.last


@pytest.mark.usefixtures("quick")
def test_a_file_in_place_of_the_folder_is_a_sentence(sohot, mine, tmp_path):
    (tmp_path / "out").write_text("in the way")
    ended = sohot(*mine)
    assert ended.code == 2
    assert str(tmp_path / "out") in ended.last


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("place", ["open_dataset", "prepare", "write_grid"])
def test_a_stop_before_the_first_cell_says_how_to_go_on(sohot, mine, monkeypatch, tmp_path, place):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"sohot.experiments.grid_run.{place}", stop)
    ended = sohot(*mine)
    assert (ended.code, ended.out) == (130, "")
    kept = f"finished cells are kept in {tmp_path / 'out'}" if place != "open_dataset" else "nothing was computed"
    assert f"stopped by Ctrl-C; {kept}; continue with: sohot experiment {mine[1]} --data" in ended.last


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_experiment_says_how_to_go_on_and_holds_nothing(mine, tmp_path, sent, code):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = WarmProcess(["-m", "sohot", *mine, "--set", "steps=100000", "--workers", "1"], environment)
    wait_for_a_claim(tmp_path / "out", process)
    time.sleep(0.2)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, ""), err
    sentence = err.rstrip().splitlines()[-1]
    assert "finished cells are kept" in sentence
    assert f"continue with: sohot experiment {mine[1]} --data" in sentence
    assert "Traceback" not in err
    assert Store(tmp_path / "out").records() == []
    assert list((tmp_path / "out" / "cells").glob("*.claim")) == []


def wait_for_a_claim(folder: Path, process, seconds=60):
    for _ in range(seconds * 20):
        if process.poll() is not None or Store(folder).claimed_by_others():
            return
        time.sleep(0.05)
