"""The grids and networks under studies/: they are read as a user's own would be."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch

from sohot.experiments import read_grid
from sohot.networks import create_backbone

STUDIES = Path(__file__).parents[2] / "studies"


def script(name):
    """Import a script of the study."""
    spec = importlib.util.spec_from_file_location(name, STUDIES / "office31" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


choosing, comparing = script("choose"), script("compare")
GRIDS = sorted(STUDIES.rglob("*.toml"))


@pytest.mark.parametrize("file", GRIDS, ids=lambda file: file.stem)
def test_grids_can_be_read(file):
    grid = read_grid(file)
    assert grid.title
    # What chooses settings or variants must not see the images that test.
    assert (grid.protocol == "paper-folds") == file.stem.startswith(("choose-", "try-"))


def test_every_method_has_as_many_candidates():
    counts = {}
    for file in STUDIES.rglob("choose-*.toml"):
        grid = read_grid(file)
        combinations = 1
        for values in grid.vary.values():
            combinations *= len(values)
        counts |= dict.fromkeys(grid.methods, combinations)
    assert set(counts.values()) == {6}
    for network in ("lite0", "resnet50"):
        methods = read_grid(STUDIES / "office31" / f"{network}.toml").methods
        assert {choosing.LIKE.get(method, method) for method in methods} <= set(counts)


def table(scores):
    """A table of one method with two candidates on three shifts, to two targets."""
    rows = [
        {
            "method": "so",
            "label": "so",
            "values": {"lr": lr},
            "cells": {shift: {"mean": mean, "count": 2, "expected": 2, "failed": 0} for shift, mean in means.items()},
        }
        for lr, means in scores.items()
    ]
    return {"name": "choose", "rows": rows}


def test_settings_are_chosen_without_the_own_target():
    scores = {0.1: {"A-W": 90, "D-W": 90, "W-A": 50}, 0.2: {"A-W": 80, "D-W": 80, "W-A": 60}}
    chosen = choosing.choose([table(scores)])["so"]
    assert {shift: row["values"]["lr"] for shift, row in chosen.items()} == {"A-W": 0.2, "D-W": 0.2, "W-A": 0.1}
    assert choosing.held_out_score(chosen) == 70


def test_of_equals_the_first_is_chosen():
    third = 100 / 3
    scores = {0.1: {"A-W": 90, "W-A": third, "D-A": 0.1}, 0.2: {"A-W": 80, "W-A": 0.1, "D-A": third + 1e-14}}
    assert choosing.choose([table(scores)])["so"]["A-W"]["values"] == {"lr": 0.1}


def test_chosen_settings_replace_earlier_ones(tmp_path):
    file = STUDIES / "office31" / "lite0.toml"
    chosen = {"so": {"A-W": {"lr": 0.1}, "W-A": {"lr": 0.2}}, "s+t": {"A-W": {"lr": 0.3}, "W-A": {"lr": 0.3}}}
    text = choosing.grid_with(file.read_text(), chosen, ["s+t", "so+zeta"])
    assert choosing.grid_with(text, chosen, ["s+t", "so+zeta"]) == text
    (tmp_path / "again.toml").write_text(text)
    grid = read_grid(tmp_path / "again.toml")
    assert grid.method_settings["s+t"] == {"lr": 0.3}
    assert grid.shift_settings == {"so+zeta": {"A-W": {"lr": 0.1}, "W-A": {"lr": 0.2}}}


def test_settings_that_diverged_are_not_chosen():
    content = table({0.1: {"A-W": 90, "W-A": 50}, 0.2: {"A-W": 80, "W-A": 40}})
    content["rows"][0]["cells"]["A-W"] |= {"count": 1, "failed": 1}
    chosen = choosing.choose([content])["so"]
    assert {row["values"]["lr"] for row in chosen.values()} == {0.2}


def experiment(folder, scores):
    """Leave what an experiment leaves: accuracies of two shifts by split."""
    cells = {
        shift: {"splits": {str(split): value for split, value in enumerate(values)}} for shift, values in scores.items()
    }
    (folder / "table.json").write_text(json.dumps({"shifts": list(scores), "rows": [{"method": "so", "cells": cells}]}))
    return folder, "so"


def test_experiments_are_compared_split_by_split(tmp_path):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    ours = experiment(tmp_path / "a", {"A-W": [50, 60, 70], "W-A": [10, 20, 30]})
    theirs = experiment(tmp_path / "b", {"W-A": [10, 18], "A-W": [48, 58]})
    found = comparing.compare(ours, theirs)
    assert (found.mean, found.pairs, found.wins) == (1.5, 2, 2)
    with pytest.raises(ValueError, match="it has so"):
        comparing.compare(ours, (tmp_path / "b", "m"))
    with pytest.raises(ValueError, match="other shifts"):
        comparing.compare(ours, experiment(tmp_path / "b", {"A-W": [48]}))


def test_an_incomplete_table_chooses_nothing():
    content = table({0.1: {"A-W": 90, "W-A": 50}})
    content["rows"][0]["cells"]["A-W"]["count"] = 1
    with pytest.raises(ValueError, match="not complete"):
        choosing.choose([content])


def test_resnet50_of_the_first_form():
    backbone = create_backbone(f"{STUDIES / 'office31' / 'resnet50_v1.py'}:resnet50_v1")
    first = next(module for module in backbone.modules() if isinstance(module, torch.nn.BatchNorm2d))
    assert first.eps == 1e-3
    blocks = [module for module in backbone.modules() if type(module).__name__ == "Bottleneck"]
    strides = [(block.conv1.stride[0], block.conv2.stride[0]) for block in blocks]
    assert strides.count((2, 1)) == 3
    assert (1, 2) not in strides
