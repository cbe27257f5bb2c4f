"""Counters at which the programs of a kernel meet: zero before each launch and, put back by the last program, after it.

Launches that may run at the same time need counters of their own: each stream has one, and so has each launch that a
CUDA graph captures, since a graph may be replayed on any stream.
"""

from threading import Lock

import torch
from torch import Tensor

ALIGNMENT = 4
"""Counters are this far apart: kernels are compiled for addresses that are multiples of 16 bytes."""
SPARE = 2**18
"""Numbers, 1 MiB, of each GPU for launches that graphs capture. If they run out, graphs zero new ones themselves."""

_of_stream: dict[tuple[int, int], Tensor] = {}
_spare: dict[int, Tensor] = {}
_lock = Lock()


def counters_of(beside: Tensor) -> Tensor:
    """Return a counter for the next launch on the current stream of the device of a tensor."""
    device = beside.get_device()
    if device < 0:  # interpreted on a CPU
        return beside.new_zeros(1, dtype=torch.int32)
    if torch.cuda.is_current_stream_capturing():
        return _captured(beside, device)
    stream = device, torch._C._cuda_getCurrentRawStream(device)
    found = _of_stream.get(stream)
    if found is None:
        with _lock:
            if device not in _spare:
                _spare[device] = beside.new_zeros(SPARE, dtype=torch.int32)
                torch.cuda.synchronize(device)  # once: graphs on any stream may use them
        found = _of_stream[stream] = beside.new_zeros(1, dtype=torch.int32)
    return found


def _captured(beside: Tensor, device: int) -> Tensor:
    with _lock:
        spare = _spare.get(device)
        if spare is None or not spare.numel():
            return beside.new_zeros(1, dtype=torch.int32)
        _spare[device] = spare[ALIGNMENT:]
        return spare[:1]
