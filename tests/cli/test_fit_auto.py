"""`sohot fit --method auto`: what is printed, how it is stopped and gone on with, and what it refuses."""

import json
import signal
import sys
import time

import pytest
from command_line import start, weights

from sohot.reporting import write_report
from sohot.runs import read_config
from sohot.selection.spaces import AUTO_CANDIDATES, HEAD

LISTED = [name for name in AUTO_CANDIDATES if name != HEAD]  # the network of these tests has no trained weights


def fit(sohot, domains, out, *more):
    return sohot("fit", *domains.options(), "--method", "auto", "--steps", 2, "--shots", 2, "--out", out, *more)


@pytest.fixture
def chosen(sohot, domains, tmp_path):
    ended = fit(sohot, domains, tmp_path / "run")
    assert ended.code == 0
    return tmp_path / "run", ended


def test_people_see_the_scores_and_the_reason(sohot, chosen):
    run, ended = chosen
    reason = json.loads((run / "report.json").read_text())["selection"]["reason"]
    assert "of 6 held-out target images right" in reason
    assert ended.err.count("3 classes") == 1
    assert f"chosen by held-out target images: {reason}" in ended.out
    assert (ended.out + ended.err).count(reason) == 1
    number = 2 * LISTED.index("m") + 2
    counted = f"[{number}/{2 * len(LISTED)}] choosing a method: m, fold 2 of 2, about 0:0"
    for words in ("standard error", counted, f"choosing a method: {2 * len(LISTED)} done", *LISTED):
        assert words in ended.err
    assert reason in " ".join(sohot("info", run).out.split())
    page = write_report(run).read_text(encoding="utf-8")
    assert "Choice of the method" in page
    assert reason.replace("&", "&amp;") in page


def test_a_given_default_holds_for_all(sohot, domains, tmp_path):
    report = fit(sohot, domains, tmp_path / "run", "--lr", "0.003", "--json").json
    assert all("lr" not in one["options"] for one in report["selection"]["candidates"])


@pytest.mark.parametrize("more", [(), ("--method", "auto")])
def test_resuming_a_finished_run_changes_nothing(sohot, chosen, more):
    run, _ = chosen
    before, report = weights(run), json.loads((run / "report.json").read_text())
    ended = sohot("fit", "--out", run, "--resume", "--json", *more)
    assert ended.code == 0
    assert "choosing a method" not in ended.err
    assert weights(run) == before
    assert ended.json["selection"] == report["selection"]


def test_other_options_cannot_resume(sohot, chosen):
    ended = sohot("fit", "--out", chosen[0], "--resume", "--method", "auto", "--lr", "0.5")
    assert ended.code == 2
    assert "holds another selection, so it cannot be resumed" in ended.last


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_stopped_selection_resumes_to_the_same_weights(sohot, domains, tmp_path):
    options = ("fit", *domains.options(), "--method", "auto", "--shots", 2, "--steps", 100)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    process = start(*options, "--out", cut)
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        if (cut / "selection.json").exists() and json.loads((cut / "selection.json").read_text())["scores"]:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    sentence = err.rstrip().splitlines()[-1]
    assert "stopped by Ctrl-C while a method was being chosen" in sentence
    assert f"sohot fit --out {cut} --resume" in sentence
    assert read_config(cut / "config.toml")["method"] == "auto"
    assert "method is not chosen yet" in sohot("info", cut).last
    assert sohot("fit", "--out", cut, "--resume").code == 0
    assert sohot(*options, "--out", whole).code == 0
    selections = [json.loads((run / "report.json").read_text())["selection"] for run in (whole, cut)]
    assert selections[0] == selections[1]
    assert weights(cut) == weights(whole)


def test_several_devices_are_refused_at_once(sohot, domains, tmp_path):
    ended = fit(sohot, domains, tmp_path / "run", "--devices", 2)
    assert ended.code == 2
    assert "--method auto chooses on one device" in ended.last
    assert not (tmp_path / "run").exists()


def test_too_few_images_to_choose_by(sohot, domains, tmp_path):
    ended = sohot("fit", *domains.options(), "--method", "auto", "--shots", 1, "--out", tmp_path / "run")
    assert ended.code == 2
    assert "at least one class needs two different labelled target images" in ended.last
    assert "--method means" in ended.last
