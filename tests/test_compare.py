"""`tests/compare.py`: its quick scenarios run, and its table says what differs."""

import sys
from pathlib import Path

import compare
import numpy as np
import pytest


@pytest.fixture
def here() -> compare.Side:
    return compare.Side(compare.HERE, Path(sys.executable), {})


def test_a_checkout_equals_itself(here):
    results = [compare.run_scenario("losses-float64", here) for _ in range(2)]
    assert compare.compare("losses-float64", *results)[2:] == (0, "")


def test_splits_of_all_protocols_are_compared(here):
    assert len(compare.run_scenario("splits", here)) > 100


def test_a_scenario_that_fails_is_a_row(here, tmp_path):
    result = compare.run_scenario("losses-float64", here._replace(root=tmp_path))
    assert "sohot is imported from" in result
    row = compare.compare("losses-float64", {"loss": np.ones(2)}, result)
    assert row.largest == np.inf
    assert row.notes == f"BASE: {result}"


@pytest.mark.parametrize(
    ("other", "largest", "note"),
    [
        ({"loss": np.array([1.0, 2.0]), "label": np.array(["mug"])}, 0, ""),
        ({"loss": np.array([1.0, 2.5]), "label": np.array(["mug"])}, 0.5, "1 of 2 values differ, most: loss"),
        ({"loss": np.array([1.0, np.nan]), "label": np.array(["mug"])}, np.inf, "1 of 2 values differ, most: loss"),
        ({"loss": np.array([1.0, 2.0]), "label": np.array(["cup"])}, np.inf, "1 of 2 values differ, most: label"),
        ({"loss": np.array([1.0, 2.0])}, np.inf, "only here: 1 values (label)"),
    ],
)
def test_differences_are_measured(other, largest, note):
    row = compare.compare("fit", {"loss": np.array([1.0, 2.0]), "label": np.array(["mug"])}, other)
    assert (row.largest, row.notes) == (largest, note)


def test_a_scenario_is_said_in_the_words_of_each_side(monkeypatch):
    monkeypatch.setattr(compare, "_older", {"--train none": "--trains head", "sohot.losses:New": "sohot:Old"})
    assert compare.words("fit --train none --train-more --out x") == "fit --trains head --train-more --out x"
    assert compare.words("sohot.losses:New") == "sohot:Old"


@pytest.mark.parametrize(("allowed", "code"), [([], 1), (["--allow", "splits"], 0)])
def test_the_exit_code_says_whether_anything_differs(here, monkeypatch, capsys, allowed, code):
    monkeypatch.setattr(compare, "checkout", lambda *_: here._replace(root=Path("build/compare/9d26b0e/files")))
    monkeypatch.setattr(compare, "run_scenario", lambda _, side: {"x": np.array(float(side.root == compare.HERE))})
    assert compare.main(["9d26b0e", "--only", "splits", *allowed]) == code
    assert "splits    1 values: 1 numbers, 0 texts  1 " in capsys.readouterr().out
