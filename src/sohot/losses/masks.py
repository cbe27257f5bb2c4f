"""Entries of a tensor that count."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torch import Tensor

T = TypeVar("T")


class Once(Generic[T]):
    """A `functools.cached_property` without the lock of older Pythons, which torch.compile cannot trace."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self.work, self.__doc__ = work, work.__doc__

    def __get__(self, owner: Any, kind: type) -> T:
        value: T = self.work(owner)
        owner.__dict__[self.work.__name__] = value
        return value


class Mask:
    """Entries that count, and their sum and mean; 0 with a zero gradient if no entry counts.

    Args:
        where: True for the entries that count.
        over: The dimensions to sum over.

    Example:
        >>> import torch
        >>> where, values = torch.tensor([True, True, False]), torch.tensor([1.0, 2.0, 9.0])
        >>> Mask(where, over=(-1,)).mean(values)
        tensor(1.5000)
    """

    def __init__(self, where: Tensor, over: tuple[int, ...] = (-2, -1)) -> None:
        self.where, self.left_out, self.over = where, ~where, over

    @Once
    def count(self) -> Tensor:
        """Number of entries that count."""
        return self.where.sum(self.over)

    def sum(self, values: Tensor) -> Tensor:
        """Sum the values that count."""
        return values.masked_fill(self.left_out, 0).sum(self.over)

    def sum_and_count(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Sum the values that count, and count them in the same type."""
        return self.sum(values), self.count.to(values.dtype)

    def mean(self, values: Tensor) -> Tensor:
        """Average the values that count."""
        return self.sum(values) / self.count.clamp(min=1)
