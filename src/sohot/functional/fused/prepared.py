"""Kernels that run again and again: compiled at their first launch, afterwards called with addresses alone.

Triton's own call finds out the type and alignment of every argument anew, and its launcher asks the driver about every
tensor; both take longer than a small kernel. Addresses as integers need neither.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

Grid = tuple[int, int, int]
Named = dict[str, Tensor]


class Launch:
    """A kernel, its grid and its arguments.

    Args:
        kernel: A function under `triton.jit` whose constants come last.
        grid: Number of programs.
        arguments: All its arguments except the constants, in order. A string is the name of a tensor; None is passed
            where there is no tensor of that name.
        constants: Its constants and compiler options.
    """

    def __init__(self, kernel: Any, grid: Grid, arguments: tuple[Any, ...], **constants: Any) -> None:
        self.kernel, self.grid, self.arguments, self.constants = kernel, grid, arguments, constants

    def compile(self, tensors: Named) -> Any:
        """Launch the kernel on these tensors and return it compiled; None if it is interpreted."""
        values = (tensors.get(x) if isinstance(x, str) else x for x in self.arguments)
        return self.kernel[self.grid](*values, **self.constants)

    @property
    def values_of_constants(self) -> list[Any]:
        """The constants that the compiled kernel takes after its arguments."""
        return [self.constants[name] for name in self.kernel.arg_names[len(self.arguments) :]]


class Launches:
    """Launches one after another, always for tensors of the same types, shapes and alignments, on one device.

    Args:
        launches: The launches, in order.
        names: Names of the tensors whose addresses each call gives, in order.
    """

    def __init__(self, launches: Sequence[Launch], names: Sequence[str]) -> None:
        self._launches, self._names = launches, list(names)
        self._prepared: list[tuple[Any, ...]] = []
        self._numbers: list[Any] = []  # all that the kernels take besides addresses
        self._triton: Any = None  # settings of Triton at run time

    def __call__(self, device: int, addresses: list[int | None], tensors: Callable[[], Named]) -> None:
        """Launch all on the current stream of the current device.

        Args:
            device: Number of that device.
            addresses: Where the named tensors are; None for one that is missing.
            tensors: Returns them by name; called only while kernels are not compiled, or if a profiler looks on.
        """
        if not self._prepared or _has_calls(self._triton.launch_enter_hook):
            self._prepare(tensors())
            return
        stream = torch._C._cuda_getCurrentRawStream(device)
        values = addresses + self._numbers
        for kernel, run, grid, choose in self._prepared:
            run(*grid, stream, kernel.function, kernel.packed_metadata, None, None, None, *choose(values))

    def _prepare(self, tensors: Named) -> None:
        compiled = [launch.compile(tensors) for launch in self._launches]
        if self._prepared or None in compiled:
            return
        from triton import knobs  # type: ignore[import-untyped,unused-ignore]

        numbers: list[Any] = []
        pairs = zip(self._launches, compiled, strict=True)
        prepared = [(kernel, _runner(kernel), launch.grid, self._choice(launch, numbers)) for launch, kernel in pairs]
        self._triton, self._numbers, self._prepared = knobs.runtime, numbers, prepared

    def _choice(self, launch: Launch, numbers: list[Any]) -> Callable[[list[Any]], Any]:
        """Return what picks the values of one launch among all addresses and numbers; its own numbers are added."""

        def number(value: Any) -> int:
            numbers.append(value)
            return len(self._names) + len(numbers) - 1

        def place(argument: Any) -> int:
            if not isinstance(argument, str):
                return number(argument)
            return self._names.index(argument) if argument in self._names else number(None)

        return itemgetter(*map(place, launch.arguments), *map(number, launch.values_of_constants))


def _runner(compiled: Any) -> Any:
    """Return what Triton itself calls to launch a compiled kernel, or its public call in versions not known to have it.

    The public call finds device and stream, and what a profiler would like to know, at each launch.
    """
    import triton

    if triton.__version__.split(".")[:2] in (["3", "6"], ["3", "7"], ["3", "8"]):
        return compiled.run
    return lambda x, y, z, _stream, _function, _metadata, _data, _enter, _exit, *values: compiled[x, y, z](*values)


def _has_calls(hook: Any) -> bool:
    """Whether a profiler of Triton wants to hear of each launch."""
    return hook is not None and bool(getattr(hook, "calls", True))
