"""A cell's key changes with everything that changes its result, and with nothing else."""

import hashlib
import json
from dataclasses import replace

import pytest

from sohot.experiments.cell import Cell, relevant_settings

CELL = Cell("office31", "A-W", 1, "so", "lite0", settings={"steps": 5, "lr": 0.1}, data="abc")


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "domains"},
        {"shift": "W-A"},
        {"split": 2},
        {"method": "s+t"},
        {"backbone": "alexnet"},
        {"protocol": "rectified"},
        {"draw": {"target_shots": 5}},
        {"settings": {"steps": 6, "lr": 0.1}},
        {"frozen": True},
        {"select": "cv"},
        {"search": {"trials": 3}},
        {"data": "abd"},
        {"weights": "abc"},
        {"pool": "transductive"},
        {"pool": "inductive"},
    ],
)
def test_every_field_is_part_of_the_key(change):
    assert replace(CELL, **change).key != CELL.key


def test_the_order_of_settings_and_the_place_of_files_are_not():
    assert replace(CELL, settings={"lr": 0.1, "steps": 5}).key == CELL.key
    here, there = (replace(CELL, settings={"weights": f"{place}/net.safetensors"}) for place in ("/a", "/b"))
    assert here.key == there.key != replace(CELL, settings={"weights": "/a/other.safetensors"}).key


def test_a_number_of_steps_that_is_not_said_is_part_of_the_key():
    silent, aloud = (replace(CELL, settings=settings) for settings in ({"lr": 0.1}, {"lr": 0.1, "steps": 100}))
    assert silent.key == aloud.key != replace(CELL, settings={"lr": 0.1, "steps": 200}).key
    without = json.dumps({**silent.as_dict(), "results_version": 1}, sort_keys=True, separators=(",", ":"))
    assert silent.key != hashlib.sha256(without.encode()).hexdigest()  # which were 200 steps before the default changed
    epochs = replace(CELL, settings={"epochs": 3})
    assert epochs.key != replace(CELL, settings={"epochs": 3, "steps": 100}).key
    frozen = replace(CELL, frozen=True, settings={})  # with a default of its own
    assert frozen.key != replace(frozen, settings={"steps": 100}).key


def test_a_cell_survives_json_and_serves_as_a_key():
    assert Cell.from_dict(CELL.as_dict()) == CELL
    assert {CELL: 1}[replace(CELL)] == 1


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    ("method", "kept"),
    [
        ("means", {"sigma2", "estimator", "feature_scale"}),
        ("variance", {"loss_weight", "feature_scale"}),
        ("ccsa", {"loss_weight", "margin", "feature_scale"}),
        ("dsne", {"loss_weight", "margin", "feature_scale"}),
        ("dage", {"loss_weight"}),
        ("supcon", {"loss_weight", "temperature"}),
        ("l2-sp", set()),
        ("lp-ft", set()),
        ("so", {"orders", "sigma1", "sigma2", "estimator", "feature_scale"}),
        ("s+t", set()),
    ],
)
def test_so_does_another_method_on_images_and_on_features(method, kept, frozen):
    names = "orders sigma1 sigma2 estimator feature_scale loss_weight margin temperature l2_sp head_first"
    found = set(relevant_settings(method, dict.fromkeys(names.split(), 0), frozen=frozen))
    assert found == {"l2_sp", "head_first", *kept}  # which every method can be trained with


def test_settings_of_other_options_are_dropped_with_them():
    assert relevant_settings("so", {"optimizer": "adamw", "momentum": 0.5}) == {"optimizer": "adamw"}
    assert relevant_settings("so", {"heads": "coupled", "coupling": 0.5}) == {"heads": "coupled", "coupling": 0.5}
