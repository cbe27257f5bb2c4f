"""What a child process imports: what its parent imports, and nothing that lies in the folder where it is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import python_path

from sohot._process import search_path

START = """
import sys
sys.path[:] = [path for path in sys.path if path]  # as for an installed command
import multiprocessing, os, subprocess
from sohot._process import search_path
os.environ |= search_path()
subprocess.run([sys.executable, "-m", "json.tool", "--help"], check=True, stdout=subprocess.DEVNULL)
child = multiprocessing.get_context("spawn").Process(target=print, args=("spawned",))
child.start()
child.join()
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no such setting")
def test_children_import_nothing_from_the_folder_they_start_in(tmp_path: Path) -> None:
    for name in ("json", "multiprocessing", "argparse", "pickle"):
        (tmp_path / f"{name}.py").write_text("import os\nos.mkdir('trace')\n")
    started = subprocess.run(
        [sys.executable, "-P", "-c", START],
        cwd=tmp_path,
        env=python_path(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert started.stdout == "spawned\n", started.stderr
    assert not (tmp_path / "trace").exists()


def test_a_parent_that_imports_from_its_folder_has_such_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", os.getcwd())])
    assert search_path() == {"PYTHONSAFEPATH": "1"}
    monkeypatch.setattr(sys, "path", [os.getcwd(), *sys.path])
    assert search_path() == {}
