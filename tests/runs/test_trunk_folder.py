"""Shared features: each image passes the trunk once in the life of an experiment, whatever happens between."""

from collections import namedtuple
from dataclasses import replace

import pytest
import torch
from experiment_work import InlineEngine, small_grid, write_domains

from sohot.data import InputSpec
from sohot.data.datasets import open_dataset
from sohot.experiments import plan_grid, run_grid
from sohot.networks.trunk_and_tail import FrozenTrunk
from sohot.runs import trunk_folder as module
from sohot.runs.trunk_folder import TrunkFolder, fill_folders, join_images

SPEC = InputSpec(size=4, mean=(0.5,) * 3, std=(0.5,) * 3, resize=4)
CPU = torch.device("cpu")


class Counting(torch.nn.Module):
    """A trunk that counts the images that pass; blank ones, which are shown to learn the size, do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def forward(self, images):
        self.seen += int((images.flatten(1).abs().sum(1) > 0).sum())
        return images.mean((2, 3))


@pytest.fixture
def images(tmp_path):
    return open_dataset("domains", write_domains(tmp_path / "data")).domains["photos"]


def test_features_are_what_the_trunk_gives_in_the_order_asked_for(tmp_path, images, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 5)
    trunk = Counting()
    features = TrunkFolder(tmp_path, trunk, SPEC)
    assert features.inputs(images) is None
    assert fill_folders([(features, [images])], tmp_path, CPU, 0) == len(images) == trunk.seen
    chosen = images.subset([7, 2, 11])
    inputs = features.inputs(chosen)
    expected = trunk(torch.stack([module_image(chosen, row) for row in range(3)]))
    torch.testing.assert_close(inputs.batch(torch.tensor([0, 1, 2, 0])), expected[[0, 1, 2, 0]])
    assert len(list(features.folder.glob("*.safetensors"))) == -(-len(images) // 5)


def module_image(images, row):
    from sohot.data.image_batches import load_image

    return load_image(images, row, SPEC)


def test_only_what_is_missing_is_computed(tmp_path, images):
    first, both = images.subset(range(6)), images.subset(range(10))
    trunk = Counting()
    for wanted in (first, both, both):
        fill_folders([(TrunkFolder(tmp_path, trunk, SPEC), [wanted, wanted.subset([0, 1])])], tmp_path, CPU, 0)
    assert trunk.seen == len(both)


def test_another_trunk_or_another_size_are_apart(tmp_path, images):
    fill_folders([(TrunkFolder(tmp_path, torch.nn.Flatten(), SPEC), [images])], tmp_path, CPU, 0)
    larger = InputSpec(size=8, mean=(0.5,) * 3, std=(0.5,) * 3, resize=8)
    assert TrunkFolder(tmp_path, torch.nn.Flatten(), SPEC).missing(images) == []
    assert len(TrunkFolder(tmp_path, torch.nn.Flatten(), larger).missing(images)) == len(images)
    assert len(TrunkFolder(tmp_path, Counting(), SPEC).missing(images)) == len(images)


def test_damaged_files_are_computed_again(tmp_path, images):
    trunk = Counting()
    features = TrunkFolder(tmp_path, trunk, SPEC)
    fill_folders([(features, [images])], tmp_path, CPU, 0)
    for file in features.folder.iterdir():
        file.write_bytes(file.read_bytes()[:40])
    again = TrunkFolder(tmp_path, trunk, SPEC)
    fill_folders([(again, [images])], tmp_path, CPU, 0)
    assert trunk.seen == 2 * len(images)
    assert again.missing(images) == []


def test_images_are_joined_once_each_in_one_order(images):
    joined = join_images([images.subset([5, 1]), images.subset([1, 0])])
    assert [one.files for one in joined] == [tuple(sorted({images.files[row] for row in (0, 1, 5)}))]
    assert joined[0].files == join_images([images.subset([0]), images.subset([1, 5])])[0].files


def test_boxes_and_whole_images_are_joined(tmp_path, images):
    boxes = replace(images, files=images.files[:2], labels=(0, 0), parts=("0,0,8,8", "4,4,16,16"))
    whole = images.subset([0, 5])
    for lists in ((boxes, whole), (whole, boxes)):
        trunk = Counting()
        features = TrunkFolder(tmp_path / lists[0].name(0), trunk, SPEC)
        assert fill_folders([(features, lists)], tmp_path, CPU, 0) == trunk.seen == 4
        for asked in lists:
            expected = trunk(torch.stack([module_image(asked, row) for row in range(2)]))
            torch.testing.assert_close(features.inputs(asked).batch(torch.tensor([0, 1])), expected)


def test_a_disk_without_room_is_told_before_anything_is_computed(tmp_path, images, monkeypatch):
    trunk = Counting()
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage(100, 90, 10))
    with pytest.raises(OSError, match=r"18 images take .* GB free: put --out on a larger disk"):
        fill_folders([(TrunkFolder(tmp_path, trunk, SPEC), [images])], tmp_path, CPU, 0)
    assert trunk.seen == 0


def test_in_a_grid_each_image_passes_the_trunk_once_and_never_again(tmp_path, monkeypatch):
    root = write_domains(tmp_path / "data")
    passed, forward = [], FrozenTrunk.forward

    def count(trunk, images):
        passed.append(int((images.flatten(1).abs().sum(1) > 0).sum()))
        return forward(trunk, images)

    monkeypatch.setattr(FrozenTrunk, "forward", count)
    grid = small_grid(splits=(1,), methods=("s+t", "so"))
    first = run_grid(plan_grid(grid, root, tmp_path / "out", device="cpu", workers=0), InlineEngine())
    assert (first.computed, first.failed) == (2, [])
    sizes = first.records[0].result.sizes
    assert sum(passed) == sum(sizes.values())  # source, target and test images of the split, each once
    passed.clear()
    more = grid.changed(methods=("s+t", "so", "so+to"))
    second = run_grid(plan_grid(more, root, tmp_path / "out", device="cpu", workers=0), InlineEngine())
    assert (second.computed, second.kept, second.failed) == (1, 2, [])
    assert sum(passed) == 0
    assert second.records[-1].result.notes == []
