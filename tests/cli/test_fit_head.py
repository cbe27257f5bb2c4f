"""`sohot fit --trains head`: a run like any other, whose classifier is a logistic regression on frozen features."""

import csv
import json

import numpy as np
import pytest
from command_line import make_domains, newest, weights
from pretrained import write_weights
from safetensors.numpy import load_file
from sklearn.linear_model import LogisticRegression

from sohot.cli import main
from sohot.methods import HeadSettings
from sohot.reporting import write_report
from sohot.runs import read_config


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    """A finished run, its images and its options; not to be changed."""
    root = tmp_path_factory.mktemp("head")
    domains = make_domains(root)
    options = [*domains.options(), "--shots", "3", "--weights", str(write_weights(root)), "--trains", "head"]
    with pytest.raises(SystemExit) as ended:
        main(["fit", *options, "--quiet", "--out", str(root / "run")])
    assert not ended.value.code
    return root / "run", domains, options


def test_it_is_the_logistic_regression_of_scikit_learn(head):
    """On the features that the run stored: of these few images, all."""
    run, _, _ = head
    stored, model = load_file(run / "test_outputs.safetensors"), load_file(newest(run) / "model.safetensors")
    split = json.loads((run / "split.json").read_text())["sides"]
    rows, labels = [], []
    for part in ("source", "target"):
        order = stored[f"{part}.rows"]
        rows.append(np.maximum(stored[f"{part}.after"], 0).astype(np.float64))  # the classifier sees them after a ReLU
        labels.append(np.array(split[f"{part}_train"]["labels"])[order])
    seen, truth = np.concatenate(rows), np.concatenate(labels)
    assert [len(part) for part in rows] == [18, 9]
    share = np.repeat([0.5 / 18, 0.5 / 9], [18, 9])
    penalty = HeadSettings().head_decay * ((seen - seen.mean(0)) ** 2).mean()
    expected = LogisticRegression(C=1 / (2 * penalty), tol=1e-9, max_iter=10_000).fit(seen, truth, sample_weight=share)
    logits = seen @ model["heads.both.weight"].T + model["heads.both.bias"]
    found = np.exp(logits - logits.max(1, keepdims=True))
    np.testing.assert_allclose(found / found.sum(1, keepdims=True), expected.predict_proba(seen), atol=1e-3)


def test_it_writes_what_every_run_writes(head, sohot):
    run, domains, _ = head
    report = json.loads((run / "report.json").read_text())
    assert (report["method"], report["trains"], report["steps"]) == ("s+t", "head", 0)
    assert report["head"]["held_out"]["images"] == 9
    assert report["head"]["test"]["right"] == report["accuracy"]["correct"]
    stored = read_config(run / "config.toml")
    assert (stored["trains"], stored["method"]) == ("head", "s+t")
    with (run / "predictions.csv").open() as file:
        assert len(list(csv.DictReader(file))) == report["accuracy"]["rows"] == 6
    assert sohot("evaluate", run, domains.test, "--json").json["accuracy"]["micro"] == 1.0
    assert sohot("predict", run, domains.test).code == 0
    assert "finished, on frozen features" in sohot("info", run).out
    page = run.parent / "page.html"
    assert sohot("report", run, "--out", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "without alignment (s+t), on frozen features" in text
    assert "Of its 9 labelled target images, held out in turn, it gets 9 right." in text
    assert "before training" not in text  # there is but one picture of the features


def test_resuming_a_finished_one_changes_nothing(head, sohot):
    run, _, _ = head
    before, report = weights(run), json.loads((run / "report.json").read_text())
    ended = sohot("fit", "--out", run, "--resume", "--json")
    assert ended.code == 0
    assert weights(run) == before
    assert (ended.json["accuracy"], ended.json["head"]) == (report["accuracy"], report["head"])
    assert sohot("fit", *head[2], "--out", run).code == 2  # not twice into one folder


def test_people_read_what_it_is(head, sohot, tmp_path):
    ended = sohot(
        "fit", *head[2], "--method", "so", "--orders", "2,3", "--sigma1", "0.1,0.2", "--out", tmp_path / "run"
    )
    assert ended.code == 0
    assert "--method so comes to a logistic regression on frozen features (--method s+t)" in ended.err
    assert "of 9 held-out target images and" in ended.out
    assert "s+t: a classifier on frozen features in" in ended.out
    assert weights(tmp_path / "run") == weights(head[0])


@pytest.mark.parametrize(("method", "domains"), [("s", ["source", "test"]), ("t", ["target", "test"])])
def test_one_domain(head, sohot, tmp_path, method, domains):
    report = sohot("fit", *head[2], "--method", method, "--json", "--out", tmp_path / "run").json
    assert report["method"] == method
    assert [part for part in ("source", "target", "test") if report["data"][part]] == domains
    assert (report["head"]["held_out"] is None) == (method == "s")


@pytest.mark.parametrize("more", [("--augment",), ("--cache", "off"), ("--cache", "disk")])
def test_wherever_features_are_kept(head, sohot, tmp_path, more):
    assert sohot("fit", *head[2], *more, "--out", tmp_path / "run").code == 0
    ours, theirs = (load_file(newest(run) / "model.safetensors") for run in (tmp_path / "run", head[0]))
    np.testing.assert_allclose(ours["heads.both.weight"], theirs["heads.both.weight"], atol=1e-3)


def test_both_of_coupled_classifiers_are_it(head, sohot, tmp_path):
    assert sohot("fit", *head[2], "--heads", "coupled", "--out", tmp_path / "run").code == 0
    ours, theirs = (load_file(newest(run) / "model.safetensors") for run in (tmp_path / "run", head[0]))
    for domain in ("source", "target"):
        np.testing.assert_array_equal(ours[f"heads.{domain}.weight"], theirs["heads.both.weight"])


def test_a_stop_while_images_pass_leaves_nothing_to_mend(head, sohot, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sohot.runs.train_and_test.frozen_start", stop)
        ended = sohot("fit", *head[2], "--out", tmp_path / "run")
    assert ended.code == 130
    assert "run the same command again" in ended.last
    assert sohot("fit", *head[2], "--out", tmp_path / "run").code == 0
    assert weights(tmp_path / "run") == weights(head[0])


def test_an_untrained_network_trains_its_classifier_by_steps_as_ever(sohot, domains, tmp_path):
    report = sohot(
        "fit", *domains.options(), "--shots", 3, "--trains", "head", "--steps", 2, "--json", "--out", tmp_path / "run"
    ).json
    assert (report["steps"], report["method"], report["head"]) == (2, "means", None)


def test_layers_start_from_it(head, sohot, tmp_path):
    """With a learning rate that moves nothing, what trained is where it began."""
    more = ("--trains", "paper", "--keep", "layers", "--steps", 1, "--lr", "1e-20", "--json")
    report = sohot("fit", *head[2], *more, "--out", tmp_path / "run").json
    assert report["steps"] == 1
    assert report["head"] == json.loads((head[0] / "report.json").read_text())["head"]
    ours, theirs = (load_file(newest(run) / "model.safetensors") for run in (tmp_path / "run", head[0]))
    np.testing.assert_allclose(ours["heads.both.weight"], theirs["heads.both.weight"], atol=1e-4)
    told = " ".join(sohot("info", tmp_path / "run").out.split())
    assert "100.0 % of 9 held-out target images and 100.0 % of 6 test images right" in told
    page = write_report(tmp_path / "run", images=0).read_text(encoding="utf-8")
    assert "Training started from a classifier on frozen features that gets 100.0 % of 9 held-out" in page


def test_its_probabilities_are_calibrated_by_its_held_out_images(head, sohot):
    run, domains, _ = head
    effect = json.loads((run / "report.json").read_text())["accuracy"]["calibration"]
    known = sohot("info", run, "--json").json["calibration"]
    assert (effect["held_out"], known["rows"], effect["temperature"]) == (9, 9, known["temperature"])
    assert effect["temperature"] != 1
    logits = load_file(run / "test_outputs.safetensors")["logits"].astype(np.float64) / effect["temperature"]
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    with (run / "predictions.csv").open() as file:
        stored = [float(row["probability"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(stored, shares.max(1), atol=1e-5)
    again = sohot("evaluate", run, domains.test, "--json").json["accuracy"]["calibration"]
    assert (again["temperature"], again["held_out"]) == (effect["temperature"], 9)
