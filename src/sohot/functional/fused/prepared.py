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
        arguments: All its arguments except the constants, in order. A string is the name of a tensor, also in a tuple
            of two or more; None is passed where there is no tensor of that name.
        constants: Its constants and compiler options.
    """

    def __init__(self, kernel: Any, grid: Grid, arguments: tuple[Any, ...], **constants: Any) -> None:
        self.kernel, self.grid, self.arguments, self.constants = kernel, grid, arguments, constants

    def compile(self, tensors: Named) -> Any:
        """Launch the kernel on these tensors and return it compiled; None if it is interpreted."""

        def value(argument: Any) -> Any:
            if _are_names(argument):
                return tuple(map(tensors.get, argument))
            return tensors.get(argument) if isinstance(argument, str) else argument

        return self.kernel[self.grid](*map(value, self.arguments), **self.constants)

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
        self._groups = [x for launch in launches for x in launch.arguments if _are_names(x)]
        self._choose_groups = [itemgetter(*(self._place(name, []) for name in group)) for group in self._groups]
        self._numbers: list[Any] = []  # all that the kernels take besides addresses
        self._prepared: list[tuple[Any, ...]] = []
        self._triton: Any = None  # settings of Triton at run time

    def __call__(self, device: int, addresses: Sequence[int | None], tensors: Callable[[], Named]) -> None:
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
        values = [*addresses, None]
        values += [choose(values) for choose in self._choose_groups]
        values += self._numbers
        for run, (x, y, z), function, metadata, choose, _ in self._prepared:
            run(x, y, z, stream, function, metadata, None, None, None, *choose(values))

    def _prepare(self, tensors: Named) -> None:
        compiled = [launch.compile(tensors) for launch in self._launches]
        if self._prepared or None in compiled:
            return
        from triton import knobs  # type: ignore[import-untyped,unused-ignore]

        numbers: list[Any] = []
        prepared = []
        for launch, kernel in zip(self._launches, compiled, strict=True):
            places = [self._place(x, numbers) for x in launch.arguments]
            places += [self._number(x, numbers) for x in launch.values_of_constants]
            run = _runner(kernel), launch.grid, kernel.function, kernel.packed_metadata
            prepared.append((*run, itemgetter(*places), kernel))  # the kernel must stay alive
        self._triton, self._numbers, self._prepared = knobs.runtime, numbers, prepared

    # Values to choose from are the addresses, a None for all that is missing, groups of them, and numbers.

    def _place(self, argument: Any, numbers: list[Any]) -> int:
        if isinstance(argument, str):
            return self._names.index(argument) if argument in self._names else len(self._names)
        if _are_names(argument):
            return len(self._names) + 1 + self._groups.index(argument)
        return self._number(argument, numbers)

    def _number(self, value: Any, numbers: list[Any]) -> int:
        numbers.append(value)
        return len(self._names) + len(self._groups) + len(numbers)


def _are_names(argument: Any) -> bool:
    return isinstance(argument, tuple) and len(argument) > 1 and all(isinstance(name, str) for name in argument)


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
