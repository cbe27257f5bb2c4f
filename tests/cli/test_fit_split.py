"""`sohot fit --split`: a list of images takes the place of shots, whoever wrote it."""

import json
import shutil

import pytest
from command_line import QUICK, weights
from official_sets import make_office31

from sohot.data.protocols.split import as_ascii, sealed

STEPS = ("--steps", 3)


@pytest.fixture
def run(sohot, domains, tmp_path):
    assert sohot("fit", *domains.options(), "--shots", 2, "--seed", 5, *STEPS, "--out", tmp_path / "run").code == 0
    return tmp_path / "run"


def change(file, edit):
    """Change a stored split and seal it again, as a program would that writes its own."""
    content = json.loads(file.read_bytes())
    edit(content)
    file.write_bytes(as_ascii(sealed(content)))


def test_the_split_of_a_run_repeats_it(sohot, domains, run, tmp_path):
    again = tmp_path / "again"
    ended = sohot("fit", "--split", run / "split.json", *QUICK, "--seed", 5, *STEPS, "--out", again, "--json")
    assert ended.code == 0
    assert weights(again) == weights(run)
    assert (again / "predictions.csv").read_bytes() == (run / "predictions.csv").read_bytes()
    assert (again / "split.json").read_bytes() == (run / "split.json").read_bytes()
    assert f"--split {run / 'split.json'}" in ended.json["command"]
    moved = shutil.move(domains.target, tmp_path / "moved")
    options = ("--split", run / "split.json", "--target", moved, *QUICK, *STEPS)
    assert sohot("fit", *options, "--out", tmp_path / "third").code == 0
    ended = sohot("fit", "--split", run / "split.json", *QUICK, *STEPS, "--out", tmp_path / "fourth")
    assert ended.code == 2
    assert f"6 of 6 images of target_train are not in {domains.target}: blue/" in ended.last


def test_the_split_of_a_protocol(sohot, tmp_path):
    root, file = make_office31(tmp_path / "office31", {"amazon": 9, "dslr": 8, "webcam": 6}), tmp_path / "split.json"
    assert sohot("data", "split", "office31", root, "--shift", "A-W", "--out", file).code == 0
    options = ("fit", "--split", file, "--steps", 1, *QUICK, "--out", tmp_path / "run", "--json")
    assert "does not say where its images are: give that folder as --source and --target" in sohot(*options).last
    report = sohot(*options, "--source", root, "--target", root).json
    assert [report["data"][part]["images"] for part in ("source", "target", "test")] == [27, 9, 9]
    mine, theirs = (json.loads(path.read_bytes())["sides"] for path in (tmp_path / "run" / "split.json", file))
    assert mine["target_test"]["files"] == theirs["target_test"]["files"]


def test_a_method_takes_the_sides_it_uses(sohot, run_copy, tmp_path):
    for method, counts in (("s", (18, None)), ("t", (None, 9))):
        options = ("--split", run_copy / "split.json", "--method", method, *QUICK, *STEPS, "--out", tmp_path / method)
        data = sohot("fit", *options, "--json").json["data"]
        assert tuple(data[part] and data[part]["images"] for part in ("source", "target")) == counts
        assert data["test"]["images"] == 6


def _move_shot_to_test(content):
    for column in ("files", "labels"):
        content["sides"]["target_test"][column].append(content["sides"]["target_train"][column][0])


def _forget(side):
    def edit(content):
        content["sides"][side] = {"files": [], "labels": []}

    return edit


def _lose_a_class(content):
    kept = [row for row, label in enumerate(content["sides"]["target_train"]["labels"]) if label]
    for column in ("files", "labels"):
        content["sides"]["target_train"][column] = [content["sides"]["target_train"][column][row] for row in kept]


def _leave_the_folder(content):
    content["sides"]["target_test"]["files"][0] = "../../secret.png"


def _number_no_class(content):
    content["sides"]["target_test"]["labels"][0] = 7


def test_a_class_without_labelled_target_images_is_learned_from_the_source(sohot, run_copy, tmp_path):
    change(run_copy / "split.json", _lose_a_class)
    ended = sohot("fit", "--split", run_copy / "split.json", *QUICK, *STEPS, "--out", tmp_path / "new", "--json")
    assert [ended.json["data"][part]["per_class"] for part in ("source", "target")] == [[6, 6, 6], [0, 3, 3]]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_move_shot_to_test, "has 1 images both in target_train and in target_test"),
        (_forget("target_train"), "lists no target_train images, which --method means trains on"),
        (_leave_the_folder, "it names files outside its folder: ../../secret.png"),
        (_number_no_class, "labels must lie in 0 … 2, got 7"),
    ],
)
def test_a_wrong_split_is_refused(sohot, run_copy, tmp_path, edit, words):
    change(run_copy / "split.json", edit)
    ended = sohot("fit", "--split", run_copy / "split.json", *QUICK, "--out", tmp_path / "new")
    assert ended.code == 2
    assert words in ended.last


def test_a_changed_or_missing_file_and_options_that_exclude_it(sohot, run_copy, tmp_path):
    file = run_copy / "split.json"
    options = ("fit", *QUICK, "--out", tmp_path / "new", "--split")
    assert "--split and --shots exclude each other" in sohot(*options, file, "--shots", 1).last
    assert "gone.json: there is no such file" in sohot(*options, tmp_path / "gone.json").last
    file.write_text(file.read_text().replace("blue/0.png", "blue/1.png"))
    assert "it was changed after it was made" in sohot(*options, file).last
    file.write_text("no JSON")
    assert "is not JSON" in sohot(*options, file).last
