"""GPU kernels for the alignment of classes of at most 64 rows; `gram` computes the same in plain operations.

The environment variable SOHOT_KERNEL selects one of the two: "auto" (the kernels on an NVIDIA GPU that supports them),
"plain" (never the kernels) or "triton" (the kernels for all input they can take, also under Triton's interpreter on a
CPU). Triton is imported when the kernels are first used.
"""

import os
import warnings
from functools import lru_cache
from importlib.util import find_spec

import torch
from torch import Tensor

from ..grouping import largest_class
from ..plain_checks import check_choice
from .layout import LARGEST_CAPACITY

__all__ = ["kernels_work", "rows_to_hold"]

CHOICES = ("auto", "plain", "triton")
TYPES = (torch.float32, torch.bfloat16, torch.float16)
_HAS_TRITON = find_spec("triton") is not None


def rows_to_hold(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    num_classes: int,
    most_rows: int | None = None,
) -> int | None:
    """Return how many rows of a class the kernels must hold, or None where plain operations compute the alignment.

    Without `most_rows` the labels are counted, which waits for the GPU; compilers, to whom labels are unknown, then
    get the plain operations, unless all rows together are few.
    """
    if not _is_usable(source, target):
        return None
    rows = source.shape[0] + target.shape[0]
    if rows <= LARGEST_CAPACITY:
        return min(most_rows or LARGEST_CAPACITY, LARGEST_CAPACITY)
    if most_rows is None:
        if torch.compiler.is_compiling() or rows > LARGEST_CAPACITY * num_classes:
            return None
        most_rows = largest_class(source_labels, target_labels, num_classes)
    return most_rows if most_rows <= LARGEST_CAPACITY else None


def _is_usable(source: Tensor, target: Tensor) -> bool:
    """Whether the kernels can take these features: depends only on types and devices."""
    choice = check_choice(os.environ.get("SOHOT_KERNEL", "auto"), CHOICES, "the environment variable SOHOT_KERNEL")
    if choice == "plain" or source.dtype not in TYPES or target.dtype != source.dtype:
        return False
    if choice == "triton":
        if not _HAS_TRITON:
            raise ValueError("SOHOT_KERNEL=triton needs the package triton, which is not installed")
        return True
    return source.device.type == "cuda" and _suits(source.device)


def _suits(device: torch.device) -> bool:
    return kernels_work(device)


# What torch.compiler.assume_constant_result sets; that function would first import the compiler, for two seconds.
_suits._dynamo_marked_constant = True  # type: ignore[attr-defined]


@lru_cache(maxsize=64)
def kernels_work(device: torch.device) -> bool:
    """Whether a GPU has matrix units for tf32 and bfloat16, and Triton can compile kernels for it.

    That needs a C compiler, which small images of systems lack. The smallest kernel is tried once per process; if that
    fails, one sentence says why.
    """
    if not _HAS_TRITON or device.type != "cuda" or torch.version.cuda is None:
        return False
    if torch.cuda.get_device_capability(device) < (8, 0):
        return False
    try:
        with torch.cuda.device(device):
            _run_smallest(device)
    except Exception as error:  # Triton raises many kinds of error
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        warnings.warn(
            f"Triton cannot compile kernels here ({reason}), so the slower plain operations are used; mostly a C "
            "compiler is missing (apt install gcc)",
            stacklevel=3,
        )
        return False
    return True


def _run_smallest(device: torch.device) -> None:
    from .rows import add_one

    add_one[(1,)](torch.zeros(1, device=device))
