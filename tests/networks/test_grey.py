import pytest
import torch

from sohot.networks import create_backbone


def normalise(pixels, spec):
    mean, std = (torch.tensor(numbers).view(-1, 1, 1) for numbers in (spec.mean, spec.std))
    return (pixels - mean) / std


@pytest.mark.parametrize("name", ["lite0", "alexnet", "resnet50", "timm:resnet18"])
def test_pretrained_kind_of_networks_take_one_channel(name):
    torch.manual_seed(0)
    colour = create_backbone(name, pretrained=False, size=64).eval()
    torch.manual_seed(0)
    grey = create_backbone(name, pretrained=False, size=64, channels=1).eval()
    pixels = torch.rand(1, 1, 64, 64)
    expected = colour(normalise(pixels.expand(-1, 3, -1, -1), colour.input))
    torch.testing.assert_close(grey(normalise(pixels, grey.input)), expected, rtol=1e-3, atol=1e-4)
    assert grey.input.channels == 1
    assert grey.first_trainable == colour.first_trainable
