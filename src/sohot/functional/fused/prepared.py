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
Choice = Callable[[list[Any]], Any]


class Launch:
    """A kernel, its grid and its arguments.

    Args:
        kernel: A function under `triton.jit` whose constants come last.
        grid: Number of programs.
        arguments: All its arguments except the constants, in order. A string is the name of a tensor, also within a
            tuple; None is passed where there is no tensor of that name.
        constants: Its constants and compiler options.
    """

    def __init__(self, kernel: Any, grid: Grid, arguments: tuple[Any, ...], **constants: Any) -> None:
        self.kernel, self.grid, self.arguments, self.constants = kernel, grid, arguments, constants

    def compile(self, tensors: Named) -> Any:
        """Launch the kernel on these tensors and return it compiled; None if it is interpreted."""
        values = [_value(argument, tensors) for argument in self.arguments]
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
        self._numbers: list[Any] = []  # all that the kernels take besides addresses
        self._groups: list[Any] = []  # what picks the values of tuples
        self._prepared: list[tuple[Any, ...]] = []
        self._triton: Any = None  # settings of Triton at run time, if this version is known

    def __call__(self, device: int, addresses: Sequence[int | None], tensors: Callable[[], Named]) -> None:
        """Launch all on the current stream of the current device.

        Args:
            device: Number of that device.
            addresses: Where the named tensors are; None for one that is missing.
            tensors: Returns them by name; called only while kernels are not compiled, or if a profiler looks on.
        """
        if not self._prepared or (self._triton is not None and _has_calls(self._triton.launch_enter_hook)):
            self._prepare(tensors())
            return
        stream = torch._C._cuda_getCurrentRawStream(device)
        values = [*addresses, *self._numbers]
        for choose in self._groups:
            values.append(choose(values))
        for run, function, metadata, (x, y, z), choose, _ in self._prepared:
            run(x, y, z, stream, function, metadata, None, None, None, *choose(values))

    def _prepare(self, tensors: Named) -> None:
        compiled = [launch.compile(tensors) for launch in self._launches]
        if self._prepared or None in compiled:
            return
        choices, numbers, groups = _choices(self._launches, self._names)
        prepared = [
            (*_runner(kernel), launch.grid, choose, kernel)  # the kernel is kept alive
            for launch, kernel, choose in zip(self._launches, compiled, choices, strict=True)
        ]
        self._triton, self._numbers, self._groups, self._prepared = _settings(), numbers, groups, prepared


def _choices(launches: Sequence[Launch], names: list[str]) -> tuple[list[Choice], list[Any], list[Choice]]:
    """Return what picks the values of each launch among the addresses of names, numbers and tuples, in this order.

    Also returns these numbers, and what picks the values of each tuple among addresses and numbers.
    """
    numbers: list[Any] = []

    def number(value: Any) -> int:
        numbers.append(value)
        return len(names) + len(numbers) - 1

    def place(argument: Any) -> int | Choice:
        if _is_group(argument):
            return itemgetter(*map(place, argument))
        if isinstance(argument, str):
            return names.index(argument) if argument in names else number(None)
        return number(argument)

    places = [[*map(place, launch.arguments), *map(number, launch.values_of_constants)] for launch in launches]
    groups = [x for own in places for x in own if not isinstance(x, int)]
    of_groups = {id(group): len(names) + len(numbers) + k for k, group in enumerate(groups)}
    choices: list[Choice] = [
        itemgetter(*(x if isinstance(x, int) else of_groups[id(x)] for x in own)) for own in places
    ]
    return choices, numbers, groups


def _value(argument: Any, tensors: Named) -> Any:
    """Put tensors in the place of their names. No closure: one that calls itself would keep the tensors alive."""
    if _is_group(argument):
        return tuple(_value(part, tensors) for part in argument)
    return tensors.get(argument) if isinstance(argument, str) else argument


def _is_group(argument: Any) -> bool:
    """Whether an argument is a tuple with tensors."""
    return isinstance(argument, tuple) and any(isinstance(x, str) for x in argument)


def _is_known() -> bool:
    """Whether this version of Triton launches compiled kernels as `Launches` does; later ones may do so too."""
    import triton  # type: ignore[import-untyped,unused-ignore]

    return triton.__version__.split(".")[:2] in (["3", "6"], ["3", "7"], ["3", "8"])


def _settings() -> Any:
    if not _is_known():
        return None
    from triton import knobs  # type: ignore[import-untyped,unused-ignore]

    return knobs.runtime


def _runner(compiled: Any) -> tuple[Any, Any, Any]:
    """Return what Triton itself calls to launch a compiled kernel, and what that takes besides grid and arguments.

    In a version that is not known it is the public call, which finds device and stream, and what a profiler would like
    to know, at each launch.
    """
    if _is_known():
        return compiled.run, compiled.function, compiled.packed_metadata

    def run(x: int, y: int, z: int, *values: Any) -> None:
        compiled[x, y, z](*values[6:])  # after stream, function, metadata and hooks

    return run, None, None


def _has_calls(hook: Any) -> bool:
    """Whether a profiler of Triton wants to hear of each launch."""
    return hook is not None and bool(getattr(hook, "calls", True))
