"""The results of an experiment in one SQLite file. Attempts are only ever added; claims say who computes what."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from uuid import uuid4

from .._process import Runner, is_alive, this_runner
from ..training.run_folder import versions
from .cell import Cell
from .database import Database, StoreError
from .result import Attempt, CellResult

__all__ = ["Store", "StoreError"]

FORMAT = 1
HEARTBEAT_SECONDS = 5.0
TIMEOUT_SECONDS = 60.0
"""A runner on another machine without a heartbeat for this long is considered dead."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS attempts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, cell TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')), result TEXT, error TEXT,
    versions TEXT NOT NULL, started TEXT NOT NULL, finished TEXT NOT NULL, host TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS attempts_by_key ON attempts (key);
CREATE TABLE IF NOT EXISTS runners (
    id TEXT PRIMARY KEY, host TEXT NOT NULL, place TEXT NOT NULL, pid INTEGER NOT NULL, began TEXT NOT NULL,
    beat INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, runner TEXT NOT NULL, started TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS plan (place INTEGER PRIMARY KEY, key TEXT NOT NULL);
"""
_LATEST = """
SELECT a.* FROM attempts a JOIN (SELECT key, MAX(id) AS id FROM attempts GROUP BY key) b ON a.id = b.id ORDER BY a.id
"""


class Store:
    """Results by cell, and claims, so that runners on one folder never compute a cell twice.

    A claim names the process that made it. It lapses when that process dies: on this machine at once, on another
    when its heartbeat has stopped for `TIMEOUT_SECONDS` of our own clock (clocks of machines differ).

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
        self.runner: Runner = this_runner()
        self._id = uuid4().hex
        self._began: dict[str, str] = {}
        self._beats: dict[str, tuple[int, float]] = {}
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None
        self._database = Database(self.file, _SCHEMA, FORMAT)
        self._newest = self._database.one("SELECT COALESCE(MAX(id), 0) FROM attempts")

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def records(self, *, every: bool = False) -> list[Attempt]:
        """Return the latest attempt at each cell, oldest first.

        Args:
            every: Include cells outside the grid that was planned last in this folder.

        Raises:
            ValueError: A stored attempt is damaged.
        """
        with self._database.guard("be read"):
            planned = {row["key"] for row in self._database.execute("SELECT key FROM plan")}
            rows = self._database.execute(_LATEST).fetchall()
        return [self._attempt(row) for row in rows if every or not planned or row["key"] in planned]

    def settled(self, *, retry: bool = False) -> dict[str, str]:
        """Return the status of cells that need no more computing, "done" or "failed", by key; see `claim`."""
        with self._database.guard("be read"):
            rows = self._database.execute(_LATEST).fetchall()
        return {row["key"]: row["status"] for row in rows if self._settles(row, retry)}

    def _settles(self, attempt: sqlite3.Row, retry: bool) -> bool:
        return attempt["status"] == "done" or not retry or attempt["id"] > self._newest

    def attempts(self) -> list[Attempt]:
        """Return all attempts, oldest first."""
        with self._database.guard("be read"):
            return [self._attempt(row) for row in self._database.execute("SELECT * FROM attempts ORDER BY id")]

    def plan(self, cells: Iterable[Cell]) -> None:
        """Record which cells belong to the grid, so that `records` omits those of other grids."""
        keys = [cell.key for cell in cells]
        with self._database.transaction():
            if [row["key"] for row in self._database.execute("SELECT key FROM plan ORDER BY place")] != keys:
                self._database.execute("DELETE FROM plan")
                for key in keys:
                    self._database.execute("INSERT INTO plan (key) VALUES (?)", (key,))

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
            self._join()
            self._began[key] = _now()
            self._database.execute(
                "INSERT OR REPLACE INTO claims (key, runner, started) VALUES (?, ?, ?)",
                (key, self._id, self._began[key]),
            )
        return True

    def claimed_by_others(self) -> set[str]:
        """Return the keys of cells that other live runners are computing."""
        with self._database.guard("be read"):
            rows = self._database.execute("SELECT key FROM claims WHERE runner != ?", (self._id,)).fetchall()
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

    def release(self) -> None:
        """Release all our unfinished cells."""
        with self._database.transaction():
            self._database.execute("DELETE FROM claims WHERE runner = ?", (self._id,))
        self._began.clear()

    def close(self) -> None:
        """Release our cells and close the file."""
        self._stop.set()
        if self._heart is not None:
            self._heart.join()
            with suppress(StoreError):  # a full disk was reported before; our claims lapse with this process
                self.release()
                with self._database.transaction():
                    self._database.execute("DELETE FROM runners WHERE id = ?", (self._id,))
            self._heart = None
        self._database.close()

    def _add(self, cell: Cell, status: str, result: str | None, error: str | None) -> None:
        key, now = cell.key, _now()
        values = (key, json.dumps(cell.as_dict()), status, result, error, json.dumps(versions()))
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO attempts (key, cell, status, result, error, versions, started, finished, host) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, self._began.get(key, now), now, self.runner.host),
            )
            self._database.execute("DELETE FROM claims WHERE key = ? AND runner = ?", (key, self._id))
        self._began.pop(key, None)

    def _holder_lives(self, key: str) -> bool:
        """Tell whether a cell is claimed by a live process, ourselves included."""
        row = self._database.execute(
            "SELECT r.* FROM claims c LEFT JOIN runners r ON r.id = c.runner WHERE c.key = ?", (key,)
        ).fetchone()
        if row is None or row["id"] is None:
            return False
        if row["id"] == self._id:
            return True
        alive = is_alive(Runner(row["host"], row["place"], row["pid"], row["began"]), self.runner)
        if alive is not None:
            return alive
        beat, seen = self._beats.get(row["id"], (None, 0.0))
        if beat != row["beat"]:
            beat, seen = self._beats[row["id"]] = row["beat"], time.monotonic()
        return time.monotonic() - seen < TIMEOUT_SECONDS

    def _join(self) -> None:
        """Register as a runner and start the heartbeat; done at the first claim, as readers claim nothing."""
        if self._heart is not None:
            return
        me = self.runner
        self._database.execute(
            "INSERT OR IGNORE INTO runners VALUES (?, ?, ?, ?, ?, 0)", (self._id, me.host, me.place, me.pid, me.began)
        )
        self._heart = threading.Thread(target=self._beat, name="sohot-heartbeat", daemon=True)
        self._heart.start()

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            with suppress(sqlite3.Error):  # the next beat may succeed; storing results reports errors
                connection = self._database.connect()
                connection.execute("UPDATE runners SET beat = beat + 1 WHERE id = ?", (self._id,))
                connection.close()

    def _attempt(self, row: sqlite3.Row) -> Attempt:
        try:
            return Attempt(
                row["key"],
                Cell.from_dict(json.loads(row["cell"])),
                None if row["status"] == "failed" else CellResult.from_json(json.loads(row["result"])),
                row["error"],
                dict(json.loads(row["versions"])),
                row["started"],
                row["finished"],
                row["host"],
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{self.file}: the record of cell {row['key']} is damaged: {error}") from None


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
