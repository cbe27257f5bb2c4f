"""A timm model in a folder: the same network as by its name, read without running code."""

import json
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

from sohot._torchvision import import_torchvision
from sohot.networks import create_backbone
from sohot.networks.names import absolute_name, check_backbone_name, files_of, is_own

import_torchvision()
timm = pytest.importorskip("timm")


def save(folder, name="test_resnet", **settings):
    """Store a random model as Hugging Face would, and give the name of the backbone and the model."""
    model = timm.create_model(name, **settings).eval()
    timm.models.save_for_hf(model, folder, safe_serialization=True)
    return f"timm:local-dir:{folder}", model


def change(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "test_convnext"])
@pytest.mark.parametrize("classes", [0, 7])
def test_a_folder_gives_the_network_that_was_stored(name, classes, tmp_path):
    backbone, model = save(tmp_path, name, num_classes=classes)
    built = create_backbone(backbone).eval()
    named = create_backbone(f"timm:{name}", weights=tmp_path / "model.safetensors").eval()
    images = torch.randn(2, 3, 160, 160)
    with torch.no_grad():
        features = built(images)
        assert torch.equal(features, named(images))
        tokens = model.forward_features(images)
        pooled = model.forward_head(tokens, pre_logits=True)
        expected = torch.cat([pooled, tokens[:, 1:].mean(1)], dim=1) if name == "test_vit" else pooled
    torch.testing.assert_close(features, expected, rtol=1e-4, atol=1e-5)
    assert (built.name, built.pretrained, built.input) == (backbone, True, named.input)
    assert built.first_trainable == named.first_trainable


def test_it_declares_the_images_that_the_folder_declares(tmp_path):
    backbone, _ = save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())["pretrained_cfg"]
    change(tmp_path, pretrained_cfg={**config, "mean": [0.1, 0.2, 0.3], "input_size": [3, 96, 96], "crop_pct": 0.5})
    spec = create_backbone(backbone).input
    assert (spec.size, spec.resize, spec.mean) == (96, 192, (0.1, 0.2, 0.3))


def test_what_the_folder_says_about_the_architecture_counts(tmp_path):
    model = timm.create_model("test_vit", depth=2)
    timm.models.save_for_hf(model, tmp_path, safe_serialization=True, model_args={"depth": 2})
    built = create_backbone(f"timm:local-dir:{tmp_path}")
    assert sum(p.numel() for p in built.parameters()) == sum(
        p.numel() for name, p in model.named_parameters() if not name.startswith("head.")
    )


def test_a_transformer_takes_images_of_another_size(tmp_path):
    backbone, _ = save(tmp_path, "test_vit")
    built = create_backbone(backbone, size=64).eval()
    named = create_backbone("timm:test_vit", weights=tmp_path / "model.safetensors", size=64).eval()
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(built(images), named(images))
    untrained = create_backbone("timm:test_vit", pretrained=False, size=64)
    assert built.input.size == 64
    assert {k: v.shape for k, v in untrained.state_dict().items()} == {
        k: v.shape for k, v in named.state_dict().items()
    }


def test_a_run_is_rebuilt_without_the_weights(tmp_path):
    backbone, _ = save(tmp_path)
    trained = create_backbone(backbone)
    (tmp_path / "model.safetensors").unlink()
    rebuilt = create_backbone(backbone, pretrained=False)
    rebuilt.load_state_dict(trained.state_dict())
    assert not rebuilt.pretrained
    assert files_of(backbone) == [tmp_path / "config.json"]


def test_other_weights_may_be_given(tmp_path):
    backbone, _ = save(tmp_path / "one")
    _, other = save(tmp_path / "two")
    built = create_backbone(backbone, weights=tmp_path / "two" / "model.safetensors", size=64).eval()
    images = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        expected = other.forward_head(other.forward_features(images), pre_logits=True)
        torch.testing.assert_close(built(images), expected, rtol=1e-4, atol=1e-5)


def test_pickles_are_not_read(tmp_path):
    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was read",))

    backbone, _ = save(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match=r"no model.safetensors; pytorch_model.bin may hold code and is not read"):
        create_backbone(backbone)
    save(tmp_path)
    assert create_backbone(backbone, size=64).pretrained


def damage(folder):
    (folder / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      x")


def drop_a_tensor(folder):
    state = load_file(folder / "model.safetensors")
    state.pop("layer1.0.conv1.weight")
    save_file(state, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda folder: (folder / "config.json").unlink(), "holds no config.json, so it is not the folder of a timm"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json: it is not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "config.json: it names no 'architecture'"),
        (
            lambda folder: (folder / "config.json").write_text('{"model_type": "vit"}'),
            r"names no 'architecture', .* \(transformers wrote it\)",
        ),
        (lambda folder: change(folder, architecture="resnet18x"), "timm has no model named 'resnet18x'"),
        (lambda folder: change(folder, architecture="test_vit"), "timm cannot build it from .*Missing key"),
        (lambda folder: change(folder, model_args={"colour": 1}), "timm cannot build it from .*colour"),
        (lambda folder: change(folder, pretrained_cfg=3), "timm cannot build it from"),
        (lambda folder: (folder / "model.safetensors").unlink(), "holds no model.safetensors: save the model as"),
        (damage, "timm cannot build it from"),
        (drop_a_tensor, "timm cannot build it from .*Missing key"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(spoil, sentence, tmp_path):
    backbone, _ = save(tmp_path)
    spoil(tmp_path)
    with pytest.raises(ValueError, match=sentence):
        create_backbone(backbone)


def test_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check_backbone_name("timm:local-dir:nets/mine") == "timm:local-dir:nets/mine"
    assert absolute_name("timm:local-dir:nets/mine") == f"timm:local-dir:{tmp_path / 'nets' / 'mine'}"
    assert absolute_name("nets/mine.py:net") == f"{tmp_path / 'nets' / 'mine.py'}:net"
    assert not is_own("timm:local-dir:nets/mine.py:net")  # a folder, whatever its name: no code is imported
