"""Files that are there whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk. Not atomic by itself: for files in a folder not yet in place."""
    with open(file, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file so that its name never stands for half of it."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        write_bytes(temporary, content)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def write_json(file: Path, value: Any) -> None:
    """Write JSON atomically."""
    write_atomically(file, to_json(value))


def to_json(value: Any) -> bytes:
    """Give JSON as it is stored: indented where people read it, without NaN."""
    return (json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk (where the system knows how)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
