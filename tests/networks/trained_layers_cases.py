"""Layers that train together against their parts, with kernels interpreted on a CPU; prints the errors as JSON."""

import json
import os
from copy import deepcopy

if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "1"

import torch
from torch import nn

from sohot.networks.trained_layers import _rewrite


class Padded(nn.Conv2d):
    """Pads its input itself, as some networks do."""

    def __init__(self, *arguments, pad, **options):
        super().__init__(*arguments, **options)
        self.static_padding = nn.ZeroPad2d(pad)

    def forward(self, inputs):
        inputs = self.static_padding(inputs)
        weights = self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        return nn.functional.conv2d(inputs, *weights)


class Residual(nn.Module):
    """Adds its input, and shares one activation, as blocks of networks do."""

    def __init__(self, *layers, activation):
        super().__init__()
        self.layers, self.activation = nn.ModuleList(layers), activation

    def forward(self, inputs):
        outputs = inputs
        for layer in self.layers[:-2]:
            outputs = layer(outputs)
            if isinstance(layer, nn.BatchNorm2d):
                outputs = self.activation(outputs)
        outputs = self.layers[-1](self.layers[-2](outputs))
        return self.activation(outputs + inputs)


class Fixed(nn.Sequential):
    """Keeps the statistics of its batch normalisation."""

    def train(self, mode=True):
        super().train(mode)
        for layer in self.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.eval()
        return self


CASES = {
    "relu6": lambda: [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU6()],
    "relu in place": lambda: [nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True)],
    "no activation": lambda: [nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.SiLU()],
    "no parameters": lambda: [nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4, affine=False)],
    "depthwise": lambda: [
        nn.Conv2d(3, 6, 1, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU6(),
        Padded(6, 6, 5, groups=6, bias=False, pad=2),
        nn.BatchNorm2d(6),
        nn.ReLU6(),
    ],
    "pooled": lambda: [nn.Conv2d(3, 5, 1), nn.BatchNorm2d(5), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()],
    "depthwise and pooled": lambda: [
        nn.Conv2d(3, 3, 3, padding=1, groups=3),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d((1, 1)),
    ],
    "depthwise in steps": lambda: [nn.Conv2d(3, 3, 3, stride=2, groups=3), nn.BatchNorm2d(3)],
    "padded unevenly": lambda: [Padded(3, 4, 3, pad=(0, 1, 0, 1)), nn.BatchNorm2d(4), nn.ReLU()],
    "residual": lambda: [
        Residual(
            nn.Conv2d(3, 5, 1),
            nn.BatchNorm2d(5),
            nn.Conv2d(5, 3, 3, padding=1),
            nn.BatchNorm2d(3),
            activation=nn.ReLU(),
        )
    ],
}


def made(layers):
    torch.manual_seed(0)
    model = Fixed(*layers)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(std=0.2)
            layer.running_var.uniform_(0.5, 2.0)
            if layer.affine:
                nn.init.uniform_(layer.weight, 0.5, 2.0)
                nn.init.normal_(layer.bias)
    return model.train()


def with_gradients(model, images):
    outputs = model(images)
    gradients = torch.autograd.grad(outputs.square().sum(), [images, *model.parameters()])
    return [outputs.detach(), *gradients]


def error(one, other):
    return float((one - other).norm() / one.norm())


def main():
    found = {}
    for name, layers in CASES.items():
        model, images = made(layers()), torch.randn(3, 3, 6, 7, requires_grad=True)
        before, names = with_gradients(model, images), list(model.state_dict())
        changed = _rewrite(model)
        assert changed, name
        kinds = {type(part).__name__ for part in changed[0].forward.__self__.modules()}
        assert "TrainedConvolution" in kinds, (name, kinds)
        assert "BatchNorm2d" not in kinds, (name, kinds)
        assert list(model.state_dict()) == names
        together = with_gradients(model, images)
        copied = with_gradients(deepcopy(model), images)
        assert all(one.equal(other) for one, other in zip(together, copied, strict=True))
        with torch.no_grad():  # a copy has its own parameters
            copy = deepcopy(model)
            for parameter in copy.parameters():
                parameter.zero_()
            assert model(images).equal(together[0])
            assert not copy(images).equal(together[0])
        model.double()
        exact = with_gradients(model, images.detach().double().requires_grad_())
        assert error(before[0], exact[0]) < 1e-6
        found[name] = max(error(one, other) for one, other in zip(before, together, strict=True))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
