"""Launching kernels again without looking at their arguments again.

Triton derives what a kernel is compiled for from every argument of every launch, which takes the host longer than the
device needs for a small problem. Here the caller names what decides: same key, same compiled kernel.
"""

from collections.abc import Hashable
from typing import Any

MOST_KERNELS = 1024
_compiled: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}


def launch(
    kernel: Any, grid: tuple[int, int, int], key: Hashable, arguments: tuple[Any, ...], **constants: Any
) -> None:
    """Launch a kernel on the current stream.

    Args:
        kernel: A function under `triton.jit` whose constants come last.
        grid: Number of programs.
        key: Equal only where types, alignments, sizes and constants are: all that a kernel is compiled for.
        arguments: All its arguments but the constants, in order.
        constants: Its constants, and options of the compiler.
    """
    name = id(kernel), key  # kernels live as long as their modules; to hash one takes longer than to launch it
    found = _compiled.get(name)
    if found is not None:
        compiled, values = found
        compiled[grid](*arguments, *values)
        return
    compiled = kernel[grid](*arguments, **constants)
    if compiled is None:  # interpreted
        return
    if len(_compiled) >= MOST_KERNELS:  # batches of ever other sizes: begin anew, the kernels themselves stay cached
        _compiled.clear()
    _compiled[name] = compiled, tuple(constants[name] for name in kernel.arg_names[len(arguments) :])
