"""The layout of the kernels on a GPU: it depends on shapes, and on how many rows a class may have."""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor


class Layout(NamedTuple):
    """Sizes that the kernels are compiled for."""

    capacity: int  # rows of a class that one program holds
    scan: int  # labels read per step if programs list their rows themselves; 0: rows are placed before
    block: int  # columns per step, forward
    parts: int  # programs that share the columns of a class, forward
    warps: int
    stages: int  # concurrent loads
    registers: int | None  # most per thread; None: the compiler decides
    finish_warps: int  # of the kernel for distances and the loss
    finish_registers: int | None
    gradient_block: int  # the same, backward
    gradient_parts: int
    gradient_warps: int
    gradient_stages: int
    gradient_registers: int | None

    def kept_numbers(self, classes: int, terms: int) -> int:
        """Float32 numbers of what a call keeps for its gradient (`sections` of `rows`)."""
        of_class = self.capacity * (self.parts * self.capacity + 3) + 2 * (2 * terms + 3)
        return classes * of_class + (classes + 2) // 2 * 2

    def filled(self, classes: int) -> int:
        """Where in it the numbers of rows of the classes start."""
        return classes * self.capacity * (self.parts * self.capacity + 3)


MOST_ROWS_TO_SCAN = 4096
LARGEST_CAPACITY = 64


@lru_cache(maxsize=256)
def choose_layout(rows: int, most_rows: int, classes: int, size: int, device: torch.device, half: bool) -> Layout:
    """Lay out a problem of so many rows, and at most so many of one class.

    Blocks, warps, stages and registers were the fastest of many on an H200; `half`: features in half precision.
    """
    processors = 4  # under Triton's interpreter, which has none
    if device.type == "cuda":
        processors = torch.cuda.get_device_properties(device).multi_processor_count
    capacity = max(16, power_of_two(most_rows))
    many_rows = capacity == LARGEST_CAPACITY
    block = min(128 if half else 64, max(16, power_of_two(size)))
    parts = max(1, min(2 * processors // classes, size // 256))
    is_short = parts > 1 and not many_rows and not half  # too little work to fill the GPU: latency counts
    return Layout(
        capacity=capacity,
        scan=1024 if rows <= MOST_ROWS_TO_SCAN else 0,
        block=block,
        parts=max(1, min(4 * processors // classes, size // 256)) if is_short else parts,
        warps=2 if is_short else 4,
        stages=1 if is_short else 4 if many_rows and not half else 3,
        registers=168 if many_rows and not half else None,
        finish_warps=4 if capacity == 16 else 8,
        finish_registers=128,
        gradient_block=block,
        gradient_parts=parts,
        gradient_warps=4,
        gradient_stages=2 if many_rows and not half else 3,
        gradient_registers=168 if many_rows and half else 128,
    )


def power_of_two(at_least: int) -> int:
    """The next power of two."""
    return 1 << (at_least - 1).bit_length()


def columns_each(size: int, block: int, parts: int) -> int:
    """Columns of one part: whole steps, so that a part never starts within another's step."""
    return -(-size // (block * parts)) * block


def few_columns(size: int) -> int:
    """How much the errors of single columns matter: 0 if there are many to average them out, up to 2."""
    return 2 if size < 64 else 1 if size < 512 else 0


def are_aligned(source: Tensor, target: Tensor) -> bool:
    """Whether every row starts at a multiple of 16 bytes, so that 16 bytes can be moved at once."""
    bytes_of_rows = (source.stride(0) | target.stride(0)) * source.element_size()
    return (bytes_of_rows | source.data_ptr() | target.data_ptr()) % 16 == 0
