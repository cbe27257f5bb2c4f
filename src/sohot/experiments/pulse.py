"""A sign of life in a folder that machines share."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

HEARTBEAT_SECONDS = 5.0
TIMEOUT_SECONDS = 60.0
"""Whoever has given no sign for so long is taken for dead."""


class Pulse:
    """A file that is touched while a process lives. Ages are told by the file system's clock, for machines' differ.

    Args:
        beside: The file that processes share; signs of life are put beside it.

    Attributes:
        name: Name of the own sign.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     one, other = Pulse(Path(folder) / "study"), Pulse(Path(folder) / "study")
        ...     one.start(), other.start()
        ...     alive = one.beats(other.name)
        ...     other.stop()
        ...     alive, one.beats(other.name)
        ...     one.stop()
        (None, None)
        (True, False)
    """

    def __init__(self, beside: Path) -> None:
        self.name = f".{beside.stem}.{uuid4().hex}.alive"
        self._folder = beside.parent
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="sohot-pulse", daemon=True)

    def start(self) -> None:
        """Begin to give signs of life."""
        (self._folder / self.name).touch()
        self._thread.start()

    def stop(self) -> None:
        """End, and leave nothing behind."""
        self._stop.set()
        self._thread.join()
        self.forget(self.name)

    def exists(self, name: str) -> bool:
        """Tell whether another has begun and not ended; it may be dead."""
        return (self._folder / name).exists()

    def beats(self, name: str) -> bool:
        """Tell whether another gave a sign not long ago."""
        mine = self._folder / self.name
        try:
            mine.touch()
            with open(self._folder / name, "rb") as other:  # opened, for network folders remember old times of files
                return mine.stat().st_mtime - os.fstat(other.fileno()).st_mtime < TIMEOUT_SECONDS
        except FileNotFoundError:
            return False

    def forget(self, name: str) -> None:
        """Clear away after one who died."""
        with suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            with suppress(OSError):  # the next one may get through
                (self._folder / self.name).touch()
