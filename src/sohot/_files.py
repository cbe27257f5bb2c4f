"""Atomic writing of bytes, JSON, CSV and TOML, and folders locked by one process."""

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import tomli_w
from filelock import FileLock, Timeout

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore] # its predecessor


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file and wait until it is on disk. Not atomic by itself: for files in a folder not yet in place."""
    with open(file, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file atomically: its name never refers to a partial file."""
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
    """Encode JSON for storage: indented for readers, without NaN."""
    return (json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def to_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Write CSV with plain newlines that is safe to open in a spreadsheet; None becomes an empty cell.

    >>> print(to_csv([["method", "gain"], ["=1+1", -0.5], ["so", None]]), end="")
    method,gain
    '=1+1,-0.5
    so,
    """
    line = io.StringIO(newline="")
    writer = csv.writer(line, lineterminator="\r\n")  # both characters, or a lone \r would stay without quotes
    lines = []
    for row in rows:
        writer.writerow([harmless_cell(cell) if isinstance(cell, str) else cell for cell in row])
        lines.append(line.getvalue().removesuffix("\r\n"))
        line.seek(0)
        line.truncate()
    return "".join(f"{one}\n" for one in lines)


def harmless_cell(text: str, before: str = "'") -> str:
    """Keep a spreadsheet from evaluating a text that looks like a formula, by putting something before it.

    >>> harmless_cell("=1+1"), harmless_cell("-a.png", "./"), harmless_cell("mug")
    ("'=1+1", './-a.png', 'mug')
    """
    return before + text if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raises ValueError for anything else."""
    try:
        content: dict[str, Any] = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return content


def write_toml(file: Path, content: Mapping[str, Any], heading: str) -> None:
    """Write TOML atomically, with a comment on the first line."""
    write_atomically(file, f"# {heading}\n{tomli_w.dumps(content)}".encode())


def lock_folder(folder: Path) -> ExitStack:
    """Lock a folder for this process until the result is closed or the process ends in any way.

    Raises:
        BlockingIOError: Another process holds it.
    """
    lock = FileLock(folder / ".lock", thread_local=False, fallback_to_soft=False)
    held = ExitStack()
    try:
        lock.acquire(blocking=False)
        held.callback(lock.release)
    except Timeout as error:
        raise BlockingIOError(f"{folder} is in use by another process") from error
    except OSError:  # a file system without locks
        pass
    return held


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk (on POSIX systems)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
