"""Packages that import their parts on first use (PEP 562), so that importing a package costs almost nothing.

Such a package lists its names once, as imports under `TYPE_CHECKING` that type checkers and readers see; Python reads
the same list here. The branch that does so is hidden from type checkers, because a `__getattr__` would make them
accept any name.
"""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_EXPORT = re.compile(r"^    from \.(\w*) import (\w+) as \2$", re.MULTILINE)  # quicker than a parser


def lazy_parts(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make the `__getattr__`, `__dir__` and `__all__` of a package from its imports under `TYPE_CHECKING`.

    No name may equal that of the module that holds it: importing such a module sets the package's attribute to the
    module, so the meaning of the name would depend on the order of imports.

    Args:
        package: The package's `__name__`.

    Returns:
        The two functions and the names, to assign in the package. The modules that hold the names are available too.

    Example:
        >>> get, _, names = lazy_parts("sohot.losses")
        >>> get("ScatterAlignment"), "ScatterAlignment" in names
        (<class 'sohot.losses.alignment.ScatterAlignment'>, True)
    """
    source = Path(sys.modules[package].__file__ or "").read_text(encoding="utf-8")
    homes = {name: module for module, name in _EXPORT.findall(source)}
    modules = {module for module in homes.values() if module}

    def get(name: str) -> Any:
        if name not in homes and name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes.get(name)
        value = getattr(import_module(f"{package}.{home}"), name) if home else import_module(f"{package}.{name}")
        setattr(sys.modules[package], name, value)  # later lookups do not come here
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *homes})

    return get, names, sorted(homes)
