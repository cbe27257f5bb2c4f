import pytest
import torch
from torch import nn

from sohot.data import InputSpec
from sohot.networks import RECOMMENDED, Backbone, backbone_names, create_backbone
from sohot.networks.names import NETWORKS

SPEC = InputSpec(16, (0.5,), (0.5,), 16)
SMALL = {"lite0": 64, "alexnet": 64, "vgg16": 32, "resnet50": 64, "small-cnn": 32, "timm:resnet18": 64}
FEATURES = {"lite0": 1280, "alexnet": 4096, "vgg16": 4096, "resnet50": 2048, "small-cnn": 128, "timm:resnet18": 512}


@pytest.fixture(scope="module")
def backbones():
    return {name: create_backbone(name, pretrained=False, size=size).eval() for name, size in SMALL.items()}


@pytest.mark.parametrize("name", SMALL)
def test_each_backbone_is_what_it_declares(backbones, name):
    backbone = backbones[name]
    images = torch.randn(2, backbone.input.channels, SMALL[name], SMALL[name])
    features = backbone(images)
    assert features.shape == (2, backbone.feature_size) == (2, FEATURES[name])
    assert torch.equal(features, backbone.stages(images))
    assert backbone.name == name
    assert not backbone.pretrained
    assert backbone.input.size == SMALL[name]
    assert 0 == backbone.first_trainable["all"] < backbone.first_trainable["paper"] < backbone.first_trainable["head"]
    assert backbone.first_trainable["head"] == len(backbone.stages)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("alexnet", [nn.Conv2d] * 2 + [nn.Linear] * 2),
        ("vgg16", [nn.Conv2d] * 2 + [nn.Linear] * 2),
        ("small-cnn", [nn.Conv2d] * 2 + [nn.Linear]),
    ],
)
def test_paper_trains_the_last_two_convolutions_and_the_fully_connected_layers(backbones, name, kinds):
    backbone = backbones[name]
    trained = backbone.stages[backbone.first_trainable["paper"] :]
    layers = [type(layer) for layer in trained.modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
    assert layers == kinds


def test_paper_trains_the_last_two_blocks_of_others_and_what_follows(backbones):
    lite0, resnet = backbones["lite0"], backbones["resnet50"]
    tail = lite0.stages[lite0.first_trainable["paper"] :]
    assert [sum(isinstance(m, nn.Conv2d) for m in stage.modules()) for stage in tail] == [3, 3, 1]
    tail = resnet.stages[resnet.first_trainable["paper"] :]
    assert [sum(type(m).__name__ == "Bottleneck" for m in stage.modules()) for stage in tail] == [1, 1]


@pytest.mark.parametrize("name", SMALL)
def test_no_stage_overwrites_its_input(backbones, name):
    rows = torch.randn(1, backbones[name].input.channels, SMALL[name], SMALL[name])
    for stage in backbones[name].stages:
        before = rows.clone()
        result = stage(rows)
        assert torch.equal(rows, before)
        rows = result


@pytest.mark.parametrize("size", [16, 28, 40])
def test_small_cnn_takes_other_sizes(size):
    assert create_backbone("small-cnn", channels=1, size=size)(torch.zeros(1, 1, size, size)).shape == (1, 128)


def test_a_network_of_one_stage_has_no_paper():
    backbone = Backbone("mine", [nn.Flatten()], SPEC)
    with pytest.raises(ValueError, match=r"trains='paper' needs .* mine is one stage: choose 'all' or 'head'"):
        backbone.first_stage_to_train("paper")
    with pytest.raises(ValueError, match="trains must be one of 'paper', 'all', 'head', got 'most'"):
        backbone.first_stage_to_train("most")


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([nn.Linear(3, 2), nn.Flatten()], "backbone mine does not accept an image of 1 x 16 x 16: "),
        ([nn.Conv2d(1, 2, 3)], r"must return one row of features per image, got \(1, 2, 14, 14\)"),
    ],
)
def test_networks_that_do_not_fit_are_named(stages, message):
    with pytest.raises(ValueError, match=message):
        Backbone("mine", stages, SPEC)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("vgg19", {}, "backbone must be one of lite0, .*, alexnet, .* got 'vgg19'"),
        ("small-cnn", {"channels": 2}, "channels must be 1 .* or 3 .* got 2"),
        ("small-cnn", {"tap": "middle"}, "tap must be one of"),
        ("small-cnn", {"dropout": "half"}, "dropout must be one of"),
        ("small-cnn", {"size": 0}, "size must be an integer of at least 1, got 0"),
        ("small-cnn", {"size": 4}, "backbone small-cnn does not accept an image of 3 x 4 x 4"),
        ("lite0", {"tap": "before-relu"}, "backbone lite0 offers the tap 'output', not 'before-relu'"),
        ("resnet50", {"tap": "after-relu", "pretrained": False}, "backbone resnet50 offers the tap 'output'"),
    ],
)
def test_bad_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        create_backbone(name, **options)


def test_all_names_are_listed():
    assert {*NETWORKS, "timm:NAME", "timm:local-dir:FOLDER", "FILE.py:function"} == {*backbone_names()}
    recommended = (network.name for network in RECOMMENDED)
    assert {*recommended, "alexnet", "vgg16", "resnet50", "small-cnn"} == {*NETWORKS}
