"""evaluate, predict, export and info on a finished run."""

import csv
import io
import json
import shlex
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from command_line import weights

from sohot._escapes import unescaped
from sohot.data import InputSpec, read_image, to_tensor


def test_evaluate(sohot, trained):
    run, domains = trained
    accuracy = sohot("evaluate", run, domains.test, "--json").json["accuracy"]
    assert (accuracy["rows"], accuracy["micro"]) == (12, 1.0)
    assert "micro" in sohot("evaluate", run, domains.test).out


def test_evaluate_knows_the_classes_of_the_run_by_name(sohot, trained, tmp_path):
    run, domains = trained
    shutil.copytree(domains.test, tmp_path / "images")
    shutil.rmtree(tmp_path / "images" / "blue")  # the numbers of the others must not slip
    accuracy = sohot("evaluate", run, tmp_path / "images", "--json").json["accuracy"]
    assert accuracy["per_class"] == {"blue": None, "green": 1.0, "red": 1.0}
    (tmp_path / "images" / "red").rename(tmp_path / "images" / "pink")
    ended = sohot("evaluate", run, tmp_path / "images")
    assert ended.code == 2
    assert "'pink'" in ended.last
    assert sohot("evaluate", run, tmp_path / "images", "--leave-out", "--json").json["accuracy"]["rows"] == 4


def test_evaluate_leaves_out_what_the_run_trained_on(sohot, trained, tmp_path):
    run, domains = trained
    result = sohot("evaluate", run, domains.target, "--json").json  # 5 images of a class, of which 3 trained
    note = "left out of the test: 9 images byte-identical to training images"
    assert (result["accuracy"]["rows"], result["notes"]) == (6, [note])
    assert note in sohot("evaluate", run, domains.target).err
    copies = shutil.copytree(domains.source, tmp_path / "copies")
    for images in (domains.source, copies):
        ended = sohot("evaluate", run, images)
        assert (ended.code, ended.out) == (2, "")
        assert ended.last.endswith(
            f"all 18 images in {images} are byte-identical to training images of the run, so they cannot test it: "
            "give others"
        )


def test_evaluate_says_which_training_images_are_gone(sohot, trained, tmp_path):
    root = shutil.copytree(trained[0].parent, tmp_path / "moved")
    listed = json.loads((root / "run" / "split.json").read_text())
    listed["folders"] = {side: str(root / "nowhere") for side in listed["folders"]}
    (root / "run" / "split.json").write_text(json.dumps(listed))
    ended = sohot("evaluate", root / "run", root / "target", "--json")
    gone = "training images of the run can no longer be found: test images might be among them"
    assert (ended.json["accuracy"]["rows"], ended.json["notes"]) == (15, [f"27 {gone}"])


def test_predict_writes_labels_with_their_probabilities(sohot, trained, tmp_path):
    run, domains = trained
    out = tmp_path / "labels.csv"
    ended = sohot("predict", run, domains.test, "--out", out, "--top", 3)
    assert ended.code == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert len(rows) == 12
    assert all(row["label"] == row["path"].split("/")[-2] for row in rows)
    for row in rows:
        shares = [float(row[name]) for name in ("probability", "probability_2", "probability_3")]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1, abs=1e-5)
        assert {row["label"], row["label_2"], row["label_3"]} == {"blue", "green", "red"}
    assert list(tmp_path.iterdir()) == [out]  # nothing half written beside it


def test_predict_lists_skips_and_counts_what_it_cannot_read(sohot, trained, tmp_path):
    run, domains = trained
    good, bad = domains.test / "red" / "0.png", tmp_path / "bad.png"
    bad.write_bytes(b"")
    ended = sohot("predict", run, bad, good, good, "--json")
    assert ended.code == 0
    assert [one["path"] for one in ended.json["unreadable"]] == [str(bad)]
    assert [one["label"] for one in ended.json["predictions"]] == ["red"]
    assert "bad.png: the file is empty" in ended.err
    ended = sohot("predict", run, bad)
    assert (ended.code, ended.out) == (2, "")
    assert "none of the 1 files can be read" in ended.last


def test_odd_names_survive_csv_and_spreadsheets(sohot, trained, tmp_path, monkeypatch):
    run, domains = trained
    monkeypatch.chdir(tmp_path)
    names = ["=1+1.png", "a,b.png", 'quo"te.png', "line\nbreak.png"]
    for name in names:
        shutil.copy(domains.test / "blue" / "0.png", tmp_path / name)
    rows = list(csv.reader(io.StringIO(sohot("predict", run, *names).out)))
    assert [row[0] for row in rows[1:]] == ["./=1+1.png", *names[1:3], "line\\u000abreak.png"]
    assert [unescaped(row[0]) for row in rows[2:]] == names[1:]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.png",), "nowhere.png: there is no such file"),
        (("{test}", "--top", 4), "--top must lie in 1 … 3"),
        (("{test}", "--out", "nowhere/labels.csv"), "its folder does not exist"),
        (("{test}", "--out", "{test}"), "is a folder"),
        ((), "Missing argument"),
    ],
)
def test_wrong_calls_of_predict(sohot, trained, arguments, words):
    run, domains = trained
    ended = sohot("predict", run, *(str(one).format(test=domains.test) for one in arguments))
    assert ended.code == 2
    assert words in ended.last


def test_export_agrees_and_tells_how_to_feed_it(sohot, trained, tmp_path):
    run, domains = trained
    file = tmp_path / "model.onnx"
    result = sohot("export", run, "--onnx", file, "--json").json
    assert result["largest_difference"] <= 1e-4
    stored = {entry.key: json.loads(entry.value) for entry in onnx.load(file).metadata_props if entry.value[0] in "[{"}
    assert stored["classes"] == ["blue", "green", "red"]
    names = ("size", "mean", "std", "resize", "interpolation")
    spec = InputSpec(**{name: stored["preprocessing"][name] for name in names})
    images = [to_tensor(read_image(domains.test / name / "0.png"), spec) for name in ("red", "green", "blue")]
    session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"images": torch.stack(images).numpy()})
    assert [stored["classes"][place] for place in np.argmax(logits, 1)] == ["red", "green", "blue"]


def test_info_tells_how_to_repeat_the_run(sohot, trained, tmp_path):
    run, _ = trained
    found = sohot("info", run, "--json").json
    assert found["state"] == "finished, 40 steps"
    assert found["accuracy"]["micro"] == 1.0
    assert found["data"]["source"]["images"] == 18
    program, *arguments, _, _ = shlex.split(found["command"])
    assert program == "sohot"
    assert sohot(*arguments, "--out", tmp_path / "again").code == 0
    assert weights(tmp_path / "again") == weights(run)
    text = sohot("info", run).out
    assert "small-cnn" in text
    assert "sohot fit --source" in text


@pytest.mark.parametrize("command", [("info",), ("evaluate", "x"), ("predict", "."), ("export", "--onnx", "x.onnx")])
def test_not_a_run(sohot, tmp_path, command):
    name, *rest = command
    for folder in (tmp_path, tmp_path / "nowhere"):
        ended = sohot(name, folder, *([tmp_path] if rest == ["."] else rest))
        assert (ended.code, ended.out) == (2, "")


def test_version_and_bare_call(sohot):
    assert sohot("--version").out.startswith("sohot ")
    assert "Commands" in sohot().out
    ended = sohot("evaluat")
    assert ended.code == 2
    assert "evaluate" in ended.last


@pytest.mark.parametrize("argument", ["pretrained=True", ""])
def test_a_network_of_ones_own(sohot, domains, tmp_path, monkeypatch, argument):
    (tmp_path / "mine.py").write_text(
        "from torch import nn\nprint('hello')\n"
        f"def net({argument}):\n"
        "    layers = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4)\n"
        "    return nn.Sequential(*layers)\n"
    )
    monkeypatch.chdir(tmp_path)
    options = domains.options()
    options[options.index("small-cnn")] = "mine.py:net"
    ended = sohot("fit", *options, "--shots", 2, "--steps", 2, "--keep", "layers", "--out", "run", "--json")
    assert ended.json["steps"] == 2  # what the file prints is no result
    assert "hello" in ended.err
    monkeypatch.chdir(tmp_path / "run")  # the run knows where the file is
    assert sohot("evaluate", tmp_path / "run", domains.test, "--trust").code == 0
    (tmp_path / "mine.py").unlink()
    ended = sohot("evaluate", tmp_path / "run", domains.test, "--trust")
    assert ended.code == 2
    assert "mine.py" in ended.last
