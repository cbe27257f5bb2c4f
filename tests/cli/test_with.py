"""`sohot predict A IMAGES --with B`: the mean of calibrated log-probabilities, for every kind of images."""

import csv
import io
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from command_line import QUICK

import sohot as package
from sohot.runs import open_run
from sohot.runs.calibration_file import write_calibration
from sohot.runs.predictions import label_batches
from sohot.selection.held_out import HeldOut


@pytest.fixture(scope="module")
def second(trained, tmp_path_factory):
    """A run that is less sure than the first one, and calibrated; not to be changed."""
    from sohot.cli import main

    run, domains = tmp_path_factory.mktemp("second") / "run", trained[1]
    options = [*domains.options(), "--shots", "2", "--steps", "8", "--seed", "3", "--quiet", "--out", str(run)]
    with pytest.raises(SystemExit) as ended:
        main(["fit", *options])
    assert not ended.value.code
    sure = np.linspace(0.5, 6, 12)
    labels = np.zeros(12, int)
    labels[[0, 1, 2, 9]] = 1
    write_calibration(run, HeldOut(np.stack([sure, -sure, 0 * sure - 9], 1), labels))
    assert open_run(run).temperature > 1.05
    return run


def shares(ended):
    """Probabilities by image and class."""
    return {row["path"]: {one["label"]: one["probability"] for one in row["top"]} for row in ended.json["predictions"]}


def mean(*runs):
    """The mean of the log-probabilities of runs, by hand."""
    found = {}
    for path in runs[0]:
        raised = {name: np.prod([run[path][name] for run in runs]) ** (1 / len(runs)) for name in runs[0][path]}
        found[path] = {name: share / sum(raised.values()) for name, share in raised.items()}
    return found


def test_it_is_the_mean_of_both(sohot, trained, second):
    (run, domains), more = trained, ("--top", 3, "--json")
    one, two = (shares(sohot("predict", each, domains.test, *more)) for each in (run, second))
    ended = sohot("predict", run, domains.test, "--with", second, *more)
    assert (ended.json["run"], ended.json["with"]) == (str(run), [str(second)])
    both, by_hand = shares(ended), mean(one, two)
    assert [*both] == [*one]
    for path, expected in by_hand.items():
        assert both[path] == pytest.approx(expected, abs=1e-5)
    assert both != one
    swapped = shares(sohot("predict", second, domains.test, "--with", run, *more))
    assert all(swapped[path] == pytest.approx(both[path], abs=1e-6) for path in both)
    three = shares(sohot("predict", run, domains.test, "--with", second, "--with", run, "--json", "--top", 3))
    assert [*three] == [*both]


def test_all_kinds_of_images_and_options(sohot, trained, second, tmp_path):
    (run, domains), words = trained, ("--with", second, "--top", 3)
    expected = shares(sohot("predict", run, domains.test, *words, "--json"))
    (tmp_path / "list.csv").write_text("path\n" + "\n".join(expected))
    shards = tmp_path / "shards"
    shards.mkdir()
    with tarfile.open(shards / "0.tar", "w") as tar:
        for number, path in enumerate(expected):
            tar.add(path, f"{number:04}.png")
    (tmp_path / "bad.png").write_bytes(b"")
    for place in (tmp_path / "list.csv", shards / "0.tar", shards):
        ended = sohot("predict", run, tmp_path / "bad.png", place, *words, "--json")
        assert [*shares(ended).values()] == [*expected.values()]
        assert [Path(one["path"]).name for one in ended.json["unreadable"]] == ["bad.png"]
    out = tmp_path / "labels.csv"
    ended = sohot("predict", run, domains.test, *words, "--unknown-below", 1, "--out", out)
    assert f"note: {run} keeps no held-out target images" in ended.err
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert {row["label"] for row in rows} == {"unknown"}
    for row in rows:
        assert float(row["probability"]) == pytest.approx(max(expected[row["path"]].values()), abs=1e-6)
    found = package.load(run).predict(domains.test, top=3, with_=second)
    assert {str(row.image): dict(row.top) for row in found} == expected
    assert package.load(run).predict(domains.test, with_=[package.load(second)]).labels == found.labels


def test_classes_may_stand_in_any_order():
    one = SimpleNamespace(classes=("a", "b"), temperature=1.0)
    two = SimpleNamespace(classes=("b", "a"), temperature=2.0)
    sure, doubtful = torch.tensor([[3.0, 0.0]]), torch.tensor([[2.0, 0.0]])
    passes = [[([0], sure)], [([0], doubtful), ([1], sure)]]  # the second image cannot be read by the first run
    ((label,),) = label_batches([one, two], passes, [Path("0.png"), Path("1.png")], 2)
    logits = torch.tensor([(3.0 + 0.0) / 2, (0.0 + 1.0) / 2])
    assert label.labels == ("a", "b")
    assert label.probabilities == pytest.approx(logits.softmax(0).tolist())


def test_what_cannot_be_averaged_is_refused(sohot, trained, second, tmp_path):
    run, domains = trained
    shutil.copytree(domains.source, tmp_path / "source")
    shutil.copytree(domains.target, tmp_path / "target")
    for domain in ("source", "target"):
        (tmp_path / domain / "red").rename(tmp_path / domain / "pink")
    places = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    assert sohot("fit", *places, *QUICK, "--steps", 1, "--out", tmp_path / "other", "--quiet").code == 0
    for words, sentence in (
        (("--with", tmp_path / "other"), f"--with {tmp_path / 'other'} lacks classes of the first run: 'red'"),
        (("--with", tmp_path / "nowhere"), "there is no such run folder"),
        (("--with", second, "--refuse-wrong", 0.5), "with --with give a limit with --unknown-below"),
    ):
        ended = sohot("predict", run, domains.test, *words)
        assert (ended.code, ended.out) == (2, "")
        assert sentence in ended.last
    np.savez(tmp_path / "rows.npz", features=np.zeros((2, 3)))
    assert "leave it out for feature files" in sohot("predict", run, tmp_path / "rows.npz", "--with", second).last
