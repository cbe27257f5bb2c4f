"""The results of an experiment: a JSON file for each cell, and claims, which say who computes a cell."""

import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from .._files import disk_error, hidden_beside, lock_folder, refuse_link, remove_leftovers, write_bytes, write_json
from .._process import Runner, is_alive, this_runner
from .._reading import read_regular
from ..training.run_folder import versions
from .cell import CELLS, Cell
from .result import Attempt, CellResult, attempts_from_json, attempts_to_json
from .stored_json import check_fields, parse_json

_PLAN = "plan.json"
_KEY = re.compile("[0-9a-f]{64}")
_MOST_BYTES = 1 << 27
_LOCK_SECONDS, _WRITING_SECONDS = 60.0, 1.0
T = TypeVar("T")
_DAMAGE = (OSError, ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError)


class Store:
    """Results by cell, and claims, so that processes that share a folder never compute a cell twice.

    A claim names a process. If that process is dead, others on its machine take the cell over; nobody knows that of a
    process on another machine, so its claims hold until `plan` is told to retry. A damaged file does not count: a
    warning names it, the others are read, and its cell is computed again.

    Args:
        folder: The folder of the experiment; `plan` creates it.

    Raises:
        ValueError: A link leads out of it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import torch
        >>> from sohot.training import evaluate
        >>> result = CellResult(evaluate(torch.eye(2), torch.tensor([0, 1]), 2))
        >>> cell = Cell("office31", "A-W", 1, "so", "lite0")
        >>> with TemporaryDirectory() as folder, Store(Path(folder)) as store:
        ...     store.plan([cell])
        ...     claimed = store.claim(cell), store.claim(cell)
        ...     store.finish(cell, result)
        ...     claimed, store.claim(cell), len(store.records())
        ((True, False), False, 1)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = refuse_link(Path(folder) / CELLS)
        self._me = this_runner()
        self._claimed: dict[str, str] = {}  # cells that we hold, and when we began them
        self._retried: dict[str, int] = {}  # cells to try again, and how often they were tried before
        self._done: dict[str, list[Attempt]] = {}
        self._damaged: set[Path] = set()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def plan(self, cells: Sequence[Cell], *, retry: bool = False) -> None:
        """Begin work on a grid, and record its cells for `records`.

        Args:
            cells: The cells.
            retry: Try failed cells again, each once, and drop the claims of processes on other machines.

        Raises:
            BlockingIOError: Another process is computing a different grid in this folder.
        """
        keys = [cell.key for cell in cells]
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)
        with self._locked():
            holders = self.claimed_by_others()
            for key in [key for key, holder in holders.items() if retry and holder.host != self._me.host]:
                self._file(key, "claim").unlink(missing_ok=True)
                del holders[key]
            if self._planned() != keys:
                for holder in holders.values():
                    dead = "" if holder.host == self._me.host else "; if it is dead, add --retry"
                    raise BlockingIOError(
                        f"{self.folder.parent} is in use: process {holder.pid} on {holder.host} is computing a "
                        f"different grid there; wait until it ends, or choose another --out{dead}"
                    )
                write_json(self.folder / _PLAN, keys)
        self._retried = {key: len(self._attempts(key)) for key in keys} if retry else {}

    def records(self, cells: Iterable[Cell] | None = None) -> list[Attempt]:
        """Return the latest attempt at each cell, in order; None for the cells of the grid that was planned last."""
        keys = self._planned() if cells is None else [cell.key for cell in cells]
        return [attempts[-1] for key in keys if (attempts := self._attempts(key))]

    def settled(self, cells: Iterable[Cell]) -> dict[str, str]:
        """Return the status of those cells that need no more computing, "done" or "failed", by key."""
        return {one.key: one.status for one in self.records(cells) if self._settles(one.key)}

    def claim(self, cell: Cell) -> bool:
        """Claim a cell, if nobody else has it and it is not settled; return whether it is ours now."""
        key = cell.key
        with self._locked():
            if not self._take(key):
                return False
        if self._settles(key):  # looked at with the claim in hand: who finishes a cell stores it before letting go
            self._let_go(key)
            return False
        self._claimed[key] = _now()
        return True

    def claimed_by_others(self) -> dict[str, Runner]:
        """Return the processes that compute cells, by key, except this one; those of other machines may be dead."""
        keys = [file.stem for file in self.folder.glob("*.claim") if file.stem not in self._claimed]
        return {key: holder for key in keys if (holder := self._holder(key)) is not None}

    def finish(self, cell: Cell, result: CellResult) -> None:
        """Store the result of a cell.

        Raises:
            ValueError: JSON cannot hold the result.
            OSError: It cannot be written, for example because the disk is full.
        """
        self._add(cell, result, None)

    def fail(self, cell: Cell, error: str) -> None:
        """Store why a cell failed."""
        self._add(cell, None, error)

    def release(self, cell: Cell | None = None) -> None:
        """Release one of our unfinished cells, or all of them."""
        for key in [*self._claimed] if cell is None else [cell.key]:
            self._let_go(key)

    def _add(self, cell: Cell, result: CellResult | None, error: str | None) -> None:
        key, now = cell.key, _now()
        attempt = Attempt(key, cell, result, error, versions(), self._claimed.get(key, now), now, self._me.host)
        content = attempts_to_json([*self._attempts(key), attempt]).encode()
        file = self._file(key, "json")
        temporary = hidden_beside(file)
        try:
            write_bytes(temporary, content)
            os.replace(temporary, file)  # without waiting for the name: if power fails, the cell is computed again
        except OSError as failure:
            temporary.unlink(missing_ok=True)
            raise disk_error(failure, file) from failure
        self._let_go(key)

    def _attempts(self, key: str) -> list[Attempt]:
        if key not in self._done:
            attempts = self._read(self._file(key, "json"), partial(attempts_from_json, key)) or []
            if not attempts or attempts[-1].result is None:
                return attempts
            self._done[key] = attempts
        return self._done[key]

    def _settles(self, key: str) -> bool:
        attempts = self._attempts(key)
        return bool(attempts) and (attempts[-1].result is not None or self._retried.get(key) != len(attempts))

    def _planned(self) -> list[str]:
        return self._read(self.folder / _PLAN, lambda keys: [key for key in keys if _KEY.fullmatch(key)]) or []

    def _read(self, file: Path, decode: Callable[[Any], T]) -> T | None:
        """Read a JSON file; None if there is none, or it is damaged, which is said once."""
        try:
            return decode(parse_json(read_regular(refuse_link(file), _MOST_BYTES)))
        except FileNotFoundError:
            return None
        except _DAMAGE as error:
            if file not in self._damaged:
                reason = f"it has no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
                warnings.warn(f"{file} is damaged and does not count: {reason}", stacklevel=2)
            self._damaged.add(file)
            return None

    def _take(self, key: str) -> bool:
        """Make a claim, if there is none or its process is dead; nobody else on this machine does so meanwhile."""
        file = self._file(key, "claim")
        if self._holder(key) is not None:
            return False
        file.unlink(missing_ok=True)
        try:
            with open(file, "xb") as stream:
                stream.write(json.dumps(asdict(self._me)).encode())
        except FileExistsError:  # made by another machine, on a file system without locks
            return False
        return True

    def _let_go(self, key: str) -> None:
        self._claimed.pop(key, None)
        if self._holder(key) == self._me:  # else somebody was told that we are dead
            self._file(key, "claim").unlink(missing_ok=True)

    def _holder(self, key: str) -> Runner | None:
        """Return the process that claims a cell, unless it is dead."""
        for wait in (_WRITING_SECONDS, 0.0):
            try:
                holder = Runner(**parse_json(read_regular(refuse_link(self._file(key, "claim")), _MOST_BYTES)))
                check_fields(holder)
                return None if is_alive(holder, self._me) is False else holder
            except FileNotFoundError:
                return None
            except _DAMAGE:
                time.sleep(wait)  # it is being written, or its process was killed before that
        return None

    def _file(self, key: str, kind: str) -> Path:
        return self.folder / f"{key}.{kind}"

    def _locked(self) -> ExitStack:
        return lock_folder(self.folder, _LOCK_SECONDS)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
