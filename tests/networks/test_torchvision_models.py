import pytest
import torch
from torch import nn

from sohot._torchvision import import_torchvision
from sohot.networks import TwoStreams, create_backbone


@pytest.fixture(scope="module")
def alexnet():
    torch.manual_seed(0)
    return import_torchvision().models.alexnet(weights=None).eval()


@pytest.fixture(scope="module")
def weights(alexnet, tmp_path_factory):
    file = tmp_path_factory.mktemp("weights") / "alexnet.pth"
    torch.save(alexnet.state_dict(), file)
    return file


@pytest.mark.parametrize("tap", ["before-relu", "after-relu"])
def test_features_are_fc7_and_the_classifier_stands_behind_the_relu(alexnet, weights, tap):
    backbone = create_backbone("alexnet", weights=weights, tap=tap).eval()
    images = torch.randn(2, 3, 224, 224)
    layers = alexnet.classifier[: 5 if tap == "before-relu" else 6]
    with torch.no_grad():
        fc7 = layers(torch.flatten(alexnet.avgpool(alexnet.features(images)), 1))
        torch.testing.assert_close(backbone(images), fc7)
        torch.testing.assert_close(alexnet.classifier[6](backbone.activation(backbone(images))), alexnet(images))
    assert backbone.pretrained
    assert backbone.tap == tap
    assert backbone.input.size == 224
    assert backbone.input.resize == 256


def run(dropout, tap="before-relu"):
    model = TwoStreams(create_backbone("alexnet", pretrained=False, size=64, dropout=dropout, tap=tap), 5).train()
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        return model(None, images), model(None, images)


@pytest.mark.parametrize("tap", ["before-relu", "after-relu"])
def test_dropout_stays_out_of_the_alignment_by_default(tap):
    first, second = run("classifier", tap)
    assert torch.equal(first.target_features, second.target_features)
    assert not torch.equal(first.target_logits, second.target_logits)


def test_dropout_everywhere_reaches_the_features_and_none_nothing():
    first, second = run("everywhere")
    assert not torch.equal(first.target_features, second.target_features)
    assert (first.target_features == 0).float().mean() > 0.4
    first, second = run("none")
    assert torch.equal(first.target_features, second.target_features)
    assert torch.equal(first.target_logits, second.target_logits)


def test_everywhere_drops_behind_fc6_and_fc7_once_each():
    backbone = create_backbone("alexnet", pretrained=False, size=64, dropout="everywhere")
    kinds = [type(m) for m in backbone.stages.modules() if isinstance(m, (nn.Linear, nn.Dropout))]
    assert kinds == [nn.Linear, nn.Dropout, nn.Linear, nn.Dropout]
    assert backbone.dropout == 0
