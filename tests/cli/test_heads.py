"""A head from `sohot fit-features` labels images and feature files, with the commands for runs."""

import csv
import io
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from command_line import Domains, Ended, make_domains, overriding
from safetensors.torch import save_file

from sohot import SoHoTClassifier
from sohot.cli import main
from sohot.data import load_batch, scan_folder
from sohot.networks import create_backbone
from sohot.runs import open_head, open_model, read_head, read_predictions

Sohot = Callable[..., Ended]
QUICK = ("--backbone", "small-cnn", "--image-size", "16", "--device", "cpu", "--quiet")
TRAINING = ("--shots", "3", "--steps", "60", "--lr", "0.01", "--device", "cpu", "--quiet")


def do(*arguments: object) -> None:
    with pytest.raises(SystemExit) as ended:
        main(overriding(arguments))
    assert not ended.value.code


def make_head(root: Path, domains: Domains, *options: object, name: str = "head", training: tuple = ()) -> Path:
    """Extract features and train a head on them."""
    for part in ("source", "target", "test"):
        do("features", getattr(domains, part), "--out", root / f"{name}-{part}.npz", *QUICK, *options)
    files = "--source", root / f"{name}-source.npz", "--target", root / f"{name}-target.npz"
    do("fit-features", *files, *TRAINING, *training, "--out", root / name)
    return root / name


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Domains]:
    """A folder with a head and the feature files it comes from, not to be changed; and the images."""
    root = tmp_path_factory.mktemp("heads")
    domains = make_domains(root)
    make_head(root, domains)
    return root, domains


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_images_and_their_features_get_the_same_labels(sohot: Sohot, made: tuple[Path, Domains]) -> None:
    root, domains = made
    images = rows_of(sohot("predict", root / "head", domains.test, "--top", 3, "--quiet").out)
    table = rows_of(sohot("predict", root / "head", root / "head-test.npz", "--top", 3).out)
    assert len(images) == 12
    assert [row.pop("path").split("/")[-2:] for row in images] == [row.pop("path").split("/") for row in table]
    truths = [row.pop("truth") for row in table]
    assert images == table  # to the last digit
    assert truths == [row["label"] for row in images]
    again = rows_of(sohot("predict", root / "head" / "model.safetensors", domains.test, "--quiet").out)
    assert [row["probability"] for row in again] == [row["probability"] for row in images]


def test_a_head_is_tested_described_and_refused_like_a_run(
    sohot: Sohot, made: tuple[Path, Domains], tmp_path: Path
) -> None:
    root, domains = made
    assert sohot("evaluate", root / "head", domains.test, "--json").json["accuracy"]["micro"] == 1.0
    tested = sohot("evaluate", root / "head", domains.target, "--json").json  # 3 of 5 images of a class trained
    assert tested["accuracy"]["rows"] == 6
    assert tested["notes"] == ["left out of the test: 9 images byte-identical to training images"]
    described = sohot("info", root / "head", "--json").json
    assert (described["classes"], described["step"]) == (["blue", "green", "red"], 60)
    assert described["command"].startswith("sohot fit-features --source")
    text = sohot("info", root / "head").out
    assert "a head on features, a logistic regression" in text
    assert "18 rows" in text
    alone = Path(shutil.copy(root / "head" / "model.safetensors", tmp_path / "alone.safetensors"))
    assert "small-cnn" in sohot("info", alone).out


def test_the_temperature_of_a_head_divides_once_and_is_told(sohot: Sohot, made: tuple[Path, Domains]) -> None:
    root, domains = made
    head, temperature = root / "head", read_head(root / "head").fit.temperature
    assert temperature != 1
    assert sohot("info", head, "--json").json["calibration"] == {"temperature": temperature}
    assert f"calibrated (temperature {temperature:.2f})" in sohot("info", head).out
    model = SoHoTClassifier.load(head / "model.safetensors")
    with np.load(root / "head-test.npz") as arrays:
        expected = model.predict_proba(arrays["features"]).max(1)
    shares = [float(row["probability"]) for row in rows_of(sohot("predict", head, domains.test).out)]
    np.testing.assert_allclose(shares, expected, atol=1e-5)
    effect = sohot("evaluate", head, domains.test, "--json").json["accuracy"]["calibration"]
    assert (effect["temperature"], effect["held_out"]) == (temperature, None)
    assert effect["ece_after"] == pytest.approx(1 - expected.mean(), abs=1e-5)  # one bin, all right
    assert effect["ece_before"] != pytest.approx(effect["ece_after"], rel=1e-3)
    assert f"before calibration (temperature {temperature:.2f})" in sohot("evaluate", head, domains.test).out


def test_unsure_answers_of_a_head_are_refused(sohot: Sohot, made: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = made
    head, table = root / "head", root / "head-test.npz"
    plain = rows_of(sohot("predict", head, table).out)
    limit = sorted(float(row["probability"]) for row in plain)[5] - 1e-6
    ended = sohot("predict", head, table, "--unknown-below", limit)
    assert "not calibrated" not in ended.err
    found = rows_of(ended.out)
    assert list(found[0]) == ["path", "truth", "label", "guess", "probability"]
    assert [row["guess"] for row in found] == [row["label"] for row in plain]
    assert [row["truth"] for row in found] == [row["truth"] for row in plain]
    assert [row["label"] for row in found].count("unknown") == 5
    images = sohot("predict", head, domains.test, "--unknown-below", limit, "--json").json
    assert [one["label"] for one in images["predictions"]] == [row["label"] for row in found]
    tested = sohot("evaluate", head, domains.test, "--unknown-below", limit, "--json").json
    assert tested["unknown"]["answered"] == 7
    out = tmp_path / "labels.csv"
    assert "12 rows labelled in" in sohot("predict", head, table, "--unknown-below", 1, "--out", out).out
    assert [(one.truth, one.refused) for one in read_predictions(out)] == [(row["truth"], True) for row in plain]
    for call in (("predict", head, table), ("predict", head, domains.test), ("evaluate", head, domains.test)):
        ended = sohot(*call, "--refuse-wrong", 0.8)
        assert (ended.code, ended.out) == (2, "")
        assert "--refuse-wrong needs held-out target images" in ended.last
        assert "--unknown-below" in ended.last


def test_a_head_without_a_temperature_says_so(sohot: Sohot, made: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = made
    model = SoHoTClassifier.load(root / "head" / "model.safetensors")
    model.fit_ = replace(model.fit_, temperature=1.0)
    head = tmp_path / "raw.safetensors"
    model.save(head, network=read_head(root / "head").network)
    assert "not calibrated" in sohot("info", head).out
    assert "its probabilities are not calibrated" in sohot("predict", head, domains.test, "--unknown-below", 0.5).err
    assert sohot("evaluate", head, domains.test, "--json").json["accuracy"]["calibration"]["held_out"] == 0


def test_the_exported_head_computes_what_the_head_does(sohot: Sohot, tmp_path: Path) -> None:
    domains = make_domains(tmp_path)
    head = make_head(tmp_path, domains, "--views", 2, training=("--hidden", 4, "--norm-bound", 3))
    file = tmp_path / "head.onnx"
    result = sohot("export", head, "--onnx", file, "--json").json
    assert result["largest_difference"] <= 1e-4
    assert result["temperature"] == read_head(head).fit.temperature != 1
    images = scan_folder(domains.test).images
    loaded = open_model(head)
    assert loaded.views == 2
    every = range(len(images))
    (expected,) = loaded.logits([load_batch(images, every, loaded.input, views=2)])
    session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"images": load_batch(images, every, loaded.input).numpy()})
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert sohot("evaluate", head, domains.test, "--json").json["accuracy"]["rows"] == 12


def test_more_views_are_applied_but_not_exported(sohot: Sohot, tmp_path: Path) -> None:
    domains = make_domains(tmp_path)
    head = make_head(tmp_path, domains, "--views", 10)
    images, table = (rows_of(sohot("predict", head, x).out) for x in (domains.test, tmp_path / "head-test.npz"))
    assert [row["probability"] for row in images] == [row["probability"] for row in table]
    ended = sohot("export", head, "--onnx", tmp_path / "head.onnx")
    assert (ended.code, "averages 10 views of an image" in ended.last) == (2, True)
    assert not (tmp_path / "head.onnx").exists()


def test_tables_without_labels_and_of_other_programs(sohot: Sohot, made: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = made
    out = tmp_path / "red.npz"
    ended = sohot("features", domains.test / "red", "--out", out, *QUICK)
    assert (ended.code, "128 features, no labels" in ended.out) == (0, True)
    assert "red has no class folders" in ended.err
    rows = rows_of(sohot("predict", root / "head", out).out)
    assert [(row["path"], row["label"]) for row in rows] == [(f"{number}.png", "red") for number in range(4)]
    assert "truth" not in rows[0]
    with np.load(out) as arrays:
        np.savez(tmp_path / "other.npz", features=arrays["features"].astype(np.float64))
    other = sohot("predict", root / "head", tmp_path / "other.npz", "--json").json["predictions"]
    assert [f"{row['probability']:.6f}" for row in other] == [row["probability"] for row in rows]
    both = sohot("predict", root / "head", out, root / "head-test.npz", "--out", tmp_path / "labels.csv")
    assert "16 rows labelled" in both.out
    assert [row["truth"] for row in rows_of((tmp_path / "labels.csv").read_text())].count("") == 4
    nested = sohot("features", domains.test, "--no-labels", "--out", out, *QUICK, "--json").json
    assert (nested["rows"], nested["classes"]) == (12, [])


def test_weights_from_a_file_are_asked_for_and_checked(sohot: Sohot, tmp_path: Path) -> None:
    domains = make_domains(tmp_path)
    torch.manual_seed(5)
    file = tmp_path / "w.safetensors"
    save_file(create_backbone("small-cnn", size=16).state_dict(), file)
    head = make_head(tmp_path, domains, "--weights", file)
    for call in (("predict", head, domains.test), ("evaluate", head, domains.test), ("export", head, "--onnx", "x")):
        ended = sohot(*call)
        assert (ended.code, "give their file with --weights FILE" in ended.last) == (2, True)
    assert sohot("evaluate", head, domains.test, "--weights", file, "--json").json["accuracy"]["rows"] == 12
    assert sohot("predict", head, tmp_path / "head-test.npz").code == 0  # features need no network
    assert open_head(head, weights=file).backbone.pretrained


def test_code_runs_only_if_the_user_trusts_it(sohot: Sohot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    domains = make_domains(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from torch import nn\nprint('hello')\n"
        "def net():\n"
        "    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())\n"
    )
    monkeypatch.chdir(tmp_path)
    head = make_head(tmp_path, domains, "--backbone", "mine.py:net")
    monkeypatch.chdir(head)  # the head knows where the file is
    ended = sohot("predict", head, domains.test)
    assert (ended.code, "add --trust" in ended.last, "hello" in ended.err) == (2, True, False)
    assert sohot("predict", head, tmp_path / "head-test.npz").code == 0
    trusted = sohot("predict", head, domains.test, "--trust")
    assert (trusted.code, "hello" in trusted.err, "hello" in trusted.out) == (0, True, False)
    (tmp_path / "mine.py").unlink()
    ended = sohot("predict", head, domains.test, "--trust")
    assert (ended.code, "there is no file" in ended.last) == (2, True)


def test_what_does_not_fit_ends_in_a_sentence(
    sohot: Sohot, made: tuple[Path, Domains], trained: tuple[Path, Domains], tmp_path: Path
) -> None:
    root, domains = made
    head, table = root / "head", root / "head-test.npz"
    sohot("features", domains.test / "red", "--out", tmp_path / "tap.npz", *QUICK, "--tap", "after-relu")
    np.savez(tmp_path / "narrow.npz", features=np.eye(5))
    (tmp_path / "text.npz").write_text("no")
    (tmp_path / "text.safetensors").write_text("no")
    calls = {
        "another network than that of": (head, tmp_path / "tap.npz"),
        "takes rows of 128 features, got 5": (head, tmp_path / "narrow.npz"),
        "it is not an .npz file": (head, tmp_path / "text.npz"),
        "there is no such feature file": (head, tmp_path / "none.npz"),
        "cannot be labelled together": (head, table, domains.test),
        "--top must lie in 1 … 3": (head, table, "--top", 4),
        "is not a classifier saved by sohot": (tmp_path / "text.safetensors", domains.test),
        "which a head made by `sohot fit-features` labels": (trained[0], table),
        "holds its weights": (trained[0], domains.test, "--weights", table),
        "there is no such run folder": (tmp_path / "none", domains.test),
    }
    for sentence, call in calls.items():
        ended = sohot("predict", *call)
        assert (ended.code, ended.out) == (2, ""), sentence
        assert sentence in ended.last
    ended = sohot("fit-features", "--source", table, "--target", tmp_path / "tap.npz", "--out", tmp_path / "out")
    assert (ended.code, "--target: its rows have no labels" in ended.last) == (2, True)
    ended = sohot("features", domains.test, "--no-labels", "--dataset", "domains", "--out", tmp_path / "a.npz")
    assert (ended.code, "leave out --dataset, or --no-labels" in ended.last) == (2, True)
