"""Files are written whole and never through links; folders are held by one process, and by none once it is gone."""

import contextlib
import csv
import errno
import io
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from command_line import python_path
from hypothesis import given
from hypothesis import strategies as st

from sohot import _files
from sohot._escapes import escaped, unescaped
from sohot._files import (
    FolderInUse,
    holding_folder,
    lock_folder,
    remove_leftovers,
    replacing,
    to_csv,
    write_atomically,
)
from sohot._process import process_tag

HOLD = """
import sys, time
from pathlib import Path
from sohot._files import lock_folder
held = lock_folder(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""
GONE = re.sub(r"-\d+-", "-999999999-", process_tag())
"""The tag of a process of this machine that does not run."""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_atomically(file, b"first")
    with pytest.raises(TypeError), replacing(file) as stream:
        stream.writelines([b"second", "no bytes"])
    assert file.read_bytes() == b"first"
    assert names(tmp_path) == ["a.json"]


def test_a_link_is_replaced_and_its_target_untouched(tmp_path: Path) -> None:
    victim, file = tmp_path / "victim", tmp_path / "a.json"
    victim.write_text("precious")
    file.symlink_to(victim)
    write_atomically(file, b"mine")
    assert victim.read_text() == "precious"
    assert not file.is_symlink()


def test_a_planted_temporary_file_is_neither_followed_nor_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr(_files, "token_hex", lambda _: "0" * 16)  # as if the name could be guessed
    planted = _files.hidden_beside(tmp_path / "a.json")
    planted.symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "a.json", b"mine")
    assert victim.read_text() == "precious"


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    file = tmp_path / ("ü" * 125 + ".json")  # 255 bytes
    (tmp_path / f".{'ü' * 40}.{GONE}.00ff.tmp").write_text("half")
    write_atomically(file, b"mine")
    assert names(tmp_path) == [file.name]


def test_a_full_disk_is_named_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device; free some") as caught:
        write_atomically(tmp_path / "a.json", b"mine")
    assert caught.value.filename == str(tmp_path / "a.json")
    assert names(tmp_path) == []


def test_leftovers_of_the_dead_go_and_nothing_else(tmp_path: Path) -> None:
    dead, living = f".a.json.{GONE}.00ff.tmp", f".a.json.{process_tag()}.00ff.tmp"
    elsewhere, others = ".a.json.00000000-1-1.00ff.tmp", ".notes.tmp"
    for name in (dead, living, elsewhere, others, "a.json"):
        (tmp_path / name).write_text("x")
    (tmp_path / f".step-3.{GONE}.00ff.old").mkdir()
    (tmp_path / f".link.{GONE}.00ff.tmp").symlink_to(tmp_path / "a.json")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == sorted([living, elsewhere, others, "a.json", f".link.{GONE}.00ff.tmp"])
    os.utime(tmp_path / elsewhere, (0, 0))  # of another machine, and nobody writes to it any more
    remove_leftovers(tmp_path, "other.json")
    assert (tmp_path / elsewhere).exists()
    remove_leftovers(tmp_path, "a.json")
    assert not (tmp_path / elsewhere).exists()


def test_a_folder_is_held_until_it_is_let_go(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(BlockingIOError, match="in use by another process"):
        lock_folder(tmp_path)
    lock_folder(tmp_path).close()


def test_who_holds_a_folder_may_lock_it_again_but_no_one_else(tmp_path: Path) -> None:
    refused: list[BaseException] = []

    def another() -> None:
        try:
            lock_folder(tmp_path)
        except BlockingIOError as error:
            refused.append(error)

    with holding_folder(tmp_path):
        lock_folder(tmp_path).close()
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()
    assert len(refused) == 1
    with (
        lock_folder(tmp_path),
        pytest.raises(FolderInUse, match="in use by another process: wait"),
        holding_folder(tmp_path),
    ):
        pass


def test_a_folder_stays_held_when_who_holds_it_holds_it_again(tmp_path: Path) -> None:
    with holding_folder(tmp_path):
        with holding_folder(tmp_path):
            pass
        assert names(tmp_path) == [".lock"]
    assert names(tmp_path) == []


def test_of_many_that_want_a_folder_at_once_one_has_it(tmp_path: Path) -> None:
    inside, most, held = [0], [0], [0]

    def want() -> None:
        for _ in range(100):
            with contextlib.suppress(FolderInUse), holding_folder(tmp_path):
                inside[0] += 1
                most[0], held[0] = max(most[0], inside[0]), held[0] + 1
                time.sleep(0.0005)
                inside[0] -= 1

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert held[0] > 4


def test_a_lock_that_is_someone_elses_file_is_refused_and_kept(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(victim)
    with pytest.raises(ValueError, match=r"\.lock is not the empty file that sohot makes"):
        lock_folder(tmp_path / "run")
    assert victim.read_text() == "precious"


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
        assert unescaped(cell.removeprefix("'")) == given_cell.removeprefix("'")
        assert not cell.startswith(("=", "+", "-", "@"))
        assert escaped(unescaped(cell)) == cell
    assert row[-1] == "-1.5"
