"""What a run stores about its images: which trained and tested, its answers, and its features."""

import json
from pathlib import Path

import pytest
import torch

from sohot.data import load_batch
from sohot.runs import RunConfig, gather, open_run, read_config, read_outputs, read_predictions
from sohot.runs.run_model import build_model


@pytest.fixture(scope="module")
def run(trained):
    return trained[0]


@pytest.fixture(scope="module")
def split(run):
    return json.loads((run / "split.json").read_bytes())


def test_the_split_names_every_image_once(trained, split):
    _, domains = trained
    assert split["counts"] == {"source_train": 18, "target_train": 9, "target_pool": 0, "target_test": 6}
    assert split["sides"]["target_pool"]["files"] == []
    files = {side: content["files"] for side, content in split["sides"].items()}
    assert sorted(files["source_train"])[0] == "blue/0.png"
    together = files["target_train"] + files["target_test"]
    assert sorted(together) == sorted(str(file.relative_to(domains.target)) for file in domains.target.glob("*/*"))
    folders = {"source_train": domains.source, "target_train": domains.target, "target_test": domains.target}
    assert split["folders"] == {side: str(folder) for side, folder in folders.items()}
    for side in folders:
        named = [split["classes"][label] for label in split["sides"][side]["labels"]]
        assert named == [Path(file).parent.name for file in files[side]]


def test_the_predictions_are_those_of_the_report(run, split):
    predictions = read_predictions(run / "predictions.csv")
    assert [str(one.file) for one in predictions] == split["sides"]["target_test"]["files"]
    assert [one.truth for one in predictions] == [one.file.parent.name for one in predictions]
    accuracy = json.loads((run / "report.json").read_bytes())["accuracy"]
    assert sum(one.truth == one.labels[0] for one in predictions) == accuracy["correct"]
    for one in predictions:
        assert len(set(one.labels)) == 2
        assert 1 >= one.probabilities[0] >= one.probabilities[1] >= 0


def test_the_outputs_are_those_of_the_model(run):
    outputs, loaded = read_outputs(run), open_run(run)
    config = RunConfig.from_values(read_config(run / "config.toml"))
    data = gather(config)
    assert outputs.logits.argmax(1).tolist() == [
        data.classes.index(one.labels[0]) for one in read_predictions(run / "predictions.csv")
    ]
    networks = {"before": build_model(config, len(data.classes)).eval(), "after": loaded.model}
    for part, images in (("source", data.source), ("target", data.target), ("test", data.test)):
        found = outputs.features[part]
        assert found.rows.tolist() == list(range(len(images)))  # no class has more than are kept
        rows = load_batch(images, found.rows, loaded.input)
        for when, network in networks.items():
            with torch.inference_mode():
                output = network(rows, None) if part == "source" else network(None, rows)
            expected = output.source_features if part == "source" else output.target_features
            torch.testing.assert_close(getattr(found, when), expected, atol=1e-4, rtol=1e-4)
            if part == "test" and when == "after":
                torch.testing.assert_close(outputs.logits, output.target_logits, atol=1e-4, rtol=1e-4)


def test_features_are_kept_of_a_few_images_of_each_class(sohot, domains, tmp_path, monkeypatch):
    monkeypatch.setattr("sohot.runs.run_outputs.PER_CLASS", 2)
    options = ("--trains", "all", "--augment", "--steps", 2)  # nothing is frozen, and training changes the images
    assert sohot("fit", *domains.options(), "--shots", 1, *options, "--out", tmp_path / "run").code == 0
    outputs = read_outputs(tmp_path / "run")
    assert {part: len(found.rows) for part, found in outputs.features.items()} == {"source": 6, "target": 3, "test": 6}
    assert len(outputs.logits) == 12
    for found in outputs.features.values():
        assert found.before.shape == found.after.shape == (len(found.rows), 128)
        assert not found.before.equal(found.after)


def test_a_run_without_a_test_has_no_predictions(sohot, domains, tmp_path):
    run = tmp_path / "run"
    assert sohot("fit", *domains.options(), "--method", "t", "--steps", 2, "--out", run).code == 0
    assert not (run / "predictions.csv").exists()
    outputs = read_outputs(run)
    assert outputs.logits is None
    assert list(outputs.features) == ["target"]
    assert json.loads((run / "split.json").read_bytes())["counts"]["source_train"] == 0
