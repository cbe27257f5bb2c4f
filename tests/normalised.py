"""A tiny network with batch normalisation and weights of its own: to every command it is a pre-trained one."""

from pathlib import Path

CODE = """
import torch
from torch import nn
from sohot.data.input_spec import InputSpec
from sohot.networks import Backbone

def net(pretrained=True):
    torch.manual_seed(0)
    stages = [
        nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU()),
        nn.Sequential(nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    ]
    return Backbone("tiny", stages, InputSpec(16, (0.5,) * 3, (0.5,) * 3, 16), paper=1, pretrained=pretrained)
"""


def write_network(folder: Path) -> str:
    """Write a network's file; return the name of the network."""
    (folder / "net.py").write_text(CODE)
    return f"{folder / 'net.py'}:net"
