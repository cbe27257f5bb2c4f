"""The device and the number of threads that torch uses."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

KINDS = ("cuda", "mps", "cpu")
"""Kinds of devices, most preferred first."""


def choose_device(name: str, kinds: Sequence[str] = KINDS) -> torch.device:
    """Choose a device by name; "auto" means the first kind that this machine has.

    Args:
        name: "auto" or one of the kinds.
        kinds: The acceptable kinds.

    Raises:
        ValueError: This machine has no such device.

    Example:
        >>> choose_device("cpu")
        device(type='cpu')
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    found = [kind for kind in kinds if there.get(kind) and name in ("auto", kind)]
    if not found:
        raise ValueError(f"--device {name}: this machine has no such device")
    return torch.device(found[0])


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: no slower for small work, and a fixed order of summation gives the same result.

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
