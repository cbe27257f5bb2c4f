"""Neighbours and the map agree with the features that a run keeps."""

from pathlib import Path

import torch

from sohot.app.surroundings import Surroundings
from sohot.reporting.pages.run_images import stored_images


def around(run: Path) -> Surroundings:
    stored = stored_images(run)
    assert stored is not None
    return Surroundings(stored)


def test_the_nearest_image_of_a_training_image_is_itself(made: Path) -> None:
    found = around(made)
    for part in ("source", "target"):
        for row, features in zip(found.rows[part].tolist(), found.features[part], strict=True):
            near = found.nearest(features, part, 3)
            assert abs(near[0].likeness - 1) < 1e-5
            assert row in [one.row for one in near if one.likeness > near[0].likeness - 1e-5]
            assert [one.likeness for one in near] == sorted((one.likeness for one in near), reverse=True)
            assert near[0].label == found.label(part, near[0].row)


def test_the_map_keeps_as_much_of_the_spread_as_two_directions_can_and_is_linear(made: Path) -> None:
    found = around(made)
    rows = torch.cat([*found.features.values()]).double()
    places = torch.tensor([place for part in found.map() for place in part["places"]], dtype=torch.float64)
    assert torch.allclose(places.mean(0), torch.zeros(2, dtype=torch.float64), atol=1e-6)
    spread = torch.linalg.svdvals(rows - rows.mean(0))[:2].square().sum()
    assert torch.allclose(places.square().sum(), spread, rtol=1e-6)
    one, two = found.features["source"][0], found.features["target"][0]
    middle = torch.tensor(found.place(torch.stack([one, two, (one + two) / 2])))
    assert torch.allclose(middle[:2].mean(0), middle[2], atol=1e-5)


def test_a_part_that_a_run_does_not_have_has_no_neighbours(made: Path) -> None:
    found = around(made)
    assert found.nearest(found.features["source"][0], "pool") == []
