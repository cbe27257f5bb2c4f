"""The results of an experiment in one SQLite file. Attempts are only ever added; claims say who computes what."""

import json
import sqlite3
import time
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from ..training.run_folder import versions
from .cell import Cell
from .database import Database, StoreError
from .result import Attempt, CellResult
from .runners import HEARTBEAT_SECONDS, RUNNERS_SCHEMA, Runners
from .stored_json import check_fields, parse_json

__all__ = ["Store", "StoreError"]

FORMAT = 1

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS attempts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, cell TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')), result TEXT, error TEXT,
    versions TEXT NOT NULL, started TEXT NOT NULL, finished TEXT NOT NULL, host TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS attempts_by_key ON attempts (key);
{RUNNERS_SCHEMA}
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, runner TEXT NOT NULL, started TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS plan (place INTEGER PRIMARY KEY, key TEXT NOT NULL);
"""
_LATEST = """
SELECT a.* FROM attempts a JOIN (SELECT key, MAX(id) AS id FROM attempts GROUP BY key) b ON a.id = b.id ORDER BY a.id
"""
_MOST_NAMED = 10
_DAMAGE = (ValueError, TypeError, AttributeError, OverflowError, RecursionError)


class Store:
    """Results by cell, and claims, so that runners on one folder never compute a cell twice.

    A claim names the process that made it and lapses when that process dies; see `Runners`. A damaged attempt does not
    count: the others are shown, a warning names its cell, and the cell is computed again.

    Args:
        file: The SQLite file; created if missing.

    Raises:
        StoreError: It cannot be opened or written.
        ValueError: It is something else, or was written by another version.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import torch
        >>> from sohot.training import evaluate
        >>> result = CellResult(evaluate(torch.eye(2), torch.tensor([0, 1]), 2))
        >>> cell = Cell("office31", "A-W", 1, "so", "lite0")
        >>> with TemporaryDirectory() as folder:
        ...     with Store(Path(folder) / "results.sqlite") as store:
        ...         claimed = store.claim(cell), store.claim(cell)
        ...         store.finish(cell, result)
        ...         again = store.claim(cell)
        ...     claimed, again, store.file.name
        ((True, False), False, 'results.sqlite')
    """

    def __init__(self, file: Path) -> None:
        self.file = Path(file)
        self._began: dict[str, str] = {}
        self._damaged: set[int] = set()
        self._database = Database(self.file, _SCHEMA, FORMAT)
        self.runners = Runners(self._database)
        self._newest = self._database.one("SELECT COALESCE(MAX(id), 0) FROM attempts")

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def records(self, *, every: bool = False) -> list[Attempt]:
        """Return the latest attempt at each cell, oldest first, and warn about damaged ones.

        Args:
            every: Include cells outside the grid that was planned last in this folder.
        """
        with self._database.guard("be read"):
            planned = {row["key"] for row in self._database.execute("SELECT key FROM plan")}
            rows = self._database.execute(_LATEST).fetchall()
        return self._intact([row for row in rows if every or not planned or row["key"] in planned])

    def settled(self, *, retry: bool = False) -> dict[str, str]:
        """Return the status of cells that need no more computing, "done" or "failed", by key; see `claim`."""
        with self._database.guard("be read"):
            rows = self._database.execute("SELECT MAX(id) AS id, key, status FROM attempts GROUP BY key").fetchall()
        return {row["key"]: row["status"] for row in rows if self._settles(row, retry)}

    def _settles(self, attempt: sqlite3.Row, retry: bool) -> bool:
        if attempt["id"] in self._damaged:
            return False
        return attempt["status"] == "done" or not retry or attempt["id"] > self._newest

    def attempts(self) -> list[Attempt]:
        """Return all attempts, oldest first, and warn about damaged ones."""
        with self._database.guard("be read"):
            return self._intact(self._database.execute("SELECT * FROM attempts ORDER BY id").fetchall())

    def plan(self, cells: Iterable[Cell]) -> None:
        """Begin work on a grid: register this process, and record the cells, so that `records` omits those of others.

        Damaged attempts at the cells do not count from here on. If another grid was computed here on another machine,
        which may be dead, this waits for its sign of life.

        Raises:
            BlockingIOError: Another process is computing a different grid in this folder.
        """
        keys = [cell.key for cell in cells]
        waited = False
        while (silent := self._replace_plan(keys)) is not None:
            if not waited:
                where = f"process {silent['pid']} on {silent['host']}"
                warnings.warn(f"{where} was computing another grid here: looking if it still is", stacklevel=2)
            waited = True
            time.sleep(HEARTBEAT_SECONDS / 5)
        self.records()

    def _replace_plan(self, keys: Sequence[str]) -> sqlite3.Row | None:
        """Record the cells of our grid, or return a process that may still be computing others."""
        with self._database.transaction():
            if [row["key"] for row in self._database.execute("SELECT key FROM plan ORDER BY place")] != keys:
                others = [(row, self.runners.lives(row)) for row in self.runners.others()]
                for row in (row for row, alive in others if alive):
                    raise BlockingIOError(
                        f"{self.file.parent} is in use: process {row['pid']} on {row['host']} is computing a different "
                        "grid there; wait until it ends, or choose another --out"
                    )
                for row in (row for row, alive in others if alive is None):
                    return row
                self.runners.forget_others()  # or the next grid would wait for them again
                self._database.execute("DELETE FROM plan")
                for key in keys:
                    self._database.execute("INSERT INTO plan (key) VALUES (?)", (key,))
            self.runners.join()
        return None

    def claim(self, cell: Cell, *, retry: bool = False) -> bool:
        """Claim a cell, if no one else has it and it is not done.

        Args:
            cell: The cell.
            retry: Also claim failed cells, unless retried since this store was opened.

        Returns:
            Whether it is ours now.
        """
        key = cell.key
        self._database.write_ahead()
        with self._database.transaction(durable=False):
            last = self._database.execute(
                "SELECT id, status FROM attempts WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)
            ).fetchone()
            if (last is not None and self._settles(last, retry)) or self._holder_lives(key):
                return False
            self.runners.join()
            self._began[key] = _now()
            self._database.execute(
                "INSERT OR REPLACE INTO claims (key, runner, started) VALUES (?, ?, ?)",
                (key, self.runners.id, self._began[key]),
            )
        return True

    def claimed_by_others(self) -> set[str]:
        """Return the keys of cells that other live runners are computing."""
        with self._database.guard("be read"):
            rows = self._database.execute("SELECT key FROM claims WHERE runner != ?", (self.runners.id,)).fetchall()
            return {row["key"] for row in rows if self._holder_lives(row["key"])}

    def finish(self, cell: Cell, result: CellResult) -> None:
        """Record that a cell is done, and its result.

        Raises:
            ValueError: JSON cannot hold the result.
        """
        self._add(cell, "done", json.dumps(result.as_json(), allow_nan=False), None)

    def fail(self, cell: Cell, error: str) -> None:
        """Record that a cell failed, and why."""
        self._add(cell, "failed", None, error)

    def release(self, cell: Cell | None = None) -> None:
        """Release one of our unfinished cells, or all of them."""
        with self._database.transaction():
            ours = "DELETE FROM claims WHERE runner = ?"
            if cell is None:
                self._database.execute(ours, (self.runners.id,))
            else:
                self._database.execute(f"{ours} AND key = ?", (self.runners.id, cell.key))

    def close(self) -> None:
        """Release our cells and close the file."""
        self.runners.silence()
        if self.runners.joined:
            with suppress(StoreError):  # a full disk was reported before; our claims lapse with this process
                self.release()
                with self._database.transaction():
                    self.runners.leave()
        self._database.close()

    def _add(self, cell: Cell, status: str, result: str | None, error: str | None) -> None:
        key, now = cell.key, _now()
        values = (key, json.dumps(cell.as_dict()), status, result, error, json.dumps(versions()))
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO attempts (key, cell, status, result, error, versions, started, finished, host) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, self._began.get(key, now), now, self.runners.me.host),
            )
            self._database.execute("DELETE FROM claims WHERE key = ? AND runner = ?", (key, self.runners.id))
        self._began.pop(key, None)

    def _holder_lives(self, key: str) -> bool:
        """Tell whether a cell is claimed by a live process, ourselves included."""
        row = self._database.execute(
            "SELECT r.* FROM claims c JOIN runners r ON r.id = c.runner WHERE c.key = ?", (key,)
        ).fetchone()
        return row is not None and self.runners.lives(row) is not False

    def _intact(self, rows: Iterable[sqlite3.Row]) -> list[Attempt]:
        found, damaged = [], []
        for row in rows:
            try:
                found.append(_attempt(row))
            except _DAMAGE as error:
                self._damaged.add(row["id"])
                damaged.append(f"the record of cell {_name(row)} is damaged and does not count: {error}")
        for sentence in damaged[:_MOST_NAMED]:
            warnings.warn(f"{self.file}: {sentence}", stacklevel=3)
        if len(damaged) > _MOST_NAMED:
            warnings.warn(f"{self.file}: {len(damaged) - _MOST_NAMED} more records are damaged", stacklevel=3)
        return found


def _attempt(row: sqlite3.Row) -> Attempt:
    """Read an attempt.

    Raises:
        ValueError: It is damaged; or another of `_DAMAGE`.
    """
    if row["status"] not in ("done", "failed"):
        raise ValueError(f"its status is {row['status']!r}")
    attempt = Attempt(
        row["key"],
        Cell.from_dict(parse_json(row["cell"])),
        None if row["status"] == "failed" else CellResult.from_json(parse_json(row["result"])),
        row["error"],
        dict(parse_json(row["versions"])),
        row["started"],
        row["finished"],
        row["host"],
    )
    check_fields(attempt)
    return attempt


def _name(row: sqlite3.Row) -> str:
    """Name the cell of a damaged attempt, by its key if no more is known."""
    try:
        cell = Cell.from_dict(parse_json(row["cell"]))
        check_fields(cell)
        return cell.label()
    except _DAMAGE:
        return str(row["key"])


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
