"""Weights packed on one machine and used on another: the same features, and never for another network."""

import json
from dataclasses import asdict

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import sohot
from sohot._torchvision import import_torchvision
from sohot.data import InputSpec
from sohot.networks import create_backbone, timm_models
from sohot.networks.packed_weights import PackedWeights, pack_weights, publisher
from sohot.networks.timm_models import full_name

import_torchvision()
timm = pytest.importorskip("timm")


def written(packed, file):
    file.write_bytes(packed.to_bytes())
    return file


@pytest.fixture(autouse=True)
def downloads(monkeypatch):
    """What a machine with a connection would get: weights that are random, but the same whenever they are asked for."""
    asked = []

    def with_weights(timm, model, settings):
        asked.append(model)
        torch.manual_seed(sum(model.encode()))
        network = timm.create_model(model, pretrained=False, **settings)
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_()
        return network

    monkeypatch.setattr(timm_models, "_with_weights", with_weights)
    return asked


@pytest.mark.parametrize("name", ["lite0", "timm:test_resnet", "timm:test_vit"])
def test_packed_weights_give_the_same_features_bit_for_bit(name, downloads, tmp_path):
    direct = create_backbone(name).eval()
    file = written(pack_weights(name), tmp_path / "w.safetensors")
    downloads.clear()
    carried = create_backbone(name, weights=file).eval()
    images = torch.randn(2, 3, direct.input.size, direct.input.size)
    with torch.no_grad():
        assert torch.equal(carried(images), direct(images))
    assert carried.pretrained
    assert carried.input == direct.input
    assert not downloads


def test_the_file_says_what_it_is_for(tmp_path):
    packed = pack_weights("timm:test_resnet")
    assert packed.backbone == "timm:test_resnet.r160_in1k"
    with safe_open(written(packed, tmp_path / "w.safetensors"), framework="pt") as file:
        about = file.metadata()
    assert (about["sohot"], about["backbone"]) == (sohot.__version__, "timm:test_resnet.r160_in1k")
    assert json.loads(about["input"]) == json.loads(json.dumps(asdict(packed.input)))
    assert InputSpec(**json.loads(about["input"])) == create_backbone("timm:test_resnet", pretrained=False).input


def test_a_model_with_and_without_the_name_of_its_default_weights_is_one(tmp_path):
    spec = InputSpec(32, (0.5,) * 3, (0.5,) * 3, 32)
    state = timm.create_model("resnet18", num_classes=0).state_dict()
    file = written(PackedWeights(full_name("timm:resnet18"), spec, state), tmp_path / "w.safetensors")
    for name in ("timm:resnet18", "timm:resnet18.a1_in1k"):
        assert create_backbone(name, weights=file, size=32).pretrained
    sentence = r"packed for the backbone timm:resnet18\.a1_in1k, not for timm:resnet18\.gluon_in1k"
    with pytest.raises(ValueError, match=sentence):
        create_backbone("timm:resnet18.gluon_in1k", weights=file, size=32)


@pytest.mark.parametrize("other", ["lite0", "small-cnn", "timm:resnet18"])
def test_weights_packed_for_another_network_are_refused(other, tmp_path):
    spec = InputSpec(32, (0.5,) * 3, (0.5,) * 3, 32)
    file = written(PackedWeights("resnet50", spec, {"a": torch.ones(1)}), tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match=rf"w\.safetensors were packed for the backbone resnet50, not for {other}: "):
        create_backbone(other, weights=file)


def test_other_files_are_read_as_ever(tmp_path):
    first = create_backbone("small-cnn")
    save_file(first.state_dict(), tmp_path / "own.safetensors", {"backbone": "something of somebody else"})
    assert create_backbone("small-cnn", weights=tmp_path / "own.safetensors").pretrained


def test_tensors_that_share_memory_or_are_not_contiguous_are_packed_as_they_are(tmp_path):
    whole = torch.arange(12.0).view(3, 4)
    state = {"whole": whole, "turned": whole.T, "same": whole, "images": torch.randn(2, 3, 4, 4)}
    state["last"] = state["images"].to(memory_format=torch.channels_last)
    file = written(PackedWeights("lite0", InputSpec(8, (0.5,), (0.5,), 8), state), tmp_path / "w.safetensors")
    with safe_open(file, framework="pt") as found:
        assert all(torch.equal(found.get_tensor(name), tensor) for name, tensor in state.items())


@pytest.mark.parametrize("name", ["alexnet", "vgg16", "resnet50"])
def test_torchvisions_weights_can_be_packed(monkeypatch, name):
    def answer(url, **_):
        return {url.rpartition("/")[2].partition("-")[0]: torch.ones(1)}

    monkeypatch.setattr(import_torchvision().models._api, "load_state_dict_from_url", answer)
    assert list(publisher(name)()) == [name]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("small-cnn", "nobody publishes weights of the backbone small-cnn: choose lite0, .* or timm:NAME"),
        ("mine.py:net", "nobody publishes weights of the backbone mine.py:net"),
        ("timm:local-dir:nets/mine", "is a folder that holds its weights: copy the folder"),
        ("timm:resnet18x", "timm has no model named 'resnet18x': perhaps"),
        ("timm:resnet18.nonsense", r"timm has no weights of that name, but resnet18\.a1_in1k, "),
        ("resnet", "backbone must be one of .* did you mean 'resnet50'?"),
    ],
)
def test_what_cannot_be_packed_is_refused(name, sentence):
    with pytest.raises(ValueError, match=sentence):
        pack_weights(name)


def test_without_a_connection_it_says_where_to_run(monkeypatch):
    def fail(*_):
        raise OSError("no route to host")

    monkeypatch.setattr(timm_models, "_with_weights", fail)
    with pytest.raises(
        ConnectionError, match=r"could not be downloaded \(no route to host\): run this where there is a"
    ):
        pack_weights("timm:test_resnet")
