"""Folders that appear once they are complete, and never take the place of something that is there."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ._files import disk_error, hidden_beside, remove_leftovers, sync_folder


def require_new(folder: Path, option: str) -> None:
    """Check early that an option names a folder that can be made: it is missing or empty.

    >>> require_new(Path("/nowhere/folder"), "--copy-to")
    Traceback (most recent call last):
        ...
    FileNotFoundError: --copy-to /nowhere/folder: the folder around it does not exist
    """
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{option} {folder} exists already: give a new or an empty folder")
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"{option} {folder}: the folder around it does not exist")


@contextmanager
def building(folder: Path) -> Iterator[Path]:
    """Yield a hidden folder to fill, which takes the name of a missing or empty folder at the end; else it is removed.

    If the name is a link to an empty folder, that one is replaced, and the link stays.
    """
    folder = Path(os.path.realpath(folder))
    remove_leftovers(folder.parent, folder.name)
    hidden = hidden_beside(folder)
    hidden.mkdir()
    try:
        yield hidden
        sync_folder(hidden)
        if folder.exists():
            folder.rmdir()  # fails if somebody has put something there meanwhile
        os.replace(hidden, folder)
        sync_folder(folder.parent)
    except OSError as error:
        shutil.rmtree(hidden, ignore_errors=True)
        if error.errno is None or not str(error.filename or hidden).startswith(str(hidden)):
            raise
        raise disk_error(error, folder) from error
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
