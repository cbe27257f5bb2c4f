"""Ctrl-C and SIGTERM to a real process: it saves, says how to go on, and the resumed run ends in the same weights."""

import json
import signal
import subprocess
import sys
import time

import pytest
from command_line import python_path, start, weights

from sohot.cli.stopping import Terminated


def wait_for_steps(run, process, seconds=60):
    """Wait until a run has written the numbers of a step."""
    log = run / "log.csv"
    for _ in range(seconds * 50):
        if process.poll() is not None or (log.exists() and log.read_text().count("\n") > 2):
            return
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_run_resumes_to_the_same_weights(sohot, domains, tmp_path, sent, code):
    options = ("fit", *domains.options(), "--shots", 2, "--steps", 100, "--method", "so+zeta", "--seed", 3)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    process = start(*options, "--out", cut)
    wait_for_steps(cut, process)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    sentence = err.rstrip().splitlines()[-1]
    assert f"sohot fit --out {cut} --resume" in sentence
    assert "Traceback" not in err
    assert "100 steps done; continue: sohot fit" in sohot("info", cut, "--json").json["state"]
    resumed = sohot("fit", "--out", cut, "--resume", "--json")  # its own configuration, nothing to repeat
    assert resumed.code == 0
    assert resumed.json["resumed_from"] > 0
    assert sohot(*options, "--out", whole).code == 0
    assert weights(cut) == weights(whole)
    assert (
        json.loads((cut / "report.json").read_text())["accuracy"]
        == json.loads((whole / "report.json").read_text())["accuracy"]
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_run_on_augmented_images_resumes_to_the_same_weights(sohot, domains, tmp_path, monkeypatch):
    """Also where the decoded images found room in memory at first, and later did not."""
    options = ("fit", *domains.options(), "--shots", 2, "--steps", 60, "--augment", "--checkpoint-every", 7)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    process = start(*options, "--out", cut)
    for _ in range(3000):
        if process.poll() is not None or list(cut.glob("checkpoints/step-*")):
            break
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert sohot(*options, "--out", whole).code == 0
    monkeypatch.setattr("sohot.runs.trunk_outputs._free_memory", lambda: 0)
    resumed = sohot("fit", "--out", cut, "--resume", "--json")
    assert resumed.code == 0
    assert resumed.json["resumed_from"] > 0
    assert weights(cut) == weights(whole)


SIGNAL_ON_IMPORT = """
import os, sys
class Sender:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), int(sys.argv[2]))
sys.meta_path.insert(0, Sender())
from sohot.cli import main
main(sys.argv[3:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(("sent", "code", "by"), [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")])
@pytest.mark.parametrize("module", ["typer", "torch"])
def test_a_signal_during_the_first_imports_ends_in_a_sentence(tmp_path, sent, code, by, module):
    words = [module, str(int(sent)), "features", str(tmp_path), "--out", str(tmp_path / "features.npz")]
    command = [sys.executable, "-c", SIGNAL_ON_IMPORT, *words]
    ended = subprocess.run(command, env=python_path(), capture_output=True, text=True, check=False)
    assert ended.stderr == f"sohot: stopped by {by}; run the same command again\n"
    assert (ended.returncode, ended.stdout) == (code, "")


@pytest.mark.parametrize(("error", "code", "by"), [(KeyboardInterrupt, 130, "Ctrl-C"), (Terminated, 143, "SIGTERM")])
def test_a_stopped_command_names_only_options_it_has(sohot, domains, tmp_path, monkeypatch, error, code, by):
    def stop(*_, **__):
        raise error

    monkeypatch.setattr("sohot.demo.run_demo", stop)
    demo = sohot("demo", "--out", tmp_path / "demo")
    assert (demo.code, demo.last) == (code, f"sohot: stopped by {by}; run the same command again")
    monkeypatch.setattr("sohot.runs.pipeline.fit_run", stop)
    fit = sohot("fit", *domains.options(), "--out", tmp_path / "run")
    resume = "with --resume if training had begun"
    assert (fit.code, fit.last) == (code, f"sohot: stopped by {by}; run the same command again, {resume}")


def test_advice_about_memory_names_only_options_of_the_command(sohot, domains, tmp_path, monkeypatch):
    def fill(*_, **__):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr("sohot.demo.run_demo", fill)
    monkeypatch.setattr("sohot.runs.pipeline.fit_run", fill)
    demo, fit = sohot("demo", "--out", tmp_path), sohot("fit", *domains.options(), "--out", tmp_path / "run")
    assert demo.code == fit.code == 1
    assert demo.last.startswith("sohot: out of memory (")
    assert "--batch-rows" not in demo.last
    assert fit.last.endswith("; lower --batch-rows, or choose --cache disk")
