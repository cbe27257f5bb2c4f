"""The notebooks run as they stand, and hold no outputs in the repository."""

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from command_line import python_path

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def cells(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return found


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_nothing_that_ran_is_stored(file: Path) -> None:
    code = [cell for cell in cells(file) if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_it_begins_with_a_title(file: Path) -> None:
    assert "".join(cells(file)[0]["source"]).startswith("# ")


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_it_runs(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not all(map(find_spec, ("nbclient", "ipykernel"))) and not os.environ.get("CI"):
        pytest.skip("needs nbclient and ipykernel")
    import nbformat
    from nbclient import NotebookClient

    for name, value in python_path().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))  # nothing of the user's own
    notebook = nbformat.read(file, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(output["output_type"] == "display_data" for cell in notebook.cells for output in cell.get("outputs", ()))
