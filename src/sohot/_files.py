"""Files that are written whole or not at all and never through a planted link, and folders locked by one process."""

import csv
import errno
import hashlib
import io
import json
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO

import tomli_w
from filelock import FileLock, Timeout

from ._escapes import escaped
from ._process import process_tag, tag_is_alive

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore] # its predecessor

STALE_SECONDS = 900
"""A hidden file of a process that nobody here knows is abandoned after this long without a change."""
LOCK = ".lock"
_SHOWN = 40  # characters of a file's name in that of its temporary file, so that one may be as long as names can be
_LEFTOVER = re.compile(r"\.(?P<of>.+?)\.(?P<tag>[0-9a-f]{8}-\d+-\d*)\.[0-9a-f]+\.(?:tmp|old)")


def hidden_beside(file: Path, suffix: str = "tmp") -> Path:
    """Return a hidden name that nobody can guess, for what takes the place of a file or is about to go."""
    return file.with_name(f".{file.name[:_SHOWN]}.{process_tag()}.{token_hex(8)}.{suffix}")


@contextmanager
def replacing(file: Path) -> Iterator[BinaryIO]:
    """Yield a stream whose content takes the name of a file once it is complete and on disk; else nothing changes.

    A link of that name is replaced, not followed.
    """
    remove_leftovers(file.parent, file.name)
    temporary = hidden_beside(file)
    try:
        with open(temporary, "xb") as stream:  # "x": a new file, never one that is there, nor through a link
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno is None or error.filename not in (None, str(temporary)):
            raise
        raise disk_error(error, file) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def disk_error(error: OSError, file: Path) -> OSError:
    """Return an error that names the file and, if the disk is full, says what to do.

    >>> disk_error(OSError(errno.ENOSPC, "No space left on device"), Path("labels.csv")).strerror
    'No space left on device; free some, or write to another disk'
    """
    advice = "; free some, or write to another disk" if is_full(error) else ""
    return OSError(error.errno, f"{error.strerror or error}{advice}", str(file))


def is_full(error: OSError) -> bool:
    """Tell whether an error says that there is no room on a disk, or none for this user."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def write_bytes(file: Path, content: bytes) -> None:
    """Write a new file and wait until it is on disk. Not atomic: for files in a folder not yet in place."""
    with open(file, "xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file of our own atomically: its name never refers to a partial file. A link is replaced."""
    with replacing(file) as stream:
        stream.write(content)


def write_json(file: Path, value: Any) -> None:
    """Write JSON atomically."""
    write_atomically(file, to_json(value))


def to_json(value: Any) -> bytes:
    """Encode JSON for storage: indented for readers, without NaN."""
    return (json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def to_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Write CSV with plain newlines that is safe to open in a spreadsheet and to print; None becomes an empty cell.

    Control characters are `escaped`, so each row is one line.

    >>> print(to_csv([["method", "gain"], ["=1+1", -0.5], ["so", None]]), end="")
    method,gain
    '=1+1,-0.5
    so,
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([harmless_cell(escaped(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text.getvalue()


def harmless_cell(text: str, before: str = "'") -> str:
    """Keep a spreadsheet from evaluating a text that looks like a formula, by putting something before it.

    >>> harmless_cell("=1+1"), harmless_cell("-a.png", "./"), harmless_cell("mug")
    ("'=1+1", './-a.png', 'mug')
    """
    return before + text if text.startswith(("=", "+", "-", "@")) else text


_SEAL = "sha256"


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Add a checksum to a JSON object, by which `is_intact` notices damage.

    >>> is_intact(sealed({"step": 5})), is_intact({**sealed({"step": 5}), "step": 6}), is_intact({"step": 5})
    (True, False, False)
    """
    return {**content, _SEAL: _digest(content)}


def is_intact(content: Mapping[str, Any]) -> bool:
    """Tell whether a JSON object is as it was sealed."""
    rest = {name: value for name, value in content.items() if name != _SEAL}
    return content.get(_SEAL) == _digest(rest)


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


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


def refuse_link(path: Path) -> Path:
    """Return the path of something we write to inside a folder, unless it is a link, which may lead out of it.

    Raises:
        ValueError: It is a link.
    """
    if path.is_symlink():
        raise ValueError(f"{path} is a link, so what is written there would leave its folder: remove the link")
    return path


def no_follow(file: str, flags: int) -> int:
    """Open a file, but not through a link; an `opener` for `open`."""
    return os.open(file, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def is_leftover(path: Path) -> bool:
    """Tell whether a path is what a killed process of ours leaves behind: a hidden file or folder with such a name."""
    return _LEFTOVER.fullmatch(path.name) is not None and not path.is_symlink()


def remove_leftovers(folder: Path, of: str | None = None) -> None:
    """Remove what killed processes left in a folder.

    Args:
        folder: The folder; it need not exist.
        of: Only what was to become the file of this name; None for everything.
    """
    with suppress(OSError):
        for path in [Path(entry.path) for entry in os.scandir(folder) if entry.name.startswith(".")]:
            found = None if path.is_symlink() else _LEFTOVER.fullmatch(path.name)
            if found is None or (of is not None and of[:_SHOWN] != found["of"]) or not _abandoned(path, found["tag"]):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _abandoned(path: Path, tag: str) -> bool:
    alive = tag_is_alive(tag)
    return time.time() - path.lstat().st_mtime > STALE_SECONDS if alive is None else not alive


class FolderInUse(ValueError):  # noqa: N818 - it names what happened
    """Another process works in a folder."""


_HELD: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())


@contextmanager
def holding_folder(folder: Path) -> Iterator[None]:
    """Create and lock a folder for all that happens inside, where `lock_folder` finds it locked by its caller.

    The lock's file is removed at the end, and so is a new folder that nothing was put in.

    Raises:
        FolderInUse: Another process holds it.
    """
    if folder.resolve() in _HELD.get():
        yield
        return
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = lock_folder(folder)
    except BlockingIOError as error:
        raise FolderInUse(f"{error}: wait for it, or give another folder") from None
    with lock:
        before = _HELD.set(_HELD.get() | {folder.resolve()})
        try:
            yield
        finally:
            _HELD.reset(before)
            with suppress(OSError):
                (folder / LOCK).unlink()  # still ours: a process that takes this lock later sees that its file is gone
                if new:
                    folder.rmdir()  # only if it is empty


def lock_folder(folder: Path, wait: float = 0.0) -> ExitStack:
    """Lock a folder for this process until the result is closed or the process ends in any way.

    Args:
        folder: The folder.
        wait: Seconds to wait for another process that holds it.

    Raises:
        BlockingIOError: Another process holds it.
        ValueError: What is in the place of the lock is none of ours.
    """
    held = ExitStack()
    if folder.resolve() in _HELD.get():
        return held
    lock = FileLock(_lock_file(folder), thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(timeout=wait, poll_interval=0.005)
        held.callback(lock.release)
    except Timeout as error:
        raise BlockingIOError(f"{folder} is in use by another process") from error
    except OSError:  # a file system without locks
        pass
    return held


def _lock_file(folder: Path) -> Path:
    """Return the file of a folder's lock, if it is a plain, empty file: to take the lock is to empty it."""
    file = folder / LOCK
    with suppress(FileNotFoundError):
        found = file.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size:
            raise ValueError(f"{file} is not the empty file that sohot makes to lock a folder: remove it")
    return file


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk (on POSIX systems)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
