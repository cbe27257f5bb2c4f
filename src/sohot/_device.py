"""What torch computes with: the device, and the number of threads."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

KINDS = ("cuda", "mps", "cpu")
"""Kinds of devices, the one to prefer first."""


def choose_device(name: str, kinds: Sequence[str] = KINDS) -> torch.device:
    """Choose the device that a name stands for; "auto" stands for the first kind that this machine has.

    Args:
        name: "auto" or one of the kinds.
        kinds: The kinds that will do.

    Raises:
        ValueError: This machine has no such device.

    Example:
        >>> choose_device("cpu")
        device(type='cpu')
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    found = [kind for kind in kinds if there.get(kind) and name in ("auto", kind)]
    if not found:
        raise ValueError(f"--device {name}: there is no such device here")
    return torch.device(found[0])


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: small work is not slower so, and sums in one order give the same result.

    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
