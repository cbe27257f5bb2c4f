import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from sohot.networks import TwoStreams, cache_trunk, create_backbone, trunk_key

IMAGES = torch.randn(5, 3, 224, 224, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return TwoStreams(create_backbone("lite0"), 4, streams="separate").train()


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "deep" / "trunk.safetensors"


@pytest.mark.parametrize("domain", ["source", "target"])
def test_features_from_the_cache_are_those_without(model, place, domain):
    cached = cache_trunk(model.trunk(domain), IMAGES.split(2), 5, file=place)
    rows = torch.tensor([4, 0, 3])
    from_cache = model(cached[rows], cached[rows], from_trunk=True)
    from_images = model(IMAGES[rows], IMAGES[rows])
    for left, right in zip(from_cache[:2], from_images[:2], strict=True):
        assert (left - right).norm() <= 1e-6 * right.norm()
    assert not cached.requires_grad


def test_the_same_batches_give_the_same_bits(model, place):
    cached = cache_trunk(model.trunk("target"), [IMAGES], 5, file=place)
    output = model(None, cached, from_trunk=True)
    assert torch.equal(output.target_features, model(None, IMAGES).target_features)


@pytest.mark.parametrize("name", ["alexnet", "resnet50", "timm:resnet18"])
def test_training_never_writes_to_the_cache(name, place):
    model = TwoStreams(create_backbone(name, pretrained=False, size=64), 4, batch_norm="fixed").train()
    cached = cache_trunk(model.trunk("target"), [IMAGES[:2, :, :64, :64]], 2, file=place)
    before = cached.clone()
    model(None, cached, from_trunk=True).target_logits.sum().backward()
    assert torch.equal(cached, before)


def test_views_of_an_image_stay_together(place):
    trunk, views, told = nn.Conv2d(3, 2, 3), IMAGES[:4, :, :6, :6].reshape(2, 2, 3, 6, 6), []
    cached = cache_trunk(trunk, views.split(1), 2, file=place, views=2, progress=lambda *done: told.append(done))
    torch.testing.assert_close(cached, trunk(views.flatten(0, 1)).view(2, 2, 2, 4, 4))
    assert told == [(1, 2), (2, 2)]
    assert not cached.requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_any_precision_and_shape_come_back(tmp_path, dtype):
    rows = torch.randn(5, 2, 3, 1).to(dtype)
    for trunk in (nn.Identity(), nn.Flatten()):
        cached = cache_trunk(trunk, rows.split(2), 5, file=tmp_path / "t")
        assert cached.dtype == dtype
        assert torch.equal(cached, trunk(rows))


def test_the_file_is_mapped_and_safe_from_writes(tmp_path):
    file = tmp_path / "t"
    cached = cache_trunk(nn.Identity(), [torch.ones(4, 8)], 4, file=file)
    cached.zero_()
    assert torch.equal(load_file(file)["trunk"], torch.ones(4, 8))


def test_a_whole_file_with_the_same_key_is_used_again(tmp_path):
    file, trunk = tmp_path / "t", nn.Linear(3, 2)
    rows = torch.randn(4, 3)
    key = trunk_key(trunk, ["a 1", "b 2"])
    first = cache_trunk(trunk, [rows], 4, file=file, key=key)

    def never():
        raise AssertionError("computed again")
        yield

    assert torch.equal(cache_trunk(trunk, never(), 4, file=file, key=key), first)
    with torch.no_grad():
        trunk.weight[0, 0] += 1
    changed = trunk_key(trunk, ["a 1", "b 2"])
    assert changed != key
    assert torch.equal(cache_trunk(trunk, [rows], 4, file=file, key=changed), trunk(rows))
    assert torch.equal(cache_trunk(trunk, [rows[:3]], 3, file=file, key=changed), trunk(rows[:3]))
    assert torch.equal(cache_trunk(trunk, [rows], 4, file=file), trunk(rows))


def test_a_key_depends_on_layers_weights_and_images_in_order():
    torch.manual_seed(0)
    one, two = nn.Linear(2, 2), nn.Linear(2, 2)
    keys = [
        trunk_key(one, ["a", "b"]),
        trunk_key(two, ["a", "b"]),
        trunk_key(one, ["b", "a"]),
        trunk_key(one, ["ab"]),
        trunk_key(nn.Sequential(one, nn.ReLU()), ["a", "b"]),
    ]
    assert len({*keys}) == len(keys)
    assert trunk_key(one, ["a", "b"]) == keys[0]


@pytest.mark.parametrize("damage", [b"", b"x", b"\x10" * 100])
def test_a_damaged_file_is_made_anew(tmp_path, damage):
    file = tmp_path / "t"
    file.write_bytes(damage)
    assert torch.equal(cache_trunk(nn.Identity(), [torch.ones(2, 2)], 2, file=file, key="k"), torch.ones(2, 2))


KILLED = """
import sys, time, torch
from pathlib import Path
from sohot.networks import cache_trunk
def batches():
    for _ in range(1000):
        yield torch.ones(1, 1000)
        print("batch", flush=True)
        time.sleep(0.01)
cache_trunk(torch.nn.Identity(), batches(), 1000, file=Path(sys.argv[1]), key="k")
"""


def test_a_killed_run_leaves_no_file_that_could_be_taken_for_a_whole_one(tmp_path):
    file = tmp_path / "t"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(file)], stdout=subprocess.PIPE)
    process.stdout.readline()
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not file.exists()
    assert torch.equal(cache_trunk(nn.Identity(), [torch.zeros(2, 3)], 2, file=file, key="k"), torch.zeros(2, 3))


@pytest.mark.parametrize(
    ("rows", "message"), [(3, "have 2 images, fewer than rows=3"), (1, "more images than rows=1"), (0, "rows must")]
)
def test_a_wrong_number_of_rows_is_named_and_leaves_nothing(tmp_path, place, rows, message):
    for file in (place, tmp_path / "t"):
        with pytest.raises(ValueError, match=message):
            cache_trunk(nn.Identity(), [torch.ones(2, 2)], rows, file=file)
    assert not (tmp_path / "t").exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
