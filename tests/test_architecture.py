"""The house keeps its plan: no module imports itself in a circle, and packages know only those below them."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import sohot

ROOT = Path(sohot.__file__).parent

BELOW: dict[str, set[str]] = {
    "functional": set(),
    "methods": {"functional"},
    "selection": {"functional", "methods"},
    "data": {"functional", "selection"},
    "networks": {"functional", "methods", "data"},
    "losses": {"functional", "methods"},
    "training": {"functional", "methods", "selection", "data", "networks", "losses"},
    "classifiers": set(),
    "heads": {"functional", "methods", "selection", "losses", "training", "classifiers"},
    "runs": {"functional", "methods", "selection", "data", "networks", "losses", "training", "classifiers", "heads"},
}
BELOW["experiments"] = set(BELOW)
BELOW["reporting"] = set(BELOW)
BELOW["app"] = set(BELOW)
BELOW["cli"] = set(BELOW)
BELOW["api"] = set(BELOW) - {"app"}
"""What each package may import: data flows from data and networks to runs, experiments and reporting.

Modules beside the packages are tools that all may use (`_files`, `_device`, …), or use all (`demo`)."""


class Import(NamedTuple):
    """One module names another one, while it is itself imported (early) or later, in a function or for types."""

    module: str
    target: str
    early: bool


@cache
def files() -> dict[str, Path]:
    """Give the file of each module."""
    found = {}
    for file in ROOT.rglob("*.py"):
        parts = file.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def imports() -> list[Import]:
    """List who imports whom in the package."""
    return [edge for module, file in files().items() for edge in _imports_of(module, file)]


def _imports_of(module: str, file: Path) -> Iterator[Import]:
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    late: set[ast.AST] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        waits = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        if waits or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            late.update(ast.walk(node))
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            for name in node.names:
                target = f"{base}.{name.name}"
                yield Import(module, target if target in files() else base, node not in late)


def room(module: str) -> str | None:
    """Name the package a module belongs to; None for what lies beside the packages, which all may use."""
    name = ".".join(module.split(".")[:2])
    return name.removeprefix("sohot.") if name in files() and files()[name].name == "__init__.py" else None


def test_all_imports_are_seen() -> None:
    assert Import("sohot.training.trainer", "sohot.training.inputs", early=True) in imports()
    assert Import("sohot.data.datasets", "sohot.data.datasets.dataset", early=True) in imports()
    lazy = [edge for edge in imports() if edge.module == "sohot.losses" and edge.target.startswith("sohot.losses.")]
    assert lazy
    assert not any(edge.early for edge in lazy)


def test_no_module_imports_itself_in_a_circle() -> None:
    graph: dict[str, set[str]] = {module: set() for module in files()}
    for edge in imports():
        if edge.early and edge.module != edge.target:
            graph[edge.module].add(edge.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"an import cycle: {' ← '.join(error.args[1])}")


def test_packages_know_only_those_below_them() -> None:
    rooms = {room(module) for module in files()} - {None, "sohot"}
    assert rooms == set(BELOW), "a package has no line in the table"
    wrong: dict[str, set[str]] = {}
    for edge in imports():
        own, other = room(edge.module), room(edge.target)
        if own in BELOW and other in BELOW and other != own and other not in BELOW[own]:
            wrong.setdefault(edge.module.removeprefix("sohot."), set()).add(other)
    assert not wrong
