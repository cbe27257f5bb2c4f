"""Packages that import their parts when these are first asked for (PEP 562): to name a package costs nothing then.

Such a package tells type checkers, and the people who read it, what it offers by imports under `TYPE_CHECKING`, and
Python by the table it gives here. The branch with the table is hidden from type checkers, to which a `__getattr__`
would mean that any name can be had.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_parts(
    package: str, parts: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__getattr__` and the `__dir__` of a package.

    No name may be that of a module of the package which holds it: Python sets such an attribute to the module whenever
    somebody imports that, and the name would then mean now one, now the other.

    Args:
        package: The package's `__name__`.
        parts: What the package offers: names, by the module below it that has them. The modules are offered too.

    Returns:
        The two functions, to be assigned in the package.

    Example:
        >>> get, _ = lazy_parts("sohot.losses", {"alignment": ("ScatterAlignment",)})
        >>> get("ScatterAlignment")
        <class 'sohot.losses.alignment.ScatterAlignment'>
    """
    homes = {name: module for module, names in parts.items() for name in names}

    def get(name: str) -> Any:
        if name not in homes and name not in parts:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{homes.get(name, name)}")
        value = getattr(module, name) if name in homes else module
        setattr(sys.modules[package], name, value)  # from now on it is found without asking here
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *parts, *homes})

    return get, names
