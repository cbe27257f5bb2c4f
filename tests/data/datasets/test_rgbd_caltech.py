from pathlib import Path

import pytest
import torch
from official_sets import make_rgbd_caltech

from sohot.data import InputSpec, load_batch
from sohot.data.datasets import open_dataset
from sohot.data.datasets.rgbd_caltech import CLASSES


def test_ten_classes_from_both_releases(tmp_path: Path) -> None:
    dataset = open_dataset("rgbd-caltech", make_rgbd_caltech(tmp_path, views=3, photos=5))
    depth, photos = dataset.pair(None)
    assert depth.classes == photos.classes == tuple(CLASSES)
    assert (depth.counts(), photos.counts()) == ([6] * 10, [5] * 10)
    assert dataset.problems == ()
    assert all(file.name.endswith("_depthcrop.png") for file in depth.files)
    names = dict(zip(photos.files, photos.labels, strict=True))
    ball = next(file for file in names if "soccer" in str(file))
    assert photos.classes[names[ball]] == "ball"


def test_views_of_one_object_are_one_group(tmp_path: Path) -> None:
    depth = open_dataset("rgbd-caltech", make_rgbd_caltech(tmp_path, views=3)).domains["depth"]
    assert len(set(depth.groups)) == 20
    for file, group in zip(depth.files, depth.groups, strict=True):
        assert group == f"{file.parent.parent.name}/{file.parent.name}"


def test_depth_reaches_a_network_as_one_channel_or_colours(tmp_path: Path) -> None:
    depth = open_dataset("rgbd-caltech", make_rgbd_caltech(tmp_path, views=1)).domains["depth"]
    grey = load_batch(depth, [0, 1], InputSpec(size=4, mean=(0.0,), std=(1.0,), resize=4))
    colour = load_batch(depth, [0, 1], InputSpec(size=4, mean=(0.0,) * 3, std=(1.0,) * 3, resize=4))
    assert (grey.shape, colour.shape) == ((2, 1, 4, 4), (2, 3, 4, 4))
    assert torch.isfinite(colour).all()
    assert colour.std(dim=1).max() > 0.1


def test_another_table_replaces_the_classes(tmp_path: Path) -> None:
    table = {"fruit": {"depth": ["apple", "tomato"], "caltech": ["221.tomato"]}, "gun": {"caltech": ["ak47"]}}
    dataset = open_dataset("rgbd-caltech", make_rgbd_caltech(tmp_path, views=1, photos=2), classes=table)
    assert dataset.domains["depth"].counts() == [4, 0]
    assert dataset.domains["caltech"].counts() == [2, 2]
    assert dataset.problems == ("depth has no image of class 'gun' (called gun there)",)


def test_half_of_it_is_said(tmp_path: Path) -> None:
    make_rgbd_caltech(tmp_path, views=1, photos=1)
    (tmp_path / "256_ObjectCategories").rename(tmp_path / "elsewhere")
    dataset = open_dataset("rgbd-caltech", tmp_path)
    assert list(dataset.domains) == ["depth"]
    assert dataset.problems == ("the domain caltech (256_ObjectCategories/) is missing",)
    with pytest.raises(FileNotFoundError, match="does not contain rgbd-caltech"):
        open_dataset("rgbd-caltech", tmp_path / "elsewhere" / "001.ak47")
