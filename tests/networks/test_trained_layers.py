"""Layers that train together on a GPU: the same function, the same gradients, and nothing left behind."""

from pathlib import Path

import pytest
import torch
from interpreted import run_interpreted
from torch import nn

from sohot.networks import TwoStreams, create_backbone
from sohot.networks import trained_layers as module
from sohot.networks.trained_layers import TrainedConvolution, _rewrite, trained_layers


def test_outputs_and_gradients_are_those_of_the_parts():
    errors = run_interpreted(Path(__file__).with_name("trained_layers_cases.py"))
    assert len(errors) == 10
    assert {name: error for name, error in errors.items() if not error < 2e-6} == {}


class Twice(nn.Module):
    """Uses the outputs of a convolution twice, so that they are needed as they are."""

    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

    def forward(self, inputs):
        found = self.convolution(inputs)
        return found + self.norm(found)


class Moody(nn.Sequential):
    """Does something else when it trains."""

    def forward(self, inputs):
        outputs = super().forward(inputs)
        return outputs * 2 if self.training else outputs


def fixed(module):
    """Keep the statistics of batch normalisation, also when the module is set to train."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.eval()
            layer.train = lambda _mode=True, layer=layer: layer
    return module


def layers_of(changed):
    return sum(isinstance(part, TrainedConvolution) for one in changed for part in one.forward.__self__.modules())


def test_only_fixed_statistics_after_one_use_are_joined():
    assert layers_of(_rewrite(fixed(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))))) == 1
    assert not _rewrite(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)))  # it trains on statistics of batches
    assert layers_of(_rewrite(fixed(Twice()))) == 0
    assert not _rewrite(fixed(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))).requires_grad_(False))


def test_what_depends_on_the_mode_stays_and_its_parts_do_not():
    moody = Moody(fixed(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))))
    assert _rewrite(moody) == [moody[0]]
    assert moody.training


def test_a_processor_is_left_alone():
    model = fixed(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)))
    with trained_layers(model, torch.device("cpu")):
        assert "forward" not in model.__dict__


def test_nothing_is_left_behind(monkeypatch):
    monkeypatch.setattr(module, "kernels_work", lambda _: True)
    model = fixed(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)))
    with trained_layers(model, torch.device("cuda")):
        assert "forward" in model.__dict__
    assert "forward" not in model.__dict__


@pytest.mark.parametrize("name", ["resnet50", "lite0"])
def test_known_networks(name):
    model = TwoStreams(create_backbone(name, pretrained=False), 3, trains="paper", batch_norm="fixed")
    norms = [layer for layer in model.tails.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert layers_of(_rewrite(model)) == len(norms) > 0
