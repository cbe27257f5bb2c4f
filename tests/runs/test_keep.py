"""`--keep`: layers are kept where held-out labels say that training them helped; else what they start from."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from command_line import Domains, make_domains, newest, weights
from pretrained import write_weights
from safetensors.torch import load_file

import sohot.runs.pool_selection as pool_room
import sohot.runs.selection as room
from sohot.runs import RunConfig, Watcher, fit_run, read_config
from sohot.runs.auto import read_held_out
from sohot.runs.calibration_file import read_calibration
from sohot.selection.choice import FoldScore
from sohot.selection.held_out import HeldOut


@pytest.fixture(scope="module")
def domains(tmp_path_factory) -> Domains:
    return make_domains(tmp_path_factory.mktemp("domains"))


@pytest.fixture
def config(domains, tmp_path):
    def make(out: str = "run", **more) -> RunConfig:
        values = {"source": domains.source, "target": domains.target, "shots": 2, "weights": write_weights(tmp_path)}
        values |= {"backbone": "small-cnn", "image_size": 16, "steps": 3, "device": "cpu", "loggers": "none"}
        return RunConfig(**{**values, "out": tmp_path / out, **more})

    return make


def answers(monkeypatch, **certainty: float) -> list[str]:
    """Let candidates answer held-out images with so much certainty in the right class; list who was asked."""
    asked = []

    def train_fold(config, data, fold, *_):
        name = "head" if config.trains == "head" else config.method
        asked.append(name)
        labels = np.array([data.target.labels[row] for row in fold.held])
        wobble = 0.1 * np.arange(len(labels))[:, None] * (np.arange(3) == 0)
        return FoldScore.of(HeldOut(certainty[name] * np.eye(3)[labels] + wobble, labels))

    monkeypatch.setattr(room, "train_fold", train_fold)
    return asked


def stored(out):
    return {name: read_config(out / "config.toml").get(name) for name in ("method", "trains", "keep")}


def test_layers_that_help_are_kept(config, monkeypatch):
    asked = answers(monkeypatch, head=0.5, means=6.0)
    report = fit_run(config())
    assert asked == ["head", "head", "means", "means"]
    assert (report["method"], report["steps"], report["selection"]["chosen"]) == ("means", 3, "means")
    assert stored(config().out) == {"method": "means", "trains": None, "keep": "layers"}
    assert len(read_held_out(config().out)) == read_calibration(config().out).rows == 6


def test_otherwise_the_classifier_on_frozen_features_is_the_result(config, monkeypatch):
    answers(monkeypatch, head=0.5, means=0.5)
    report = fit_run(config())
    assert (report["method"], report["steps"], report["selection"]["chosen"]) == ("s+t", 0, "head")
    assert stored(config().out) == {"method": "s+t", "trains": "head", "keep": "better"}
    fit_run(config("asked", trains="head"))
    assert weights(config().out) == weights(config("asked").out)
    calibrations = [read_calibration(config(out).out) for out in ("run", "asked")]
    assert calibrations[0].temperature == calibrations[1].temperature


@pytest.mark.parametrize("means", [0.5, 6.0])
def test_the_stored_configuration_repeats_the_run_and_resuming_keeps_the_reason(config, monkeypatch, means):
    answers(monkeypatch, head=0.5, means=means)
    first = fit_run(config())
    asked = answers(monkeypatch)
    again = RunConfig.from_values({**read_config(config().out / "config.toml"), "out": config("again").out})
    repeated = fit_run(again)["accuracy"]
    same = repeated.pop("calibration") == first["accuracy"].pop("calibration")
    assert same == (first["trains"] == "head")  # trained layers are not tried on held-out images again
    assert repeated == first["accuracy"]
    assert weights(config("again").out) == weights(config().out)
    resumed = fit_run(replace(again, out=config().out, resume=True))
    assert (resumed["selection"], resumed["head"]) == (first["selection"], first["head"])
    assert asked == []


def test_layers_can_be_asked_for(config, monkeypatch):
    asked = answers(monkeypatch)
    report = fit_run(config(keep="layers"))
    assert (report["steps"], report["selection"], asked) == (3, None, [])
    assert read_calibration(config().out) is None  # the layers were not tried on held-out images
    assert report["head"]["held_out"]["images"] == 6  # told, though nothing depends on it


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"shots": 1}, "no class has two labelled target images, so"),
        ({"shots": 1, "method": "auto"}, "no class has two labelled target images, so"),
        ({"method": "s"}, "--method s sees no target labels, so"),
    ],
)
def test_where_nothing_can_be_held_out_the_classifier_on_frozen_features_is_kept(config, more, why):
    report = fit_run(config(**more))
    assert report["selection"]["reason"].startswith(why)
    assert (report["steps"], report["trains"], report["head"]["held_out"]) == (0, "head", None)
    again = fit_run(config(**more, resume=True))
    assert again["selection"] == report["selection"]


def test_auto_starts_with_it(config, monkeypatch):
    monkeypatch.setattr("sohot.runs.auto.AUTO_CANDIDATES", {"head": {}, "s+t": {"method": "s+t"}})
    asked = answers(monkeypatch, head=0.5, **{"s+t": 0.5})
    report = fit_run(config(method="auto"))
    assert asked == ["head", "head", "s+t", "s+t"]
    assert [one["name"] for one in report["selection"]["candidates"]] == ["head", "s+t"]
    assert report["selection"]["chosen"] == "head"


def test_an_untrained_network_has_nothing_to_compare_with(config, monkeypatch):
    asked = answers(monkeypatch)
    report = fit_run(config(weights=None))
    assert (report["selection"], report["head"], report["steps"], asked) == (None, None, 3, [])
    assert "--keep" not in report["command"]


def test_the_paper_trains_layers(config, monkeypatch):
    asked = answers(monkeypatch)
    assert fit_run(config(method="paper"))["steps"] == 3
    assert asked == []


def test_unlabelled_images_count_where_labels_cannot_tell(config, monkeypatch):
    asked = answers(monkeypatch, **{"head": 3.0, "s+t": 2.9})
    report = fit_run(config(unlabelled="rest"))
    assert asked == ["head", "head", "s+t", "s+t"]
    assert (report["method"], report["steps"], report["settings"]["lr"]) == ("s+t", 3, 0.01)
    assert report["pool"]["kept"]
    assert report["pool"]["sentence"].startswith("the unlabelled images count: of 6 held-out target images")
    assert report["selection"]["reason"].endswith(report["pool"]["sentence"])
    assert sum(report["pool"]["prior"].values()) == pytest.approx(1)
    log = (config().out / "log.csv").read_text().splitlines()[0].split(",")
    assert {"mask_rate", "pool_confidence", "pool_largest", "pool_changed", "pseudo_labels"} <= set(log)


def test_unlabelled_images_that_hurt_are_left_out(config, monkeypatch):
    answers(monkeypatch, **{"head": 3.0, "s+t": -3.0})
    report = fit_run(config(unlabelled="rest"))
    assert (report["selection"]["chosen"], report["trains"]) == ("head", "head")
    assert not report["pool"]["kept"]
    assert "which is clearly worse" in report["pool"]["sentence"]
    assert (config().out / "pool.csv").exists()  # they get labels all the same


def test_nothing_trains_on_images_that_show_something_else(config, monkeypatch):
    asked = answers(monkeypatch, **{"head": 9.0, "s+t": 9.0})
    monkeypatch.setattr(pool_room, "_answers", lambda *_: np.zeros((9, 3)))
    report = fit_run(config(unlabelled="rest"))
    assert asked == ["head", "head"]
    assert "they seem to show something else" in report["pool"]["sentence"]
    assert fit_run(config(unlabelled="rest", resume=True))["pool"] == report["pool"]


def test_with_one_label_per_class_the_pool_counts(config):
    report = fit_run(config(unlabelled="rest", shots=1))
    assert report["pool"]["kept"]
    assert "no held-out label" in report["pool"]["sentence"]


def test_a_run_with_a_pool_resumes_to_the_same_bits(config):
    whole = config("whole", unlabelled="rest", keep="layers", steps=12, checkpoint_every=4, lr=1e-3)
    fit_run(whole)
    cut = replace(whole, out=whole.out.with_name("cut"))

    class Killer(Watcher):
        def steps(self, settings):  # noqa: ARG002
            def stop(record):
                if record["step"] == 7:
                    raise KeyboardInterrupt

            return nullcontext(stop)

    with pytest.raises(KeyboardInterrupt):
        fit_run(cut, Killer())
    report = fit_run(replace(cut, resume=True))
    assert report["resumed_from"] == 4
    assert weights(whole.out) == weights(cut.out)
    for name in ("pool.csv", "predictions.csv"):
        assert (whole.out / name).read_bytes() == (cut.out / name).read_bytes()


def test_training_with_a_pool_starts_from_a_classifier_that_learned_from_it(config):
    start = config("start", unlabelled="rest", trains="head")
    began = config("began", unlabelled="rest", keep="layers", steps=1, lr=1e-12)
    for one in (start, began):
        fit_run(one)
    heads = [load_file(newest(one.out) / "model.safetensors") for one in (start, began)]
    for name in ("weight", "bias"):
        torch.testing.assert_close(*(one[f"heads.both.{name}"] for one in heads), atol=1e-4, rtol=1e-4)


def test_a_classifier_on_frozen_features_learns_from_the_pool(config):
    report = fit_run(config(unlabelled="rest", trains="head"))
    assert report["steps"] == 0
    assert "the unlabelled images" in report["pool"]["sentence"]
    without = fit_run(config("without", unlabelled="rest", trains="head", pool_weight=0.0))
    assert without["pool"]["sentence"] == "the unlabelled images were labelled, and nothing was learned from them"
    if report["pool"]["kept"]:
        assert weights(config().out) != weights(config("without").out)
