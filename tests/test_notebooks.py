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


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_nothing_that_ran_is_stored(file: Path) -> None:
    code = [cell for cell in cells(file) if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_they_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not all(map(find_spec, ("nbclient", "ipykernel"))) and not os.environ.get("CI"):
        pytest.skip("needs nbclient and ipykernel")
    import nbformat
    from jupyter_client.manager import start_new_kernel
    from nbclient import NotebookClient

    for name, value in python_path().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))  # nothing of the user's own
    kernel, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))  # one: importing torch takes longest
    try:
        for file in NOTEBOOKS:
            notebook = nbformat.read(file, as_version=4)
            notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
            runner = NotebookClient(notebook, km=kernel, timeout=120)
            runner.execute()
            runner.kc.stop_channels()
            kinds = {output["output_type"] for cell in notebook.cells for output in cell.get("outputs", ())}
            assert "display_data" in kinds, file
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
