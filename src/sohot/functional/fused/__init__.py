"""GPU kernels for the alignment loss; `gram` computes the same in plain operations and is the reference.

The environment variable SOHOT_KERNEL selects one of the two: "auto" (the kernels on an NVIDIA GPU that supports them),
"plain" (never the kernels) or "triton" (the kernels for all input they can take, also under Triton's interpreter on a
CPU). Triton is imported when the kernels are first used.
"""

import os
from functools import lru_cache
from importlib.util import find_spec

import torch
from torch import Tensor

from ..plain_checks import check_choice
from .layout import LARGEST_CAPACITY
from .probe import kernels_work

__all__ = ["is_usable"]

CHOICES = ("auto", "plain", "triton")
TYPES = (torch.float32, torch.bfloat16, torch.float16)
_HAS_TRITON = find_spec("triton") is not None


def is_usable(source: Tensor, target: Tensor, num_classes: int) -> bool:
    """Whether the kernels can take these features: depends only on types, shapes and devices, never on values."""
    choice = check_choice(os.environ.get("SOHOT_KERNEL", "auto"), CHOICES, "the environment variable SOHOT_KERNEL")
    if choice == "plain" or source.dtype not in TYPES or target.dtype != source.dtype:
        return False
    if source.shape[0] + target.shape[0] > LARGEST_CAPACITY * num_classes:  # plain matrix products are better here
        return False
    if choice == "triton":
        if not _HAS_TRITON:
            raise ValueError("SOHOT_KERNEL=triton needs the package triton, which is not installed")
        return True
    return _HAS_TRITON and source.device.type == "cuda" and _suits(source.device)


def _suits(device: torch.device) -> bool:
    """Whether a GPU has matrix units for tf32 and bfloat16, and kernels can be compiled for it."""
    return torch.version.cuda is not None and _capability(device) >= (8, 0) and kernels_work(device)


# What torch.compiler.assume_constant_result sets; that function would first import the compiler, for two seconds.
_suits._dynamo_marked_constant = True  # type: ignore[attr-defined]


@lru_cache(maxsize=64)
def _capability(device: torch.device) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)
