"""The processes that work on one results file, and which of them are alive."""

import sqlite3
import threading
import time
from contextlib import suppress
from uuid import uuid4

from .._process import Runner, is_alive, this_runner
from .database import Database

HEARTBEAT_SECONDS = 5.0
TIMEOUT_SECONDS = 60.0
"""A runner on another machine without a heartbeat for this long is considered dead."""

RUNNERS_SCHEMA = """
CREATE TABLE IF NOT EXISTS runners (
    id TEXT PRIMARY KEY, host TEXT NOT NULL, place TEXT NOT NULL, pid INTEGER NOT NULL, began TEXT NOT NULL,
    beat INTEGER NOT NULL);
"""


class Runners:
    """The processes that registered in a results file.

    Whether one on this machine is alive is known at once. One on another machine counts its heartbeats in the file;
    it is dead once they have stopped for `TIMEOUT_SECONDS` of our own clock (clocks of machines differ).

    Args:
        database: The file.

    Attributes:
        me: This process.
        id: Its name in the file.
    """

    def __init__(self, database: Database) -> None:
        self.me: Runner = this_runner()
        self.id = uuid4().hex
        self._database = database
        self._heard: dict[str, tuple[object, float, bool]] = {}  # last beat, when it was new, whether another preceded
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None

    @property
    def joined(self) -> bool:
        """Whether this process is registered."""
        return self._heart is not None

    def join(self) -> None:
        """Register this process and start its heartbeat; call it inside a transaction."""
        if self.joined:
            return
        me = self.me
        self._database.execute(
            "INSERT OR IGNORE INTO runners VALUES (?, ?, ?, ?, ?, 0)", (self.id, me.host, me.place, me.pid, me.began)
        )
        self._heart = threading.Thread(target=self._beat, name="sohot-heartbeat", daemon=True)
        self._heart.start()

    def silence(self) -> None:
        """Stop the heartbeat; `leave` removes the registration."""
        self._stop.set()
        if self._heart is not None:
            self._heart.join()

    def leave(self) -> None:
        """Remove the registration; call it inside a transaction."""
        self._database.execute("DELETE FROM runners WHERE id = ?", (self.id,))
        self._heart = None

    def others(self) -> list[sqlite3.Row]:
        """Return the other registered processes, which may be dead; see `lives`."""
        return self._database.execute("SELECT * FROM runners WHERE id != ?", (self.id,)).fetchall()

    def forget_others(self) -> None:
        """Remove the other registrations, once all of them are dead; call it inside a transaction."""
        self._database.execute("DELETE FROM runners WHERE id != ?", (self.id,))

    def lives(self, runner: sqlite3.Row) -> bool | None:
        """Tell whether a registered process is alive; None while one on another machine has yet to give a sign."""
        if runner["id"] == self.id:
            return True
        if not isinstance(runner["pid"], int):  # the file is damaged
            return False
        alive = is_alive(Runner(runner["host"], runner["place"], runner["pid"], runner["began"]), self.me)
        if alive is not None:
            return alive
        now = time.monotonic()
        beat, since, heard = self._heard.get(runner["id"], (runner["beat"], now, False))
        if beat != runner["beat"]:
            beat, since, heard = runner["beat"], now, True
        self._heard[runner["id"]] = beat, since, heard
        if now - since >= TIMEOUT_SECONDS:
            return False
        return heard or None

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            with suppress(sqlite3.Error):  # the next beat may succeed; storing results reports errors
                connection = self._database.connect()
                connection.execute("UPDATE runners SET beat = beat + 1 WHERE id = ?", (self.id,))
                connection.close()
