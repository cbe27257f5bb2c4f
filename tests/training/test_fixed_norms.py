"""Normalisation inside of convolutions: the same function, the same gradients, and nothing left behind."""

import pytest
import torch
from torch import nn

from sohot.networks import TwoStreams, create_backbone
from sohot.training.fixed_norms import fixed_pairs, norms_in_convolutions

GPU, CPU = torch.device("cuda"), torch.device("cpu")


class Padded(nn.Conv2d):
    """Pads its input itself, as some networks do."""

    def forward(self, inputs):
        return super().forward(nn.functional.pad(inputs, (1, 0, 1, 0)))


class Twice(nn.Module):
    """Uses the outputs of a convolution twice, so that they are needed as they are."""

    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

    def forward(self, inputs):
        found = self.convolution(inputs)
        return found + self.norm(found)


def network(*layers):
    torch.manual_seed(0)
    made = nn.Sequential(*layers).double()
    for layer in made.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2.0)
            if layer.affine:
                nn.init.uniform_(layer.weight)
                nn.init.normal_(layer.bias)
    return made.eval()


def with_gradients(model, images):
    outputs = model(images)
    return [outputs, *torch.autograd.grad(outputs.square().sum(), list(model.parameters()))]


class Fixed(nn.Sequential):
    """Keeps the statistics of its batch normalisation."""

    def train(self, mode=True):
        del mode
        return super().train(False)


CASES = {
    "with biases": lambda: (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU6()),
    "without biases": lambda: (nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU()),
    "without weights": lambda: (nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4, affine=False)),
    "depthwise": lambda: (nn.Conv2d(3, 6, 3, groups=3), nn.BatchNorm2d(6), nn.Conv2d(6, 2, 1), nn.BatchNorm2d(2)),
    "padded": lambda: (Padded(3, 4, 2, bias=False), nn.BatchNorm2d(4)),
}


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_stay(case):
    model, images = Fixed(network(*CASES[case]())), torch.randn(2, 3, 6, 6, dtype=torch.float64)
    before, names = with_gradients(model, images), list(model.state_dict())
    with norms_in_convolutions(model, GPU):
        assert list(model.state_dict()) == names
        for one, other in zip(before, with_gradients(model, images), strict=True):
            assert torch.allclose(one, other, rtol=1e-10, atol=1e-12)
    for one, other in zip(before, with_gradients(model, images), strict=True):
        assert one.equal(other)


def test_only_fixed_statistics_after_one_use_are_folded():
    fixed = Fixed(network(*CASES["with biases"]()))
    assert len(fixed_pairs(fixed)) == 1
    assert not fixed_pairs(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)))  # it trains on statistics of batches
    assert not fixed_pairs(Fixed(Twice()))
    assert not fixed_pairs(fixed.requires_grad_(False))


def test_a_processor_is_left_alone():
    model = Fixed(network(*CASES["with biases"]()))
    with norms_in_convolutions(model, CPU):
        assert "forward" not in model[0][0].__dict__


@pytest.mark.parametrize("name", ["resnet50", "lite0"])
def test_known_networks(name):
    model = TwoStreams(create_backbone(name, pretrained=False), 3, trains="paper", batch_norm="fixed")
    norms = [layer for layer in model.tails.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert len(fixed_pairs(model)) == len(norms) > 0
    model.eval()
    images = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        before = model(None, images).target_features
        with norms_in_convolutions(model, GPU):
            assert torch.allclose(model(None, images).target_features, before, rtol=1e-3, atol=1e-4)
