from types import SimpleNamespace

import huggingface_hub
import pytest
import torch
from huggingface_hub import constants
from torch import nn

from sohot._torchvision import import_torchvision
from sohot.networks import create_backbone

import_torchvision()
timm = pytest.importorskip("timm")


def build(name, size, stages):
    backbone = create_backbone(f"timm:{name}", pretrained=False, size=size).eval()
    assert len(backbone.stages) == stages
    return backbone


@pytest.mark.parametrize(
    ("name", "size", "stages"),
    [
        ("resnet18", 64, 9),
        ("efficientnet_b0", 64, 20),
        ("vit_tiny_patch16_224", 32, 13),
        ("convnext_atto", 64, 16),
        ("mobilenetv3_small_050", 64, 16),
        ("eva02_tiny_patch14_224", 28, 1),
    ],
)
def test_models_are_split_and_compute_the_same(name, size, stages):
    torch.manual_seed(0)
    backbone = build(name, size, stages)
    settings = {"img_size": size} if "patch" in name else {}
    torch.manual_seed(0)
    whole = timm.create_model(name, num_classes=0, **settings).eval()
    images = torch.randn(2, 3, size, size)
    with torch.no_grad():
        torch.testing.assert_close(backbone(images), whole(images), rtol=1e-4, atol=1e-5)
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
        ConnectionError, match=r"timm:resnet18 .* \(no route to host\): put .*, give .*--weights FILE.*--from-scratch"
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


def test_a_connection_that_breaks_ends_in_one_sentence(monkeypatch):
    def fail(*_args, **_kwargs):
        raise ConnectionError("connection reset by peer")

    monkeypatch.setattr(huggingface_hub, "get_session", answering(lambda *_, **__: None))
    monkeypatch.setattr(timm, "create_model", fail)
    with pytest.raises(ConnectionError, match=r"^the pre-trained .*resnet18.* \(connection reset by peer\): [^\n]*$"):
        create_backbone("timm:resnet18")


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


def test_a_size_the_model_does_not_take_is_named():
    with pytest.raises(ValueError, match="vit_tiny_patch16_224 does not accept an image of 3 x 8 x 8: "):
        create_backbone("timm:vit_tiny_patch16_224", pretrained=False, size=8)
