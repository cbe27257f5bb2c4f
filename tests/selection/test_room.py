"""Choosing knows neither what is trained nor where: images, features and grids all look it up."""

import ast
import subprocess
import sys
from pathlib import Path

import sohot.selection

FILES = sorted(Path(sohot.selection.__file__).parent.glob("*.py"))
PLAIN = ("candidates", "choice", "folds", "search_space", "spaces")


def test_it_imports_no_package_that_calls_it():
    known = {"selection", "functional", "methods", "_files", "_lazy", "_process", "_reading"}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert (node.module or "").split(".")[0] in known, f"{file.name}: {node.module}"


def test_what_the_command_line_declares_needs_no_heavy_library():
    code = f"import sys; from sohot.selection import {', '.join(PLAIN)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "sklearn", "scipy", "optuna", "matplotlib"} & set(loaded)
