import socket
import time
from types import SimpleNamespace

import huggingface_hub
import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save_file
from torch import nn

from sohot._torchvision import import_torchvision
from sohot.networks import create_backbone, timm_models

import_torchvision()
timm = pytest.importorskip("timm")


def build(name, size, stages):
    backbone = create_backbone(f"timm:{name}", pretrained=False, size=size).eval()
    assert len(backbone.stages) == stages
    return backbone


BY_TOKENS = ("vit_tiny_patch16_224", "test_vit", "deit_tiny_distilled_patch16_224")


def class_and_patches(network, images):
    tokens = network.forward_features(images)
    return torch.cat([tokens[:, 0], tokens[:, network.num_prefix_tokens :].mean(1)], dim=1)


@pytest.mark.parametrize(
    ("name", "size", "stages"),
    [
        ("resnet18", 64, 9),
        ("efficientnet_b0", 64, 20),
        ("vit_tiny_patch16_224", 32, 13),
        ("test_vit", 32, 7),  # a class token
        ("test_vit2", 32, 9),  # patches alone are averaged
        ("test_vit3", 32, 11),  # a pooling by attention
        ("deit_tiny_distilled_patch16_224", 32, 13),  # two tokens that are no patches
        ("convnext_atto", 64, 16),
        ("mobilenetv3_small_050", 64, 16),
        ("eva02_tiny_patch14_224", 28, 1),
    ],
)
def test_models_are_split_and_compute_the_same(name, size, stages):
    torch.manual_seed(0)
    backbone = build(name, size, stages)
    settings = {"img_size": size} if "vit" in name or "patch" in name else {}
    torch.manual_seed(0)
    whole = timm.create_model(name, num_classes=0, **settings).eval()
    images = torch.randn(2, 3, size, size)
    with torch.no_grad():
        expected = class_and_patches(whole, images) if name in BY_TOKENS else whole(images)
        torch.testing.assert_close(backbone(images), expected, rtol=1e-4, atol=1e-5)
    parameters = [id(parameter) for stage in backbone.stages for parameter in stage.parameters()]
    assert len({*parameters}) == len(parameters)
    state = backbone.state_dict()
    assert len({tensor.data_ptr() for tensor in state.values() if tensor.numel()}) == len(state)


def test_a_transformer_trains_its_last_two_blocks():
    backbone = build("vit_tiny_patch16_224", 32, 13)
    first = backbone.first_trainable["paper"]
    assert [
        type(stage[0] if isinstance(stage, nn.Sequential) else stage).__name__ for stage in backbone.stages[first:]
    ] == ["Block", "Block"]


def test_input_is_what_the_model_says():
    spec = create_backbone("timm:vit_tiny_patch16_224", pretrained=False).input
    assert (spec.size, spec.mean, spec.std, spec.interpolation) == (224, (0.5,) * 3, (0.5,) * 3, "bicubic")


def test_weights_from_a_file_with_or_without_classifier(tmp_path):
    torch.manual_seed(1)
    whole = timm.create_model("resnet18").eval()
    torch.save(whole.state_dict(), tmp_path / "resnet18.pth")
    backbone = create_backbone("timm:resnet18", weights=tmp_path / "resnet18.pth", size=64).eval()
    images = torch.randn(1, 3, 64, 64)
    torch.testing.assert_close(backbone(images), whole.forward_head(whole.forward_features(images), pre_logits=True))
    assert backbone.pretrained


def test_unknown_names_get_a_hint():
    with pytest.raises(ValueError, match=r"timm has no model named 'resnet18x': perhaps .*resnet18"):
        create_backbone("timm:resnet18x", pretrained=False)


def answering(head):
    """Stand in for the session of the hub's library."""
    return lambda: SimpleNamespace(head=head)


def test_a_failed_download_says_what_to_do(monkeypatch):
    def fail(*_args, **_kwargs):
        raise OSError("no route to host\nand more")

    monkeypatch.setattr(huggingface_hub, "get_session", answering(lambda *_, **__: None))
    monkeypatch.setattr(timm, "create_model", fail)
    with pytest.raises(
        ConnectionError,
        match=r"^the pre-trained .*resnet18 .* \(no route to host\): put .*--weights .*--from-scratch[^\n]*$",
    ):
        create_backbone("timm:resnet18")


@pytest.mark.parametrize("cached", [True, False])
def test_without_a_connection_the_cache_answers_at_once(monkeypatch, cached):
    def create(*_args, **settings):
        if not settings.pop("pretrained"):
            return whole(*_args, **settings)
        assert constants.HF_HUB_OFFLINE
        if not cached:
            raise FileNotFoundError("not in the cache")
        return whole(*_args, pretrained=False, **settings)

    def no_answer(*_args, **_kwargs):
        raise OSError("no route to host")

    whole = timm.create_model
    monkeypatch.setattr(timm, "create_model", create)
    monkeypatch.setattr(huggingface_hub, "get_session", answering(no_answer))
    before = constants.HF_HUB_OFFLINE
    if cached:
        assert create_backbone("timm:resnet18", size=32).pretrained
    else:
        sentence = (
            rf"resnet18 could not be downloaded \({constants.ENDPOINT} cannot be reached, and the cache .*, holds no "
            r"model.safetensors of timm/resnet18.a1_in1k\): .*--backbone timm:local-dir:FOLDER, .*--weights FILE"
        )
        with pytest.raises(ConnectionError, match=sentence):
            create_backbone("timm:resnet18", size=32)
    assert before == constants.HF_HUB_OFFLINE


def test_a_user_who_forbids_connections_is_told_so(monkeypatch, tmp_path):
    def never(*_args, **_kwargs):
        pytest.fail("the hub was asked")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub, "get_session", answering(never))
    with pytest.raises(ConnectionError, match=r"\(HF_HUB_OFFLINE is set, and the cache .* holds no model.safetensors"):
        create_backbone("timm:resnet18", size=32)
    assert constants.HF_HUB_OFFLINE


def test_weights_from_elsewhere_do_not_ask_the_hub(monkeypatch):
    def fail(*_args, **_kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr(huggingface_hub, "get_session", lambda: pytest.fail("the hub was asked"))
    monkeypatch.setattr(timm, "create_model", fail)
    with pytest.raises(ConnectionError, match=r"legacy_seresnet18 .* \(no route to host\): give a file"):
        create_backbone("timm:legacy_seresnet18")


@pytest.mark.parametrize(("size", "choices"), [(8, "16"), (100, "96 or 112"), (225, "224 or 240")])
def test_a_size_that_patches_do_not_cover_is_refused_with_the_nearest(size, choices):
    with pytest.raises(
        ValueError, match=rf"size {size} does not fit .*patch16_224, .* 16 pixels wide: choose {choices}$"
    ):
        create_backbone("timm:vit_tiny_patch16_224", pretrained=False, size=size)


@pytest.mark.parametrize("precision", [torch.float32, torch.float16])
def test_positions_are_resampled_as_timm_does_it(tmp_path, precision):
    torch.manual_seed(1)
    whole = timm.create_model("test_vit", num_classes=0).eval()
    with torch.no_grad():
        for parameter in whole.parameters():
            parameter.copy_(parameter.to(precision))
    save_file({key: tensor.to(precision) for key, tensor in whole.state_dict().items()}, tmp_path / "w.safetensors")
    backbone = create_backbone("timm:test_vit", weights=tmp_path / "w.safetensors", size=64).eval()
    assert {parameter.dtype for parameter in backbone.parameters()} == {torch.float32}
    whole.set_input_size(img_size=(64, 64))
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(backbone(images), class_and_patches(whole, images), rtol=1e-4, atol=1e-5)


def test_a_file_of_another_network_says_what_to_do(tmp_path):
    state = timm.create_model("test_vit").state_dict()
    state["pos_embed"] = torch.zeros(1, 7, 5)  # no square of patches
    save_file(state, tmp_path / "w.safetensors")
    for name, sentence in (("test_vit", "pos_embed has shape"), ("test_resnet", "missing.*unexpected")):
        with pytest.raises(ValueError, match=rf"do not fit the backbone timm:{name}: .*{sentence}.*: make the file by"):
            create_backbone(f"timm:{name}", weights=tmp_path / "w.safetensors", size=64)


def test_a_hub_that_says_nothing_is_not_waited_for(monkeypatch, tmp_path):
    monkeypatch.setattr(timm_models, "PATIENCE", 0.2)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{listening.getsockname()[1]}")
        before = time.monotonic()
        with pytest.raises(ConnectionError, match=r"cannot be reached, .*--weights FILE.*--backbone lite0"):
            create_backbone("timm:test_vit", size=32)
    assert time.monotonic() - before < 5
