"""One SQLite file: safe commits, and one-sentence errors."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from .._files import refuse_link

_SHARED = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "afs",
    "glusterfs",
    "pvfs",
    "orangefs",
    "fuse",
)
"""Prefixes of the names of shared file systems; "fuse" covers sshfs and many others."""


def is_shared(folder: Path, mounts: str | None = None) -> bool:
    r"""Tell whether other machines may have the same folder open; False if unknown.

    Args:
        folder: The folder.
        mounts: The mounts, as Linux lists them; None to look them up.

    Example:
        >>> is_shared(Path("/home/ada/runs"), "disk / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0")
        True
        >>> is_shared(Path("/homes"), "disk / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0")
        False
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return False
    place, kind = Path(os.path.realpath(folder)), ""
    longest = -1
    for line in mounts.splitlines():
        _, point, name, *_ = line.split(" ")
        mounted = Path(point.replace("\\040", " "))
        if place.is_relative_to(mounted) and len(mounted.parts) >= longest:
            longest, kind = len(mounted.parts), name
    return kind.startswith(_SHARED)


_BUSY_SECONDS = 60.0
_STEPS = 100_000
"""Steps of SQLite's machine between two looks at whether a statement runs away; some thousandths of a second."""
_STEPS_PER_BYTE = 10
"""A statement on a healthy file takes fewer: even a short row takes more bytes than steps."""


class StoreError(OSError):
    """The results cannot be read or written; the message is one sentence."""


class Database:
    """A connection to an SQLite file, which may come from a stranger.

    Only the tables of the schema are accepted: views, triggers and computed columns could run for ever. A statement
    that takes far more steps than the size of the file explains is stopped, too: pages may refer to each other so that
    a small file seems to hold endless rows.

    Args:
        file: The file; created if missing.
        schema: Statements that create its tables.
        version: The format of the tables; files of another format are refused.

    Raises:
        StoreError: It cannot be opened or written.
        ValueError: It is something else, or was written by another version.
    """

    def __init__(self, file: Path, schema: str, version: int) -> None:
        self.file = file
        self._ahead: bool | None = None
        self._looks = 0
        if file.exists() and not file.is_file():
            raise ValueError(f"{file} is not a results file: it is not even a regular file")
        with self.guard("be opened"):
            self._connection = self.connect()
            self._prepare(schema, version)

    def execute(self, query: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Execute a statement, inside `transaction` or `guard`."""
        self._looks = 0
        return self._connection.execute(query, values)

    def one(self, query: str) -> int:
        """Query one number."""
        return int(self.execute(query).fetchone()[0])

    def connect(self) -> sqlite3.Connection:
        """Open another connection, for another thread."""
        for suffix in ("", "-wal", "-shm", "-journal"):
            refuse_link(self.file.with_name(f"{self.file.name}{suffix}"))
        connection = sqlite3.connect(self.file, timeout=_BUSY_SECONDS, isolation_level=None)
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda text: text.decode(errors="replace")  # one damaged row does not hide the others
        connection.set_progress_handler(self._runs_away, _STEPS)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA synchronous = EXTRA")  # a commit counts once it is on disk
        return connection

    def _runs_away(self) -> bool:
        """Tell SQLite whether to stop the current statement."""
        self._looks += 1
        files = [self.file, self.file.with_name(f"{self.file.name}-wal")]
        size = sum(file.stat().st_size for file in files if file.exists())
        return self._looks * _STEPS > 10 * _STEPS + _STEPS_PER_BYTE * size

    def write_ahead(self) -> None:
        """Use a write-ahead log while this process writes, except on shared file systems, where it does not work.

        A durable commit then waits once for the disk instead of four times, and others not at all.
        """
        if self._ahead is None:
            self._ahead = False
            if not is_shared(self.file.parent):
                with suppress(sqlite3.OperationalError):  # another process is reading right now: do without
                    (mode,) = self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
                    self._ahead = mode == "wal"

    def close(self) -> None:
        """Close the file; one that we wrote is left without a log, readable on read-only media."""
        if self._ahead:
            with suppress(sqlite3.OperationalError):  # others are still writing: the last one does it
                self._connection.execute("PRAGMA busy_timeout = 0")
                self._connection.execute("PRAGMA journal_mode = DELETE")
            self._ahead = False
        self._connection.close()

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[None]:
        """Commit everything inside or nothing; no one else writes meanwhile.

        Args:
            durable: Whether it must survive a power failure; it survives the process in any case.
        """
        with self.guard("be written"):
            if self._ahead:  # without the log, less could damage the file in a power failure
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def guard(self, what: str) -> Iterator[None]:
        """Turn SQLite errors into sentences: the results cannot `what`."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error) or "malformed" in str(error):
                raise ValueError(f"{self.file} is not a results file, or is damaged: {error}") from None
            if "interrupted" in str(error):
                raise ValueError(f"{self.file} is damaged: it seems to hold far more than its size allows") from None
            raise StoreError(f"the results in {self.file} cannot {what}: {reason(error, self.file)}") from None

    def _prepare(self, schema: str, version: int) -> None:
        found = self.one("PRAGMA user_version")
        if found not in (0, version):
            raise ValueError(f"{self.file} was written by another version of sohot (format {found}, not {version})")
        if found == 0:
            self._create(schema, version)
        with closing(sqlite3.connect(":memory:")) as pattern:
            pattern.executescript(schema)
            wanted = _objects(pattern)
        tables = {name for kind, name, *_ in wanted if kind == "table"}
        if wanted != {one for one in _objects(self._connection) if not tables.isdisjoint(one[1:3])}:
            raise ValueError(f"{self.file} is not a results file, or was changed: its tables are not those of sohot")

    def _create(self, schema: str, version: int) -> None:
        with self.transaction():
            if self.one("PRAGMA user_version") == version:  # another process has just created the tables
                return
            if _objects(self._connection):
                raise ValueError(f"{self.file} is not a results file: it holds something else")
            for statement in schema.split(";"):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {version}")


def _objects(connection: sqlite3.Connection) -> set[tuple[str, str, str, str]]:
    """Return the kind, name, table and definition of everything that a file declares."""
    rows = connection.execute("SELECT type, lower(name), lower(tbl_name), coalesce(sql, '') FROM sqlite_master")
    return {(kind, name, table, " ".join(sql.split())) for kind, name, table, sql in rows}


def reason(error: sqlite3.DatabaseError, file: Path) -> str:
    """Say what an SQLite error means for a user.

    >>> reason(sqlite3.OperationalError("database or disk is full"), Path("out/results.sqlite"))
    'the disk is full; finished work is kept, so free some space and run the same command again'
    """
    text = str(error)
    if "full" in text:
        return "the disk is full; finished work is kept, so free some space and run the same command again"
    if "readonly" in text or ("unable to open" in text and not os.access(file.parent, os.W_OK)):
        return f"this user may not write to {file.parent}"
    if "locked" in text:
        return f"another process has held it for {_BUSY_SECONDS:.0f} seconds"
    return text
