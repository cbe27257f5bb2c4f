"""`sohot fit`: what it prints, what it stores, and that options mean what they say."""

import json
import shlex
import shutil
from dataclasses import fields

import pytest
import torch
from command_line import QUICK, count_trunk_images, weights, write_images
from pretrained import write_weights

from sohot.experiments.cell import relevant_settings
from sohot.methods import method
from sohot.methods.registry import method_that_looks_at
from sohot.runs import RunConfig


def fit(sohot, domains, out, *more):
    return sohot("fit", *domains.options(), "--steps", 4, "--shots", 2, "--out", out, *more)


def test_json_is_the_one_thing_on_standard_output(sohot, domains, tmp_path):
    ended = fit(sohot, domains, tmp_path / "run", "--json")
    assert ended.code == 0
    report = ended.json
    assert report["data"]["classes"] == ["blue", "green", "red"]
    assert [report["data"][part]["images"] for part in ("source", "target", "test")] == [18, 6, 9]
    assert report["steps"] == 4
    accuracy = report["accuracy"]
    assert set(accuracy["per_class"]) == {"blue", "green", "red"}
    assert accuracy["interval95"][0] <= accuracy["micro"] <= accuracy["interval95"][1]
    assert json.loads((tmp_path / "run" / "report.json").read_text()) == report
    assert "step 4/4 loss" in ended.err


def test_by_default_class_means_are_drawn_together_for_100_steps(sohot, domains, tmp_path):
    run = tmp_path / "run"
    report = sohot("fit", *domains.options(), "--shots", 2, "--out", run, "--json").json
    assert (report["method"], report["steps"]) == ("means", 100)
    assert report["last_step"]["means"] > 0 == report["last_step"]["order2"]
    assert "--method means" in report["command"]
    assert sohot("fit", "--out", run, "--resume", "--json").json["resumed_from"] == 100
    assert fit(sohot, domains, tmp_path / "weak", "--sigma2", "0").code == 0
    assert fit(sohot, domains, tmp_path / "strong", "--sigma2", "1").code == 0
    assert weights(tmp_path / "weak") != weights(tmp_path / "strong")


def test_options_of_other_methods_need_a_method(sohot, domains, tmp_path):
    ended = fit(sohot, domains, tmp_path / "run", "--sigma1", "0.1")
    assert ended.code == 2
    assert ended.last.endswith("means, ignores --sigma1: name one that does not, such as --method so")
    file = tmp_path / "options.toml"
    file.write_text("orders = [2, 3]\nalpha1 = 1.0\n")
    ended = fit(sohot, domains, tmp_path / "run", "--config", file)
    assert ended.code == 2
    assert ended.last.endswith("--orders, --alpha1: name one that does not, such as --method so+zeta")
    assert not (tmp_path / "run").exists()
    assert fit(sohot, domains, tmp_path / "run", "--config", file, "--method", "so+zeta").code == 0
    named = fit(sohot, domains, tmp_path / "named", "--method", "means", "--sigma1", "0.2", "--json")
    _, *words, _, _ = shlex.split(named.json["command"])
    assert sohot(*words, "--out", tmp_path / "again").code == 0
    assert weights(tmp_path / "named") == weights(tmp_path / "again")


def test_no_option_that_the_default_leaves_aside_is_forgotten():
    def dropped(name):
        defaults = {one.name: one.default for one in fields(RunConfig)}
        return set(defaults) - set(relevant_settings(name, defaults, pool="transductive"))

    ignored = method(RunConfig.method).ignored()
    assert set(ignored) == dropped(RunConfig.method) - {"coupling"}  # which depends on --heads
    assert all(name not in dropped(method_that_looks_at(name)) for name in ignored)


def test_people_see_data_progress_and_accuracy(sohot, domains, tmp_path):
    ended = fit(sohot, domains, tmp_path / "run")
    for words in ("3 classes", "source: 18 images, 6 per class", "target: 6 images, 2 per class", "test: 9 images"):
        assert words in ended.err
    for words in ("micro", "macro", "95 % interval", "green"):
        assert words in ended.out


def test_quiet_keeps_to_what_matters(sohot, domains, tmp_path):
    ended = fit(sohot, domains, tmp_path / "run", "--quiet")
    assert ended.err == ""
    assert "micro" in ended.out


def test_quiet_still_says_what_may_be_wrong(sohot, domains, tmp_path):
    (domains.source / "red" / "damaged.png").write_bytes(b"no image")
    ended = fit(sohot, domains, tmp_path / "run", "--quiet")
    assert ended.code == 0
    assert ended.err.splitlines()[0] == "left out 1:"
    assert "damaged.png" in ended.err.splitlines()[1]
    assert len(ended.err.splitlines()) == 2


def test_source_shots_limit_each_class_and_short_ones_are_named(sohot, domains, tmp_path):
    for number in range(3, 6):
        (domains.source / "red" / f"{number}.png").unlink()
    ended = fit(sohot, domains, tmp_path / "run", "--source-shots", 4, "--json")
    assert ended.json["data"]["source"]["per_class"] == [4, 4, 3]
    assert "red (3)" in ended.err


def test_without_shots_nothing_is_left_to_test_on(sohot, domains, tmp_path):
    ended = sohot("fit", *domains.options(), "--steps", 2, "--out", tmp_path / "run", "--json")
    assert ended.code == 0
    assert ended.json["accuracy"] is None
    assert ended.json["data"]["target"]["images"] == 15
    assert "none are left to test on" in ended.err


def test_shots_of_a_target_with_a_test_of_its_own(sohot, domains, tmp_path):
    (domains.target / "red" / "0.png").unlink()
    options = ("fit", *domains.options(), "--steps", 2, "--target-test", domains.test, "--json", "--shots")
    for shots, rows, note in (
        (5, 14, "1 target classes have fewer than 5 images, all of which are used: red (4)"),
        (3, 9, "5 target images beyond --shots 3 are not used"),
    ):
        data = sohot(*options, shots, "--out", tmp_path / str(shots)).json["data"]
        assert ([data[part]["images"] for part in ("target", "test")], data["notes"]) == ([rows, 12], [note])
    pool = ("--unlabelled", "rest", "--protocol", "inductive", "--out", tmp_path / "pool")
    data = sohot(*options, 3, *pool).json["data"]
    assert ([data[part]["images"] for part in ("target", "pool", "test")], data["notes"]) == ([9, 5, 12], [])
    ended = sohot(*options[:-4], "--shots", 5, "--out", tmp_path / "short")
    assert (ended.code, "these classes have fewer images: 'red' (4)" in ended.last) == (2, True)


def test_a_class_that_the_target_lacks_is_learned_from_the_source(sohot, domains, tmp_path):
    shutil.rmtree(domains.target / "red")
    note = "the target has no labelled image of these classes, which are learned from the source alone: red"
    for name in ("means", "so", "m", "s"):
        ended = fit(sohot, domains, tmp_path / name, "--method", name, "--json")
        assert (ended.code, ended.json["data"]["classes"]) == (0, ["blue", "green", "red"])
        assert note in ended.err
    assert sohot("evaluate", tmp_path / "means", domains.test, "--json").json["accuracy"]["rows"] == 12
    ended = fit(sohot, domains, tmp_path / "t", "--method", "t")  # has nothing to learn it from
    assert (ended.code, "in the source 'red'" in ended.last) == (2, True)
    assert fit(sohot, domains, tmp_path / "two", "--leave-out", "--json").json["data"]["classes"] == ["blue", "green"]


def test_one_image_of_each_class_cannot_be_held_out(sohot, domains, tmp_path):
    options = ("--weights", write_weights(tmp_path), "--trains", "head", "--shots", 1)
    for number, test in enumerate(((), ("--target-test", domains.test))):
        for kind in domains.target.iterdir():
            for file in sorted(kind.iterdir())[1:]:
                file.unlink()
        ended = sohot("fit", *domains.options(), *options, *test, "--out", tmp_path / f"run{number}")
        assert "no class has two labelled target images, so none can be held out" in ended.out
        assert "nothing" not in ended.out


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed"])
def test_precisions(sohot, domains, tmp_path, precision):
    run = tmp_path / "run"
    assert fit(sohot, domains, run, "--trains", "paper", "--precision", precision).code == 0
    assert sohot("evaluate", run, domains.test).code == 0


def test_the_target_alone_needs_no_source(sohot, domains, tmp_path):
    options = domains.options()[2:]
    ended = sohot("fit", *options, "--method", "t", "--shots", 2, "--steps", 2, "--out", tmp_path / "run", "--json")
    assert ended.json["data"]["source"] is None


@pytest.fixture
def second(tmp_path):
    """Another source, which lacks a class."""
    folder = write_images(tmp_path / "second", 3, -30, seed=9)
    shutil.rmtree(folder / "red")
    return folder


def test_several_sources_are_pooled_and_all_are_named(sohot, domains, second, tmp_path):
    run = tmp_path / "run"
    ended = fit(sohot, domains, run, "--source", second, "--json")
    assert ended.code == 0
    both = f"{domains.source}, {second}"
    assert f"source: 24 images, 6 to 9 per class, from {both}" in ended.err
    assert ended.json["data"]["source"] == {"folder": both, "images": 24, "per_class": [9, 9, 6]}
    assert f"--source {domains.source} --source {second} --target" in ended.json["command"]
    assert f'source = [\n    "{domains.source}",\n    "{second}",\n]' in (run / "config.toml").read_text()
    split = json.loads((run / "split.json").read_bytes())
    assert split["folders"]["source_train"] == str(tmp_path)
    assert {name.split("/")[0] for name in split["sides"]["source_train"]["files"]} == {"source", "second"}
    assert sohot("info", run, "--json").json["data"]["source"]["folder"] == both
    assert sohot("fit", "--config", run / "config.toml", "--out", tmp_path / "again").code == 0
    assert sohot("fit", "--out", run, "--resume").code == 0
    split = ("--split", run / "split.json", *QUICK, "--steps", 4)
    assert sohot("fit", *split, "--out", tmp_path / "listed").code == 0
    assert weights(run) == weights(tmp_path / "again") == weights(tmp_path / "listed")
    fit(sohot, domains, tmp_path / "alone")
    assert weights(run) != weights(tmp_path / "alone")


def test_sources_that_are_one_folder_are_refused(sohot, domains, tmp_path):
    ended = fit(sohot, domains, tmp_path / "run", "--source", domains.source / ".." / "source")
    assert ended.code == 2
    assert ended.last.endswith(f"--source {domains.source} was given twice")


def test_epochs_count_passes(sohot, domains, tmp_path):
    options = ("fit", *domains.options(), "--shots", 2, "--out", tmp_path / "run", "--json")
    assert sohot(*options, "--epochs", 3, "--source-per-class", 2).json["steps"] == 9  # 6 images, 2 at a time


def test_same_seed_same_weights(sohot, domains, tmp_path):
    for name in ("one", "two"):
        fit(sohot, domains, tmp_path / name)
    fit(sohot, domains, tmp_path / "other", "--seed", 1)
    assert weights(tmp_path / "one") == weights(tmp_path / "two") != weights(tmp_path / "other")


def test_every_image_passes_the_frozen_trunk_once(sohot, domains, tmp_path, monkeypatch):
    passed = count_trunk_images(monkeypatch)
    fit(sohot, domains, tmp_path / "run", "--trains", "paper", "--steps", 5)
    assert sum(passed) == 18 + 6 + 9  # source, target, test


def test_the_cache_changes_nothing(sohot, domains, tmp_path):
    losses = {}
    for cache in ("memory", "disk", "off"):
        ended = fit(sohot, domains, tmp_path / cache, "--trains", "paper", "--cache", cache, "--json")
        losses[cache] = ended.json["last_step"]["loss"]
        assert not (tmp_path / cache / "cache").exists()
    assert losses["memory"] == losses["disk"] == pytest.approx(losses["off"], rel=1e-5)


def test_augmented_images_differ_from_step_to_step(sohot, domains, tmp_path):
    plain, augmented = tmp_path / "plain", tmp_path / "augmented"
    assert fit(sohot, domains, plain).code == fit(sohot, domains, augmented, "--augment").code == 0
    assert weights(plain) != weights(augmented)


def test_grey_source_images_have_a_stream_of_their_own(sohot, domains, tmp_path):
    run = tmp_path / "run"
    assert fit(sohot, domains, run, "--source-channels", 1).code == 0
    network = json.loads((run / "run.json").read_text())["config"]["network"]
    assert (network["streams"], network["source_channels"], network["channels"]) == ("separate", 1, 3)
    assert sohot("evaluate", run, domains.test).code == 0


def test_a_configuration_file_stands_for_options(sohot, domains, tmp_path):
    file = tmp_path / "options.toml"
    file.write_text(
        f'source = "{domains.source}"\ntarget = "{domains.target}"\nshots = 2\nsteps = 4\n'
        'backbone = "small-cnn"\nimage-size = 16\n[machine]\ndevice = "cpu"\nloggers = "none"\n'
    )
    ended = sohot("fit", "--config", file, "--out", tmp_path / "file", "--json")
    assert ended.code == 0
    fit(sohot, domains, tmp_path / "line")
    assert weights(tmp_path / "file") == weights(tmp_path / "line")
    wins = sohot("fit", "--config", file, "--steps", 3, "--out", tmp_path / "wins", "--json")
    assert wins.json["steps"] == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sorce = 'x'", "unknown option 'sorce'; did you mean 'source'?"),
        ("steps = 'many'", "--steps must be an integer, got 'many'"),
        ("shots = 2.5", "--shots must be an integer"),
        ("steps = ", "is not TOML"),
        ("steps = 1\n[more]\nsteps = 2", "'steps' appears twice"),
    ],
)
def test_a_wrong_configuration_file_is_refused(sohot, tmp_path, text, words):
    file = tmp_path / "options.toml"
    file.write_text(text)
    ended = sohot("fit", "--config", file, "--out", tmp_path / "run")
    assert ended.code == 2
    assert words in ended.last


def test_the_configuration_of_a_run_that_never_began_is_not_kept(sohot, domains, tmp_path, monkeypatch):
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("sohot.runs.trunk_store.trunk_outputs", lambda *_: 1 / 0)
        ended = sohot("fit", *domains.options(), "--shots", "3", "--out", str(run))
        assert ended.code == 1
        assert "unexpected ZeroDivisionError: division by zero; please report it" in ended.last
    assert "shots = 3" in (run / "config.toml").read_text()
    fit(sohot, domains, run)
    assert "shots = 2" in (run / "config.toml").read_text()


def test_training_leaves_the_callers_randomness_alone(sohot, domains, tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    fit(sohot, domains, tmp_path / "run")
    assert torch.rand(1) == expected
