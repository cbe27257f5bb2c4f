"""What the training loop reads: the trunk's outputs, kept where they fit."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from PIL import Image

from sohot.data import LabelledImages, UnreadableImage
from sohot.runs import RunConfig
from sohot.runs import trunk_outputs as room
from sohot.runs.run_model import build_model
from sohot.runs.trunk_store import TrunkStore
from sohot.training.ranks import Ranks


@pytest.fixture
def images(tmp_path):
    files = [tmp_path / f"{number}.png" for number in range(4)]
    for number, file in enumerate(files):
        Image.fromarray(np.full((16, 16, 3), 50 * number, dtype=np.uint8)).save(file)
    return LabelledImages(tuple(files), (0, 0, 1, 1), ("a", "b"), tmp_path)


def config(tmp_path, **more):
    options = {"backbone": "small-cnn", "image_size": 16, "trains": "paper", "device": "cpu", "read_threads": 0}
    return RunConfig(**{**options, "out": tmp_path / "run", **more})


def inputs(config, images, cache):
    return TrunkStore().inputs(config, build_model(config, 2), "target", images, cache)


def test_memory_and_disk_hold_the_same_outputs_of_the_trunk(images, tmp_path):
    asked = config(tmp_path)
    memory, disk = inputs(asked, images, "memory"), inputs(asked, images, "disk")
    assert (tmp_path / "run" / "cache" / "target.safetensors").is_file()
    assert torch.equal(memory.tensor, disk.tensor)
    read = inputs(asked, images, "off").batch(torch.arange(4))
    torch.testing.assert_close(build_model(asked, 2).trunk("target")(read), memory.tensor, atol=1e-6, rtol=0)


def test_a_cache_on_disk_is_used_again_until_an_image_changes(images, tmp_path, monkeypatch):
    asked = config(tmp_path)
    before = inputs(asked, images, "disk").tensor.clone()
    monkeypatch.setattr(room, "trunk_batches", lambda *_: iter([]))  # not to be read again
    assert torch.equal(inputs(asked, images, "disk").tensor, before)
    monkeypatch.undo()
    Image.new("RGB", (16, 16), "white").save(images.files[0])
    after = inputs(asked, images, "disk").tensor
    assert not torch.equal(after[0], before[0])
    assert torch.equal(after[1:], before[1:])


def test_augmented_images_follow_torchs_generator_whatever_memory_is_free(images, tmp_path, monkeypatch):
    rows, found = torch.arange(4), []
    for free in (1e12, 0):
        monkeypatch.setattr(room, "_free_memory", lambda free=free: free)
        augmented = inputs(config(tmp_path, augment=True), images, "off")
        for _ in range(2):
            torch.manual_seed(1)
            found.append(augmented.batch(rows))
    assert all(one.equal(found[0]) for one in found)


@pytest.mark.parametrize(("ranks", "kept"), [(1, 3), (3, 1)])
def test_ranks_and_domains_share_the_memory_for_decoded_images(images, tmp_path, monkeypatch, ranks, kept):
    monkeypatch.setattr(room, "_free_memory", lambda: 2 * 3 * 16 * 16 * 4)
    monkeypatch.setattr(room.Ranks, "here", lambda: Ranks(ranks, 0, ranks, 0))
    augmented = inputs(config(tmp_path, augment=True), images, "off")
    augmented.batch(torch.arange(4))
    for file in images.files:
        file.unlink()
    augmented.batch(torch.arange(kept))  # needs no file
    with pytest.raises(UnreadableImage, match=rf"{kept}\.png cannot be read: there is no such file"):
        augmented.batch(torch.arange(kept + 1))


@pytest.mark.parametrize(("free", "expected"), [(1e12, "memory"), (1e3, "disk")])
def test_what_does_not_fit_into_memory_goes_to_disk(tmp_path, monkeypatch, free, expected):
    monkeypatch.setattr(room, "_free_memory", lambda: free)
    asked = config(tmp_path)
    model = build_model(asked, 2)
    assert room.choose_cache(asked, model, rows=100) == expected
    assert room.choose_cache(config(tmp_path, cache="off"), model, rows=100) == "off"
    assert room.choose_cache(config(tmp_path, augment=True), model, rows=100) == "off"


@pytest.mark.parametrize(("free", "expected"), [(1e12, "device"), (1e3, "memory")])
def test_what_fits_goes_to_the_gpu(tmp_path, monkeypatch, free, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 2e12))
    monkeypatch.setattr(room, "_free_memory", lambda: 1e12)
    asked = config(tmp_path, device="cuda")
    assert room.choose_cache(asked, build_model(asked, 2), rows=100) == expected


def test_ranks_of_a_machine_share_what_the_first_has_written(images, tmp_path, monkeypatch):
    def of_rank(local):
        monkeypatch.setattr(room.Ranks, "here", lambda: Ranks(2, local, 2, local))
        return inputs(config(tmp_path), images, "memory")

    alone = inputs(config(tmp_path), images, "memory")
    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(room.Ranks, "here", lambda: Ranks(2, 1, 2, 1))
        waiting = pool.submit(inputs, config(tmp_path), images, "memory")
        time.sleep(0.5)
        assert not waiting.done()
        first = of_rank(0)
        second = waiting.result(timeout=20)
    assert first.tensor.equal(second.tensor)
    assert first.tensor.equal(alone.tensor)
