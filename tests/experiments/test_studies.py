"""The grids and networks under studies/: they are read as a user's own would be."""

from pathlib import Path

import pytest
import torch

from sohot.experiments.grid import read_grid
from sohot.streams import create_backbone

STUDIES = Path(__file__).parents[2] / "studies"
GRIDS = sorted(STUDIES.rglob("*.toml"))


@pytest.mark.parametrize("file", GRIDS, ids=lambda file: file.stem)
def test_grids_can_be_read(file):
    grid = read_grid(file)
    assert grid.title
    # What chooses settings must not see the images that test.
    assert (grid.protocol == "paper-folds") == file.stem.startswith("choose-")


def test_every_method_has_as_many_candidates():
    counts = {}
    for file in STUDIES.rglob("choose-*.toml"):
        grid = read_grid(file)
        combinations = 1
        for values in grid.vary.values():
            combinations *= len(values)
        counts |= dict.fromkeys(grid.methods, combinations)
    assert set(counts.values()) == {6}
    assert set(counts) == set(read_grid(STUDIES / "office31" / "lite0.toml").methods)


def test_resnet50_of_the_first_form():
    backbone = create_backbone(f"{STUDIES / 'office31' / 'resnet50_v1.py'}:resnet50_v1")
    first = next(module for module in backbone.modules() if isinstance(module, torch.nn.BatchNorm2d))
    assert first.eps == 1e-3
    blocks = [module for module in backbone.modules() if type(module).__name__ == "Bottleneck"]
    strides = [(block.conv1.stride[0], block.conv2.stride[0]) for block in blocks]
    assert strides.count((2, 1)) == 3
    assert (1, 2) not in strides
