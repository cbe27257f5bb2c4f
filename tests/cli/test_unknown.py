"""Calibrated probabilities and refused answers: predict, evaluate, export and info on a run with held-out images."""

import csv
import io
import json

import numpy as np
import pytest
import torch

from sohot.runs import open_run, read_outputs
from sohot.runs.calibration_file import CALIBRATION, write_calibration
from sohot.selection.held_out import HeldOut

SURE = np.linspace(0.5, 6, 12)
"""How sure the held-out answers are, in logits."""


@pytest.fixture
def calibrated(run_copy):
    """A run whose held-out answers are too confident: of twelve, the three least and the third most sure are wrong."""
    labels = np.zeros(12, int)
    labels[[0, 1, 2, 9]] = 1
    write_calibration(run_copy, HeldOut(np.stack([SURE, -SURE, 0 * SURE - 9], 1), labels))
    return run_copy


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_predict_divides_by_the_temperature_and_keeps_the_answers(sohot, trained, calibrated):
    plain, honest = (
        sohot("predict", run, trained[1].test, "--top", 3, "--json").json["predictions"]
        for run in (trained[0], calibrated)
    )
    temperature = open_run(calibrated).temperature
    assert temperature > 1.05
    for before, after in zip(plain, honest, strict=True):
        assert before["label"] == after["label"]
        shares = {one["label"]: one["probability"] ** (1 / temperature) for one in before["top"]}
        expected = {name: share / sum(shares.values()) for name, share in shares.items()}
        assert {one["label"]: one["probability"] for one in after["top"]} == pytest.approx(expected, rel=1e-4)


def test_images_below_the_limit_are_unknown_and_their_guess_stays(sohot, trained, calibrated):
    plain = rows(sohot("predict", calibrated, trained[1].test, "--top", 2).out)
    limit = sorted(float(row["probability"]) for row in plain)[5] - 1e-6
    found = rows(sohot("predict", calibrated, trained[1].test, "--top", 2, "--unknown-below", limit).out)
    assert list(found[0]) == ["path", "label", "guess", "probability", "label_2", "probability_2"]
    for before, after in zip(plain, found, strict=True):
        assert after["label"] == ("unknown" if float(before["probability"]) < limit else before["label"])
        assert (after["guess"], after["probability"]) == (before["label"], before["probability"])
    assert [row["label"] for row in found].count("unknown") == 5


def test_what_is_unknown_is_counted(sohot, trained, calibrated, tmp_path):
    out = tmp_path / "labels.csv"
    ended = sohot("predict", calibrated, trained[1].test, "--unknown-below", 1, "--out", out)
    assert "12 images labelled in" in ended.out
    assert "12 of them unknown, 0 could not be read" in ended.out
    found = sohot("predict", calibrated, trained[1].test, "--unknown-below", 1, "--json").json
    assert found["unknown"] == {"below": 1.0, "images": 12}
    assert {(one["label"], one["guess"]) for one in found["predictions"]} == {
        ("unknown", name) for name in ("blue", "green", "red")
    }


def test_held_out_images_choose_the_limit_and_how_is_told(sohot, trained, calibrated):
    ended = sohot("predict", calibrated, trained[1].test, "--refuse-wrong", 0.6, "--json")
    words = " ".join(ended.err.split())
    assert "of 4 wrong held-out answers 3 lie below it, and 0 of 8 right ones too" in words
    assert "expect it to refuse 60.0 % of new wrong answers" in words
    known = json.loads((calibrated / CALIBRATION).read_text())
    below = [share < ended.json["unknown"]["below"] for share in known["confidence"]]
    assert below == [True] * 3 + [False] * 9
    ended = sohot("predict", calibrated, trained[1].test, "--refuse-wrong", 0.95)
    assert "4 lie below it, and 6 of 8 right ones too; expect it to refuse 80.0 % of new wrong answers, as so few" in (
        " ".join(ended.err.split())
    )


def test_evaluate_says_how_much_is_answered_and_how_well(sohot, trained, calibrated):
    found = sohot("evaluate", calibrated, trained[1].test, "--json").json
    effect = found["accuracy"]["calibration"]
    assert (effect["temperature"], effect["held_out"]) == (open_run(calibrated).temperature, 12)
    assert effect["ece_after"] > effect["ece_before"]  # all are right, and it has become less sure of them
    assert "unknown" not in found
    found = sohot("evaluate", calibrated, trained[1].test, "--unknown-below", 1, "--json").json["unknown"]
    assert (found["answered"], found["coverage"], found["accuracy_of_answered"]) == (0, 0, None)
    assert found["share_of_wrong_refused"] is None
    text = sohot("evaluate", calibrated, trained[1].test, "--unknown-below", 1e-9).out
    assert "answers 12 images (100.0 %), 100.0 % of them correctly" in text
    assert "before calibration by 12 held-out images (temperature" in text


def test_a_run_without_held_out_images_stays_as_it_is_and_says_so(sohot, trained):
    run, domains = trained
    accuracy = sohot("evaluate", run, domains.test, "--json").json["accuracy"]
    assert (accuracy["calibration"]["temperature"], accuracy["calibration"]["held_out"]) == (1.0, 0)
    assert accuracy["calibration"]["ece_before"] == accuracy["calibration"]["ece_after"]
    assert json.loads((run / "report.json").read_text())["accuracy"]["calibration"]["held_out"] == 0
    ended = sohot("predict", run, domains.test, "--unknown-below", 0.9)
    assert ended.code == 0
    assert "its probabilities are not calibrated" in ended.err
    assert "not calibrated" in sohot("info", run).out
    assert sohot("info", run, "--json").json["calibration"] is None
    ended = sohot("predict", run, domains.test, "--refuse-wrong", 0.9)
    assert ended.code == 2
    assert "needs held-out target images" in ended.last
    assert "--unknown-below" in ended.last


def test_without_a_wrong_held_out_answer_nothing_chooses(sohot, trained, run_copy):
    write_calibration(run_copy, HeldOut(4 * np.eye(3), [0, 1, 2]))
    ended = sohot("evaluate", run_copy, trained[1].test, "--refuse-wrong", 0.5)
    assert ended.code == 2
    assert "the 3 held-out target images" in ended.last
    assert "were all answered correctly" in ended.last


def test_a_class_named_unknown_is_not_mistaken_for_a_refusal(sohot, trained, calibrated, monkeypatch):
    monkeypatch.setattr("sohot.runs.predictions.UNKNOWN", "red")
    ended = sohot("predict", calibrated, trained[1].test, "--unknown-below", 0.5)
    assert ended.code == 2
    assert "a class of the run is named 'red'" in ended.last
    assert sohot("evaluate", calibrated, trained[1].test, "--unknown-below", 0.5).code == 0  # names nothing


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--unknown-below", 0), "--unknown-below must lie above 0 and be at most 1, got 0"),
        (("--unknown-below", "nan"), "--unknown-below must lie above 0"),
        (("--refuse-wrong", 80), "--refuse-wrong must lie above 0 and be at most 1, got 80"),
        (("--refuse-wrong", "most"), "Input should be a valid number"),
        (("--refuse-wrong", 0.5, "--unknown-below", 0.5), "give one of them"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_wrong_limits(sohot, trained, command, options, words):
    ended = sohot(command, trained[0], trained[1].test, *options)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.last


def test_a_damaged_calibration_ends_in_one_sentence(sohot, trained, calibrated):
    (calibrated / CALIBRATION).write_text((calibrated / CALIBRATION).read_text().replace('"temperature": ', "1"))
    for command in (("predict", trained[1].test), ("info",)):
        ended = sohot(command[0], calibrated, *command[1:])
        assert (ended.code, ended.out) == (2, "")
        assert "calibration.json is damaged" in ended.last


def test_a_resumed_run_writes_calibrated_predictions_and_raw_logits(sohot, trained, calibrated):
    before = read_outputs(trained[0]).logits
    (calibrated / "report.json").unlink()
    ended = sohot("fit", "--out", calibrated, "--resume", "--json")
    assert ended.code == 0, ended.err
    temperature = open_run(calibrated).temperature
    assert ended.json["accuracy"]["calibration"]["temperature"] == temperature
    assert torch.equal(read_outputs(calibrated).logits, before)
    found = [float(row["probability"]) for row in rows((calibrated / "predictions.csv").read_text())]
    assert found == pytest.approx((before / temperature).softmax(1).max(1).values.tolist(), abs=1e-5)
