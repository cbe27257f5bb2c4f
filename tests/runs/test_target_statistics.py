"""Statistics of target images: which images they depend on, where they are kept, and when they count."""

import math

import numpy as np
import pytest
import torch
from command_line import make_domains, weights
from normalised import write_network

import sohot.runs.statistics_choice as room
from sohot import load
from sohot.networks.two_passes import passes_of
from sohot.runs import RunConfig, Watcher, fit_run, gather, read_config, read_predictions
from sohot.runs import target_statistics as module
from sohot.runs.run_model import build_model
from sohot.runs.shared_parts import SharedParts
from sohot.runs.target_statistics import target_statistics, use_statistics
from sohot.selection.held_out import HeldOut

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def domains(tmp_path_factory):
    return make_domains(tmp_path_factory.mktemp("domains"))


@pytest.fixture
def config(domains, tmp_path):
    def make(out: str = "run", **more) -> RunConfig:
        values = {"source": domains.source, "target": domains.target, "shots": 2, "unlabelled": "rest"}
        values |= {"backbone": write_network(tmp_path), "steps": 3, "device": "cpu", "loggers": "none"}
        return RunConfig(**{**values, "out": tmp_path / out, **more})

    return make


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_they_depend_on_the_images_and_not_on_their_lists_or_their_order(config):
    model, data = build_model(config(batch_norm="both"), 3), gather(config())
    found = target_statistics(model, data.targets(), CPU)
    reversed_lists = [images.subset(range(len(images) - 1, -1, -1)) for images in reversed(data.targets())]
    assert same(found, target_statistics(model, reversed_lists, CPU))
    assert not same(found, target_statistics(model, [data.pool], CPU))
    own = {name: value for one in passes_of(model) for name, value in one.second().items()}
    assert not any(torch.equal(value, own[name.partition("/")[2]]) for name, value in found.items())
    use_statistics(model, found)
    for number, one in enumerate(passes_of(model.trunk("source"), model.tails.of("source"))):
        assert all(torch.equal(value, found[f"{number}/{name}"]) for name, value in one.second().items())


def test_of_many_images_some_are_looked_at(config, monkeypatch):
    monkeypatch.setattr(module, "MOST_IMAGES", 9)
    monkeypatch.setattr(module, "BATCH", 4)
    seen = []
    data = gather(config())
    target_statistics(
        build_model(config(batch_norm="both"), 3), data.targets(), CPU, progress=lambda *told: seen.append(told)
    )
    assert seen == [(module.STAGE, 3, 9), (module.STAGE, 6, 9), (module.STAGE, 9, 9)]


def test_they_are_kept_for_others_and_a_damaged_file_is_made_anew(config, tmp_path, monkeypatch):
    model, targets = build_model(config(batch_norm="both"), 3), gather(config()).targets()
    found = target_statistics(model, targets, CPU, folder=tmp_path / "kept")
    [file] = (tmp_path / "kept").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:-8])
    assert same(found, target_statistics(model, targets, CPU, folder=tmp_path / "kept"))
    assert file.read_bytes() == content
    monkeypatch.setattr(module, "estimate_statistics", None)
    assert same(found, target_statistics(model, targets, CPU, folder=tmp_path / "kept"))


def test_too_few_images_are_refused(config):
    few = gather(config()).target
    with pytest.raises(ValueError, match="--batch-norm both needs at least 8 target images, got 3"):
        target_statistics(build_model(config(batch_norm="both"), 3), [few.subset([0, 1, 2])], CPU)


def test_networks_are_shared_by_the_images_whose_statistics_they_use(config):
    parts, data = SharedParts(), gather(config())
    both, fixed = config(batch_norm="both"), config(batch_norm="fixed")
    one, again, other = (parts.network(both, 3, lists) for lists in (data.targets(), data.targets(), [data.pool]))
    assert one.trunk("target") is again.trunk("target") is not other.trunk("target")
    plain = [parts.network(fixed, 3, lists).trunk("target") for lists in (data.targets(), [data.pool])]
    assert plain[0] is plain[1]


@pytest.mark.parametrize("trains", [None, "head"])
def test_a_run_with_them_is_loaded_exported_and_repeated(config, tmp_path, trains):
    asked = {"batch_norm": "both", "trains": trains, "keep": "layers", "protocol": "transductive"}
    report = fit_run(config(**asked))
    again = fit_run(config("again", **asked))
    assert report["accuracy"] == again["accuracy"]
    assert weights(config().out) == weights(config("again").out)
    run = load(config().out, trust=True)
    files = gather(config()).test.files
    listed = [row.labels[0] for row in read_predictions(config().out / "predictions.csv")]
    assert [row.label for row in run.predict([str(file) for file in files])] == listed
    fit_run(config("plain", **{**asked, "batch_norm": "fixed"}))
    assert weights(config().out) != weights(config("plain").out)
    run.export(tmp_path / "model.onnx")


def answers(monkeypatch, **certainty):
    """Let heads on both kinds of features answer held-out images with so much certainty in the right class."""

    def held_out(config, data, _store):
        labels = np.array(data.target.labels)
        wobble = 0.1 * np.arange(len(labels))[:, None] * (np.arange(3) == 0)
        return HeldOut(certainty[config.batch_norm] * np.eye(3)[labels] + wobble, labels)

    monkeypatch.setattr(room, "_held_out", held_out)


class Listening(Watcher):
    def __init__(self):
        self.notes = []

    def note(self, sentence):
        self.notes.append(sentence)


@pytest.mark.parametrize(("both", "kept"), [(3.0, "both"), (0.2, "fixed")])
@pytest.mark.parametrize("more", [{"trains": "head"}, {"keep": "layers"}, {}, {"shots": 3, "unlabelled": None}])
def test_held_out_images_decide_and_the_run_says_why(config, monkeypatch, both, kept, more):
    answers(monkeypatch, fixed=1.0, both=both)
    watcher = Listening()
    report = fit_run(config(**more), watcher)
    [told] = [note for note in watcher.notes if "style" in note]
    verdict = "counts" if kept == "both" else "does not count"
    assert told.startswith(f"the style of the target images {verdict} (--batch-norm {kept}): on frozen features ")
    assert told in report["data"]["notes"]
    assert read_config(config().out / "config.toml")["batch_norm"] == kept


def test_the_real_comparison_takes_two_passes_unless_one_is_likelier(config, monkeypatch):
    seen = {}
    real = room._held_out
    monkeypatch.setattr(room, "_held_out", lambda one, *rest: seen.setdefault(one.batch_norm, real(one, *rest)))
    fit_run(config(trains="head"))
    one, two = (seen[kind].log_likelihoods(room.fit_temperature(seen[kind], math.inf)) for kind in ("fixed", "both"))
    error = (two - one).std(ddof=1) / len(one) ** 0.5
    expected = "both" if (two - one).mean() > -room.LENIENCE * error else "fixed"
    assert read_config(config().out / "config.toml")["batch_norm"] == expected


@pytest.mark.parametrize(
    "more",
    [
        {"batch_norm": "fixed"},
        {"method": "s", "unlabelled": None},
        {"shots": 1},
        {"from_scratch": True, "backbone": "small-cnn", "image_size": 16},
    ],
)
def test_otherwise_nothing_is_compared(config, monkeypatch, more):
    monkeypatch.setattr(room, "_held_out", None)
    watcher = Listening()
    fit_run(config(keep="layers", **more), watcher)
    assert not [note for note in watcher.notes if "style" in note]
