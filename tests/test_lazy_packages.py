"""Packages that import their parts late still offer all they say they do."""

import json
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest
from command_line import python_path

import sohot

LAZY = ["sohot", *(f"sohot.{one.name}" for one in pkgutil.iter_modules(sohot.__path__) if one.ispkg)]
for other in ("sohot.app", "sohot.classifiers", "sohot.cli"):  # they offer no names, or import their parts at once
    LAZY.remove(other)


def test_packages_can_be_named_without_torch_and_give_all_their_names() -> None:
    program = """
import json, sys
from importlib import import_module
packages = [import_module(name) for name in sys.argv[1:]]
early = "torch" in sys.modules
listed = all(set(package.__all__) <= set(dir(package)) for package in packages)
first = [[getattr(package, name) for name in package.__all__] for package in packages]
again = [[getattr(package, name) for name in package.__all__] for package in packages]
same = all(one is other for ones, others in zip(first, again) for one, other in zip(ones, others))
print(json.dumps([early, listed, same]))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, *LAZY], env=python_path(), capture_output=True, text=True, check=True
    )
    assert json.loads(ended.stdout) == [False, True, True]


@pytest.mark.parametrize("package", LAZY)
def test_no_name_is_at_the_mercy_of_what_was_imported_before(package: str) -> None:
    """An import of a module sets the attribute of its name, so a package offers no other thing under that name."""
    offered = import_module(package)
    modules = {one.name for one in pkgutil.iter_modules(offered.__path__)}
    for name in modules & set(offered.__all__):
        assert getattr(offered, name) is import_module(f"{package}.{name}")


@pytest.mark.parametrize("package", LAZY)
def test_an_unknown_name_is_refused_as_everywhere(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        _ = import_module(package).nonsense
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec(f"from {package} import nonsense")
