"""Files and folders of a run: there whole or not at all, and held by one process."""

import importlib
import os
import shutil
from pathlib import Path
from typing import BinaryIO

from .._files import sync_folder, to_json, write_atomically, write_bytes, write_json

__all__ = [
    "lock_folder",
    "remove_folder",
    "remove_leftovers",
    "sync_folder",
    "to_json",
    "write_atomically",
    "write_bytes",
    "write_json",
]


def lock_folder(folder: Path) -> BinaryIO | None:
    """Keep a folder for this process until the file returned is closed or the process ends, however it ends.

    Raises:
        BlockingIOError: Another process has it.
    """
    if os.name != "posix":
        return None
    fcntl = importlib.import_module("fcntl")
    file = open(folder / ".lock", "wb")  # noqa: SIM115 - open as long as the lock is held
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    except OSError:  # a file system without locks
        file.close()
        return None
    return file


def remove_folder(folder: Path) -> None:
    """Remove a folder so that its name never stands for half of it."""
    doomed = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    os.replace(folder, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what a process that was killed while writing has left in a folder."""
    for pattern in (".*.tmp", ".*.old"):
        for path in folder.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
