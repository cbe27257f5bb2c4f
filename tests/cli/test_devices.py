"""`sohot fit --devices N`: real processes, one result, and a clear end when one of them dies."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from command_line import Ended, make_domains, newest, overriding, python_path
from safetensors.torch import load_file

from sohot.cli import main
from sohot.runs import RunConfig
from sohot.runs.launcher import launch
from sohot.training import load_run

RANKS = ("--devices", "2")
linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the ranks in /proc")


@pytest.fixture
def call(capfd, monkeypatch):
    """Call `sohot fit` here; the processes it starts find this package, and what they print is caught too."""
    for name in ("PYTHONPATH", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, python_path()[name])

    def run(domains, out, *more) -> Ended:
        words = ["fit", *domains.options(), "--shots", "2", "--out", out, *more]
        with pytest.raises(SystemExit) as ended:
            main(overriding(words))
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return run


@contextmanager
def after_a_checkpoint(out: Path, act) -> Iterator[None]:
    """Do something beside the run once it has written a checkpoint."""

    def wait() -> None:
        until = time.monotonic() + 100
        while time.monotonic() < until:
            if list(out.glob("checkpoints/step-*")):
                act()
                return
            time.sleep(0.05)
        for rank in (0, 1):
            os.kill(rank_of(os.getpid(), rank), signal.SIGKILL)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def rank_of(parent: int, rank: int) -> int:
    """Find the process of a rank."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"SOHOT_PARENT={parent}".encode() in variables and f"RANK={rank}".encode() in variables:
            return int(folder.name)
    raise AssertionError(f"rank {rank} was not found")


def largest_difference(one: Path, other: Path) -> float:
    first, second = (load_file(newest(run) / "model.safetensors") for run in (one, other))
    assert list(first) == list(second)
    return max(float((first[name].double() - second[name].double()).abs().max()) for name in first)


@pytest.fixture(scope="module")
def domains(tmp_path_factory):
    return make_domains(tmp_path_factory.mktemp("domains"))


def check_result(domains, call, run: Path, ended: Ended) -> None:
    """One report of one result, and it is that of one process."""
    assert ended.code == 0, ended.err
    assert ended.json == json.loads((run / "report.json").read_text())
    assert ended.json["accuracy"]["rows"] == 9
    assert ended.err.count("step 6/6 loss") == ended.err.count("3 classes") == 1
    left = {path.name for path in run.iterdir()} - {".lock"}
    of_images = {"split.json", "predictions.csv", "test_outputs.safetensors"}
    assert left == {"checkpoints", "config.toml", "log.csv", "report.json", "run.json"} | of_images
    alone = run.with_name("alone")
    assert call(domains, alone, "--steps", 6, "--quiet").code == 0
    assert largest_difference(alone, run) < 1e-6


def test_two_processes_give_one_result(domains, call, tmp_path):
    ended = call(domains, tmp_path / "run", "--steps", 6, "--json", *RANKS)
    check_result(domains, call, tmp_path / "run", ended)


def test_under_torchrun_too(domains, call, tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "-m", "sohot"]
    words = ["fit", *domains.options(), "--shots", "2", "--out", str(tmp_path / "run"), "--steps", "6", "--json"]
    done = subprocess.run(
        [*torchrun, *words], env=python_path(), capture_output=True, text=True, timeout=120, check=False
    )
    check_result(domains, call, tmp_path / "run", Ended(done.returncode, done.stdout, done.stderr))


@linux
def test_a_rank_that_dies_is_named_with_the_way_to_go_on(domains, call, tmp_path):
    out = tmp_path / "run"
    with after_a_checkpoint(out, lambda: os.kill(rank_of(os.getpid(), 1), signal.SIGKILL)):
        ended = call(domains, out, *RANKS, "--steps", 100000, "--checkpoint-every", 5, "--quiet")
    assert (ended.code, ended.out) == (1, "")
    assert ended.last.startswith("sohot: rank 1 was killed by SIGKILL; the last good checkpoint is ")
    assert ended.last.endswith(f"; continue with: sohot fit --out {out} --resume")
    assert load_run(out).step % 5 == 0


@linux
def test_ctrl_c_saves_and_stops_all(domains, call, tmp_path):
    out = tmp_path / "run"
    with after_a_checkpoint(out, lambda: os.kill(os.getpid(), signal.SIGINT)):
        ended = call(domains, out, *RANKS, "--steps", 100000, "--checkpoint-every", 5, "--quiet")
    assert ended.code == 130
    assert ended.last.startswith(f"sohot: stopped by Ctrl-C after step {load_run(out).step} of 100000; saved in ")
    assert ended.last.endswith(f": sohot fit --out {out} --resume")


def test_bad_input_ends_in_the_sentence_of_one_process(domains, call, tmp_path):
    (tmp_path / "empty").mkdir()
    ended = call(domains, tmp_path / "run", *RANKS, "--steps", 4, "--target", tmp_path / "empty")
    assert (ended.code, ended.out) == (2, "")
    assert ended.last.startswith("sohot: the folder ")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"devices": 0}, "--devices must be an integer of at least 1, got 0"),
        ({"threads": 0}, "--threads must be an integer of at least 1, got 0"),
    ],
)
def test_what_cannot_be_launched_is_said_at_once(sohot, domains, tmp_path, options, message):
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    ended = sohot("fit", *domains.options(), "--out", tmp_path / "run", *words)
    assert ended.code == 2
    assert message in ended.last


def test_more_devices_than_there_are(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="--devices 2: this machine has 1 of kind cuda"):
        launch(RunConfig(devices=2, device="cuda", out=tmp_path))


def test_threads(sohot, domains, tmp_path):
    before = torch.get_num_threads()
    try:
        assert sohot("fit", *domains.options(), "--steps", 1, "--threads", 3, "--out", tmp_path / "run").code == 0
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
