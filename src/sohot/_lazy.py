"""Packages that import their parts when these are first asked for (PEP 562): to name a package costs nothing then.

Such a package lists what it offers once, as imports under `TYPE_CHECKING` that type checkers and readers see. Python
finds the same list here. The branch that asks for it is hidden from type checkers, to which a `__getattr__` would mean
that any name can be had.
"""

import ast
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_parts(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make the `__getattr__`, the `__dir__` and the `__all__` of a package out of its imports under `TYPE_CHECKING`.

    No name may be that of a module of the package which holds it: Python sets such an attribute to the module whenever
    somebody imports that, and the name would then mean now one, now the other.

    Args:
        package: The package's `__name__`.

    Returns:
        The two functions and the names, to be assigned in the package. The modules that hold the names can be had too.

    Example:
        >>> get, _, names = lazy_parts("sohot.losses")
        >>> get("ScatterAlignment"), "ScatterAlignment" in names
        (<class 'sohot.losses.alignment.ScatterAlignment'>, True)
    """
    tree = ast.parse(inspect.getsource(sys.modules[package]))
    blocks = [node.body for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for body in blocks for node in body if isinstance(node, ast.ImportFrom)]
    homes = {name.name: node.module for node in imports for name in node.names}
    modules = {node.module for node in imports if node.module}

    def get(name: str) -> Any:
        if name not in homes and name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes.get(name)
        value = getattr(import_module(f"{package}.{home}"), name) if home else import_module(f"{package}.{name}")
        setattr(sys.modules[package], name, value)  # from now on it is found without asking here
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *homes})

    return get, names, sorted(homes)
