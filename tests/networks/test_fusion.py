"""Fused layers compute what the layers compute, whatever the network does with them."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from sohot.networks.fusion import arranged, fuse_layers


def trained(network: nn.Module) -> nn.Module:
    """Give batch normalisation statistics that are not those it starts with."""
    generator = torch.Generator().manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            if module.running_mean is not None and module.running_var is not None:
                module.running_mean.normal_(generator=generator)
                module.running_var.uniform_(0.5, 2, generator=generator)
            nn.init.uniform_(module.weight, 0.5, 2, generator=generator)
            nn.init.normal_(module.bias, generator=generator)
    return network.eval()


class Calls(TorchDispatchMode):
    """Counts fused convolutions."""

    fused = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.fused += function is torch.ops.mkldnn._convolution_pointwise.default
        return function(*args, **(kwargs or {}))


class OwnPadding(nn.Conv2d):
    """A convolution with its own forward pass, as networks ported from TensorFlow have."""

    def forward(self, rows: Tensor) -> Tensor:
        return F.conv2d(rows, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU())

    def forward(self, rows: Tensor) -> Tensor:
        return rows + self.layers(rows)


class DependsOnInput(nn.Module):
    """Cannot be traced as a whole, and uses more of its parts than their forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.layers.factor = 2.0  # type: ignore[assignment]

    def forward(self, rows: Tensor) -> Tensor:
        if rows.mean() > 1e9:
            raise AssertionError
        return self.layers(rows) * self.layers.factor


NETWORKS = {
    "convolution alone": (1, lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1)),
    "normalised": (1, lambda: nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4))),
    "relu": (1, lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())),
    "relu6": (1, lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU6())),
    "silu": (1, lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU())),
    "other activation": (1, lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid())),
    "padded alike": (1, lambda: nn.Sequential(nn.ZeroPad2d(2), nn.Conv2d(3, 4, 5, padding=1), nn.ReLU())),
    "padded more after": (1, lambda: nn.Sequential(nn.ZeroPad2d((0, 1, 1, 2)), nn.Conv2d(3, 4, 3, stride=2))),
    "padded more before": (1, lambda: nn.Sequential(nn.ZeroPad2d((2, 0, 1, 0)), nn.Conv2d(3, 4, 3, stride=2))),
    "padded, dilated": (1, lambda: nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(3, 4, 3, dilation=2))),
    "padded with ones": (1, lambda: nn.Sequential(nn.ConstantPad2d(1, 1.0), nn.Conv2d(3, 4, 3))),
    "groups": (2, lambda: nn.Sequential(nn.Conv2d(3, 6, 1), nn.Conv2d(6, 6, 3, groups=6), nn.BatchNorm2d(6))),
    "own forward pass": (1, lambda: nn.Sequential(OwnPadding(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU6())),
    "residual": (1, Residual),
    "padded by name": (0, lambda: nn.Conv2d(3, 4, 3, padding="same")),
    "reflected": (1, lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"))),
    "statistics of the batch": (
        1,
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), nn.ReLU()),
    ),
    "steps that depend on the input": (1, DependsOnInput),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_fused_layers_compute_the_same(name: str) -> None:
    torch.manual_seed(0)
    expected, make = NETWORKS[name]
    network, images = trained(make()), torch.randn(3, 3, 12, 14)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    fused = fuse_layers(network, images[:1])
    with torch.no_grad(), Calls() as calls:
        outputs = fused(arranged(images))
    with torch.no_grad():
        torch.testing.assert_close(outputs, network(images), rtol=1e-4, atol=1e-5)
    assert calls.fused == expected
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_what_cannot_be_fused_stays() -> None:
    images = torch.randn(2, 3, 8, 8)
    flat, precise = nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), nn.Conv2d(3, 4, 3).double()
    assert fuse_layers(flat, images) is flat
    assert fuse_layers(precise, images.double()) is precise


class TreatsTracersDifferently(nn.Module):
    """Computes something else where its input is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 4, 3)

    def forward(self, rows: Tensor) -> Tensor:
        return self.layer(rows) * (1 if isinstance(rows, Tensor) else 2)


def test_a_copy_that_computes_something_else_is_not_used() -> None:
    network, images = TreatsTracersDifferently(), torch.randn(1, 3, 8, 8)
    torch.testing.assert_close(fuse_layers(network, images)(images), network(images))
