"""`sohot fit --unlabelled`: what a run says about images without labels, and what it calls its accuracy."""

import json
from pathlib import Path

import pytest
from command_line import QUICK, make_domains, write_images
from pretrained import write_weights

from sohot.cli import main
from sohot.methods import POOL_NAMES
from sohot.reporting.pages.run_images import stored_images
from sohot.runs import logits_of, open_run, read_outputs, read_predictions
from sohot.runs.split_file import read_pool

STEPS = ("--steps", 2)


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    """A run that is tested on its pool; not to be changed."""
    root = tmp_path_factory.mktemp("pooled")
    domains = make_domains(root)
    options = [*domains.options(), "--shots", 2, "--unlabelled", "rest", *STEPS, "--quiet", "--out", root / "run"]
    with pytest.raises(SystemExit) as ended:
        main(["fit", *map(str, options)])
    assert not ended.value.code
    return root / "run", domains


def test_every_unlabelled_image_gets_a_label(pooled):
    run, _ = pooled
    labels, tested = read_predictions(run / "pool.csv"), read_predictions(run / "predictions.csv")
    assert [one.file for one in labels] == [one.file for one in tested]  # the test is the pool
    assert [one.labels for one in labels] == [one.labels for one in tested]
    assert [one.probabilities for one in labels] == [one.probabilities for one in tested]
    assert (run / "pool.csv").read_text().startswith("path,label,probability,label_2,probability_2\n")  # and no truth


def test_the_run_stores_what_it_makes_of_the_pool(pooled):
    run, _ = pooled
    outputs, pool = read_outputs(run), read_pool(run)
    assert outputs.pool_logits.equal(outputs.logits)
    assert outputs.features["pool"].rows.tolist() == list(range(len(pool)))
    assert outputs.features["pool"].after.equal(outputs.features["test"].after)
    assert stored_images(run).images["pool"] == pool
    loaded = open_run(run)
    assert logits_of(loaded, pool, 0).allclose(outputs.pool_logits, atol=1e-4)


def test_every_output_calls_the_accuracy_transductive(pooled, sohot, tmp_path):
    run, domains = pooled
    report = json.loads((run / "report.json").read_bytes())
    assert report["protocol"] == "transductive"
    assert report["data"]["pool"] == {"folder": str(domains.target), "images": 9}
    assert "--unlabelled rest" in report["command"]
    told = sohot("info", run, "--json").json
    assert (told["protocol"], told["data"]["pool"]["images"]) == ("transductive", 9)
    text = sohot("info", run).out
    assert "transductive accuracy" in text
    assert "9 images without labels from" in text
    ended = sohot("evaluate", run, domains.target)
    assert "Transductive accuracy on the target" in ended.out
    assert ended.out.splitlines()[-1].startswith("transductive accuracy ")
    assert "9 of 9 test images are among the unlabelled images" in ended.err
    assert sohot("evaluate", run, domains.test, "--json").json["protocol"] == "inductive"
    page = tmp_path / "page.html"
    assert sohot("report", run, "--out", page, "--images", 0, "--quiet").code == 0
    assert "transductive accuracy" in page.read_text()
    assert "unseen target images" not in page.read_text()


def test_a_run_without_a_pool_keeps_its_words(trained, sohot):
    run, domains = trained
    ended = sohot("evaluate", run, domains.test, "--json")
    assert (ended.json["protocol"], ended.json["notes"]) == ("supervised", [])
    assert not (run / "pool.csv").exists()
    assert "\naccuracy " in sohot("info", run).out


def test_the_split_of_a_run_repeats_its_pool(pooled, sohot, tmp_path):
    run, _ = pooled
    again = tmp_path / "again"
    ended = sohot("fit", "--split", run / "split.json", *QUICK, *STEPS, "--out", again)
    assert ended.code == 0
    for name in ("split.json", "pool.csv", "predictions.csv"):
        assert (again / name).read_bytes() == (run / name).read_bytes()
    assert f"labels of 9 unlabelled images: {again / 'pool.csv'}" in ended.out
    assert ", transductive accuracy " in ended.out.splitlines()[-1]  # whatever method a run with a pool keeps
    assert "pool: 9 images without labels, from " in ended.err


def test_folders_are_a_pool_and_another_pool_is_another_run(sohot, domains, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_images(Path("rest"), 1, 40, 8)
    (domains.test / "red" / "broken.png").write_bytes(b"no picture")
    folders = ("--unlabelled", "./rest", "--unlabelled", domains.test)
    run = tmp_path / "run"
    ended = sohot("fit", *domains.options(), *folders, "--shots", 2, *STEPS, "--out", run, "--json")
    assert ended.json["protocol"] == "inductive"
    assert ended.json["data"]["pool"] == {"folder": f"{tmp_path / 'rest'}, {domains.test}", "images": 15}
    assert [Path(one["path"]).name for one in ended.json["data"]["left_out"]] == ["broken.png"]
    assert {one.file.parts[0] for one in read_predictions(run / "pool.csv")} == {"rest", "test"}
    outputs = read_outputs(run)
    assert logits_of(open_run(run), read_pool(run), 0).allclose(outputs.pool_logits, atol=1e-4)
    assert set(outputs.features) == {"source", "target", "test", "pool"}
    assert sohot("fit", "--out", run, "--resume", "--quiet").code == 0
    (tmp_path / "rest" / "red" / "0.png").rename(tmp_path / "rest" / "red" / "9.png")
    ended = sohot("fit", "--out", run, "--resume", "--quiet")
    assert ended.code == 2
    assert "pool" in ended.last


def test_its_labels_are_those_of_predict_calibrated_too(sohot, domains, tmp_path):
    run, table = tmp_path / "run", tmp_path / "labels.csv"
    frozen = ("--weights", write_weights(tmp_path), "--trains", "head", "--shots", 3)  # trains without the pool
    assert sohot("fit", *domains.options(), *frozen, "--unlabelled", domains.test, "--out", run, "--quiet").code == 0
    assert json.loads((run / "calibration.json").read_bytes())["temperature"] != 1
    assert sohot("predict", run, domains.test, "--top", 2, "--out", table, "--quiet").code == 0
    for mine, theirs in zip(read_predictions(run / "pool.csv"), read_predictions(table), strict=True):
        assert (domains.test / mine.file, mine.labels) == (theirs.file, theirs.labels)
        assert mine.probabilities == pytest.approx(theirs.probabilities, abs=1e-4)


def test_evaluation_says_which_unlabelled_images_it_cannot_compare(sohot, pooled, tmp_path):
    run, domains = pooled
    moved = Path(domains.target).rename(tmp_path / "moved")
    try:
        ended = sohot("evaluate", run, domains.test, "--json")
    finally:
        moved.rename(domains.target)
    gone = "images of the run can no longer be found: test images might be among them"
    assert ended.json["notes"] == [f"6 training {gone}", f"9 unlabelled {gone}"]


def test_options_about_unlabelled_images_need_some(sohot, tmp_path):
    domains = make_domains(tmp_path)
    ended = sohot("fit", *domains.options(), "--shots", 2, "--threshold", 0.5, "--out", tmp_path / "run")
    assert "--threshold is about unlabelled images: give --unlabelled, too" in ended.err


def test_american_spelling_is_taken(sohot, domains, tmp_path):
    (tmp_path / "options.toml").write_text(f"unlabeled = ['{domains.test}']\n")
    given = (("--unlabeled", domains.test), (f"--unlabeled={domains.test}",), ("--config", tmp_path / "options.toml"))
    for number, words in enumerate(given):
        run = tmp_path / str(number)
        ended = sohot("fit", *domains.options(), "--shots", 2, *STEPS, *words, "--out", run, "--json")
        assert ended.json["data"]["pool"]["images"] == 12
    assert "unlabeled" not in sohot("fit", "--help").out


@pytest.mark.parametrize("name", POOL_NAMES)
def test_a_method_without_the_unlabelled_images_it_learns_from_is_refused(sohot, domains, tmp_path, name):
    done = sohot("fit", *domains.options(), "--shots", 2, *STEPS, "--method", name, "--out", tmp_path / "run")
    assert done.code == 2
    assert f"--method {name} learns from unlabelled target images: give their folder as --unlabelled" in done.last
    assert not (tmp_path / "run").exists()


def test_the_demo_has_no_unlabelled_images(sohot, tmp_path):
    done = sohot("demo", "--methods", "s+t,mcc", "--out", tmp_path / "demo")
    assert done.code == 2
    assert "'mcc' learns from unlabelled images, which the demo does not have" in done.last
