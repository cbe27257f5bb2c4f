import pytest
import torch
from torch import nn

from sohot.data import InputSpec
from sohot.networks import create_backbone
from sohot.networks.grey import GreyToColour, fit_channels

COLOUR = InputSpec(16, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 16)


def normalise(pixels, spec):
    mean, std = (torch.tensor(numbers).view(-1, 1, 1) for numbers in (spec.mean, spec.std))
    return (pixels - mean) / std


def test_a_grey_image_counts_as_the_same_image_in_colour():
    grey = torch.rand(2, 1, 16, 16)
    adapter = GreyToColour(COLOUR)
    shown = adapter(normalise(grey, adapter.input))
    torch.testing.assert_close(shown, normalise(grey.expand(-1, 3, -1, -1), COLOUR))


def test_the_first_convolution_acts_with_the_sum_of_its_weights():
    even = InputSpec(16, (0.5,) * 3, (0.5,) * 3, 16)
    convolution = nn.Conv2d(3, 4, 3, padding=1)
    (stage,), spec = fit_channels([convolution], even, 1)
    images = torch.randn(2, 1, 16, 16)
    summed = nn.functional.conv2d(images, convolution.weight.sum(1, keepdim=True), convolution.bias, padding=1)
    torch.testing.assert_close(stage(images), summed, atol=1e-5, rtol=1e-5)
    assert spec.channels == 1


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


def test_colour_does_not_fit_a_network_for_grey():
    with pytest.raises(ValueError, match="channels=3: this network accepts images of 1 channel"):
        fit_channels([nn.Conv2d(1, 4, 3)], InputSpec(16, (0.5,), (0.5,), 16), 3)
