"""A tiny network with weights from a file: to every command it is a pre-trained one."""

from pathlib import Path

import torch
from safetensors.torch import save_file

from sohot.networks import create_backbone


def write_weights(folder: Path, seed: int = 0) -> Path:
    """Write weights for `--backbone small-cnn --image-size 16`."""
    torch.manual_seed(seed)
    save_file(create_backbone("small-cnn", size=16).state_dict(), folder / "small-cnn.safetensors")
    return folder / "small-cnn.safetensors"
