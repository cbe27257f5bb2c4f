"""Folders appear whole or not at all, and take the place of nothing."""

import errno
import os
from pathlib import Path

import pytest

from sohot._new_folder import building


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_appears_once_it_is_complete(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "new"
    if there:
        folder.mkdir()
    with building(folder) as draft:
        (draft / "a").write_text("whole")
        assert not (folder / "a").exists()
        assert draft.parent == tmp_path
    assert [path.read_text() for path in folder.iterdir()] == ["whole"]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_link_to_an_empty_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with building(tmp_path / "link") as draft:
        (draft / "a").touch()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").exists()


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(errno.ENOENT, "gone", "elsewhere")])
def test_a_failure_leaves_nothing_and_is_passed_on(tmp_path: Path, error: BaseException) -> None:
    def fail() -> None:
        with building(tmp_path / "new") as draft:
            (draft / "a").touch()
            raise error

    with pytest.raises(type(error)) as raised:
        fail()
    assert raised.value is error
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_of_the_folder_that_the_user_named(tmp_path: Path) -> None:
    def fail() -> None:
        with building(tmp_path / "new"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="free some, or write to another disk") as raised:
        fail()
    assert raised.value.filename == str(tmp_path / "new")


def test_what_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def fail() -> None:
        with building(tmp_path / "new"):
            (tmp_path / "new").mkdir()
            (tmp_path / "new" / "mine").touch()

    with pytest.raises(OSError, match="not empty"):
        fail()
    assert [path.name for path in tmp_path.rglob("*")] == ["new", "mine"]
