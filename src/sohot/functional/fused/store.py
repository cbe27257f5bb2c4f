"""Several arrays in one allocation: each allocation, and each view of one, takes microseconds of the host."""

from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

ALIGNMENT = 256  # bytes


class Section(NamedTuple):
    """One array."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    zeroed: bool = False  # must hold zeros at first

    @property
    def bytes(self) -> int:
        """Bytes up to the next array."""
        return -(-prod(self.shape) * self.dtype.itemsize // ALIGNMENT) * ALIGNMENT


class Store:
    """Where named arrays lie in one allocation of float32 numbers; those that must be zero come first.

    Example:
        >>> store = Store({"a": Section(torch.float64, (2, 3)), "b": Section(torch.int32, (5,), zeroed=True)})
        >>> numbers = store.allocate(torch.empty(1))
        >>> store.view(numbers, "b")
        tensor([0, 0, 0, 0, 0], dtype=torch.int32)
        >>> store.view(numbers, "a").shape
        torch.Size([2, 3])
    """

    def __init__(self, sections: dict[str, Section]) -> None:
        self.sections = dict(sorted(sections.items(), key=lambda item: not item[1].zeroed))
        sizes = [section.bytes for section in self.sections.values()]
        self._starts = {name: sum(sizes[:place]) for place, name in enumerate(self.sections)}  # bytes
        self.numbers = sum(sizes) // 4
        self._zeroed = sum(section.bytes for section in sections.values() if section.zeroed) // 4

    def allocate(self, beside: Tensor) -> Tensor:
        """Allocate the arrays on the device of another tensor."""
        numbers = beside.new_empty(self.numbers, dtype=torch.float32)
        if self._zeroed:
            numbers[: self._zeroed].zero_()
        return numbers

    def addresses(self, numbers: Tensor) -> list[int]:
        """Where each array starts in memory."""
        first = numbers.data_ptr()
        return [first + start for start in self._starts.values()]

    def view(self, numbers: Tensor, name: str) -> Tensor:
        """One array as a tensor."""
        section, start = self.sections[name], self._starts[name] // 4
        if section.dtype == torch.float32 and not section.shape:
            return numbers[start]
        found = numbers[start : start + prod(section.shape) * section.dtype.itemsize // 4]
        if section.dtype != torch.float32:
            found = found.view(section.dtype)
        return found if len(section.shape) == 1 else found.view(section.shape)

    def views(self, numbers: Tensor) -> dict[str, Tensor]:
        """All arrays as tensors."""
        return {name: self.view(numbers, name) for name in self.sections}
