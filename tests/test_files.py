"""Folders that one process holds: never two, and none any more when it is gone; CSV that no spreadsheet runs."""

import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import python_path
from hypothesis import given
from hypothesis import strategies as st

from sohot._files import lock_folder, to_csv

HOLD = """
import sys, time
from pathlib import Path
from sohot._files import lock_folder
held = lock_folder(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_a_folder_is_held_until_it_is_let_go(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(BlockingIOError, match="in use by another process"):
        lock_folder(tmp_path)
    lock_folder(tmp_path).close()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, env=python_path(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError):
            lock_folder(tmp_path)
        process.kill()
        process.wait()
        lock_folder(tmp_path).close()


def test_a_file_system_without_locks_is_used_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr("sohot._files.FileLock.acquire", refuse)
    with lock_folder(tmp_path), lock_folder(tmp_path):
        pass


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], include_characters="\r\n\t,\"'=+-@")), min_size=1))
def test_csv_is_one_row_of_the_same_cells_none_of_them_a_formula(cells: list[str]) -> None:
    [row] = csv.reader(io.StringIO(to_csv([[*cells, -1.5]]), newline=""))
    for cell, given_cell in zip(row, cells, strict=False):
        assert cell.removeprefix("'") == given_cell.removeprefix("'")
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert row[-1] == "-1.5"
