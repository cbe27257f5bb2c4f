"""Whether Triton can compile kernels here: besides a GPU it needs a C compiler, which small images of systems lack."""

import warnings
from functools import lru_cache
from importlib.util import find_spec

import torch

_HAS_TRITON = find_spec("triton") is not None


@lru_cache(maxsize=64)
def kernels_work(device: torch.device) -> bool:
    """Compile and run the smallest kernel on a GPU, once per process; if that fails, one sentence says why."""
    if not _HAS_TRITON or device.type != "cuda" or torch.version.cuda is None:
        return False
    try:
        with torch.cuda.device(device):
            run_smallest(device)
    except Exception as error:  # Triton raises many kinds of error
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        warnings.warn(
            f"Triton cannot compile kernels here ({reason}), so the slower plain operations are used; mostly a C "
            "compiler is missing (apt install gcc)",
            stacklevel=3,
        )
        return False
    return True


def run_smallest(device: torch.device) -> None:
    """Add 1 to a number."""
    from .smallest import add_one

    number = torch.zeros(1, device=device)
    add_one[(1,)](number)
