"""An Optuna study in a file that processes on several machines share and that outlives each of them."""

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import optuna
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from .._files import refuse_link
from .._process import Runner, is_alive, this_runner
from .._reading import read_regular
from .search_space import Space, combinations

HEARTBEAT_SECONDS = 5.0
TIMEOUT_SECONDS = 60.0
"""A process without a sign of life for this long counts as dead."""


class Pulse:
    """A file that a process touches while it lives. Ages use the file system's clock, because machines' clocks differ.

    Args:
        beside: The file that processes share; signs of life are written next to it.

    Attributes:
        name: File name of this process's sign.

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
        """Start giving signs of life."""
        (self._folder / self.name).touch()
        self._thread.start()

    def stop(self) -> None:
        """Stop, and remove the sign."""
        self._stop.set()
        self._thread.join()
        self.forget(self.name)

    def exists(self, name: str) -> bool:
        """Tell whether another process has started and not stopped; it may be dead."""
        return (self._folder / name).exists()

    def beats(self, name: str) -> bool:
        """Tell whether another process gave a recent sign of life."""
        mine = self._folder / self.name
        try:
            mine.touch()
            with open(self._folder / name, "rb") as other:  # opened, because network folders cache file times
                return mine.stat().st_mtime - os.fstat(other.fileno()).st_mtime < TIMEOUT_SECONDS
        except FileNotFoundError:
            return False

    def forget(self, name: str) -> None:
        """Remove the sign of a dead process."""
        with suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            with suppress(OSError):  # the next attempt may succeed
                (self._folder / self.name).touch()


_FORMAT = 2
_LOOK_AGAIN_SECONDS = 0.5
_PLACE, _RUNNER, _PULSE, _FAILURE, _ROWS, _ACCURACY = "place", "runner", "pulse", "failure", "rows", "accuracy"


@dataclass(frozen=True)
class Tried:
    """A setting that was tried.

    Attributes:
        number: Its number; 0 is the default setting.
        settings: The setting.
        score: Its score; −∞ if it failed.
        failure: Why it failed; None if it did not.
        log_likelihoods: Of the held-out rows that gave the score; empty if another number is the score.
        accuracy: Share of them classified correctly; None likewise.
    """

    number: int
    settings: dict[str, Any]
    score: float
    failure: str | None = None
    log_likelihoods: tuple[float, ...] = ()
    accuracy: float | None = None


class SharedStudy:
    """Hands out settings to try, each to one process, and keeps their scores.

    Each of the places 0 … trials−1 is filled once; a place whose process died becomes free again. The proposal for a
    place depends on the seed, the place and the scores known so far, so a process working alone makes the same
    proposals even if it is killed and restarted. A space with at most `trials` settings is tried in full.

    Args:
        folder: Folder of the file; created if missing. It may be a network folder.
        name: Name of the search; another space, default or seed makes another study, in another file.
        space: The search space.
        trials: Number of settings to try, over all processes.
        seed: Random seed.

    Raises:
        ValueError: The file is damaged.
    """

    def __init__(self, folder: Path, name: str, space: Space, trials: int, seed: int) -> None:
        self._space = space
        self._seed = seed
        self._every = combinations(space, trials)
        self.trials = trials if self._every is None else len(self._every)
        refuse_link(folder).mkdir(parents=True, exist_ok=True)
        self.file = folder.resolve() / f"{_stem(name, space, seed, whole=self._every is not None)}.journal"
        refuse_link(self.file)
        self._me = this_runner()
        self._pulse = Pulse(self.file)
        self._turn = JournalFileOpenLock(f"{self.file}.turn")
        with _held(self._turn):
            self._study = self._open()

    def __enter__(self) -> "SharedStudy":
        self._pulse.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pulse.stop()

    def take(self) -> "StudyTrial | None":
        """Take a setting to try; if none is free, wait while other processes, which may die, try theirs.

        Returns:
            The setting; None if all places are filled.
        """
        while True:
            with _held(self._turn):
                free, waiting = self._free_places()
                if free:
                    return self._ask(free[0])
            if not waiting:
                return None
            time.sleep(_LOOK_AGAIN_SECONDS)

    def tried(self) -> list[Tried]:
        """List the settings that were tried, by number."""
        found: dict[int, Tried] = {}
        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            place, score = trial.user_attrs[_PLACE], trial.value
            if place < self.trials and place not in found and score is not None:
                known = trial.user_attrs
                rows = tuple(known.get(_ROWS, ()))
                settings = self._settings(trial.params)
                found[place] = Tried(place, settings, score, known.get(_FAILURE), rows, known.get(_ACCURACY))
        return [found[place] for place in sorted(found)]

    def _open(self) -> optuna.Study:
        lock = JournalFileOpenLock(str(self.file))
        with _held(lock):
            _cut_half_line(self.file)
        try:
            storage = optuna.storages.JournalStorage(JournalFileBackend(str(self.file), lock_obj=lock))
            return optuna.create_study(
                storage=storage, study_name=self.file.stem, direction="maximize", load_if_exists=True
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self.file} is damaged ({error}): delete it to restart the selection") from error

    def _free_places(self) -> tuple[list[int], bool]:
        """Return the free places and whether any place is in progress; release the places of dead processes."""
        taken, waiting = set(), False
        for trial in self._study.get_trials(deepcopy=False):
            if trial.state == TrialState.COMPLETE:
                taken.add(trial.user_attrs[_PLACE])
            elif trial.state == TrialState.RUNNING and self._lives(trial):
                taken.add(trial.user_attrs[_PLACE])
                waiting = True
            elif trial.state == TrialState.RUNNING:
                self._study.tell(trial.number, state=TrialState.FAIL)
                self._pulse.forget(trial.user_attrs[_PULSE])
        return [place for place in range(self.trials) if place not in taken], waiting

    def _lives(self, trial: FrozenTrial) -> bool:
        alive, pulse = is_alive(Runner(**trial.user_attrs[_RUNNER]), self._me), trial.user_attrs[_PULSE]
        if pulse == self._pulse.name:  # started by this process, which is not trying anything now
            return False
        # A process may live on after it was interrupted here; then its pulse is gone.
        return self._pulse.beats(pulse) if alive is None else alive and self._pulse.exists(pulse)

    def _ask(self, place: int) -> "StudyTrial":
        left = self._study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
        if left:  # left by a process that died at this point
            place = left[0].user_attrs[_PLACE]
        else:
            self._study.enqueue_trial(self._fixed(place), user_attrs={_PLACE: place, **self._signature()})
        seed = int(np.random.SeedSequence([self._seed, place]).generate_state(1)[0])
        self._study.sampler = optuna.samplers.TPESampler(seed=seed)
        trial = self._study.ask({name: one.distribution() for name, one in self._space.items()})
        for key, value in self._signature().items():
            trial.set_user_attr(key, value)
        return StudyTrial(self._study, trial, place, self._settings(trial.params))

    def _fixed(self, place: int) -> dict[str, Any]:
        if self._every is not None:
            return self._every[place]
        return {} if place else {name: one.first() for name, one in self._space.items()}

    def _signature(self) -> dict[str, Any]:
        return {_RUNNER: asdict(self._me), _PULSE: self._pulse.name}

    def _settings(self, raw: dict[str, Any]) -> dict[str, Any]:
        return {name: one.decode(raw[name]) for name, one in self._space.items()}


@dataclass(frozen=True)
class StudyTrial:
    """A setting that this process tries.

    Attributes:
        number: Its place.
        settings: The setting.
    """

    _study: optuna.Study
    _trial: optuna.Trial
    number: int
    settings: dict[str, Any]

    def finish(
        self,
        score: float,
        failure: str | None = None,
        log_likelihoods: Sequence[float] = (),
        accuracy: float | None = None,
    ) -> Tried:
        """Save its score, unless others counted this process as dead."""
        rows = tuple(log_likelihoods)
        notes = {_FAILURE: failure, _ROWS: list(rows) or None, _ACCURACY: accuracy}
        with suppress(RuntimeError):  # how Optuna reports a trial that is already finished
            for name, value in notes.items():
                if value is not None:
                    self._trial.set_user_attr(name, value)
            self._study.tell(self._trial, score, skip_if_finished=True)
        return Tried(self.number, self.settings, score, failure, rows, accuracy)

    def give_back(self) -> None:
        """Let another process try it."""
        self._study.tell(self._trial, state=TrialState.FAIL, skip_if_finished=True)


def _stem(name: str, space: Space, seed: int, whole: bool) -> str:
    content = [_FORMAT, name, seed, whole, {key: [type(one).__name__, asdict(one)] for key, one in space.items()}]
    fingerprint = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f"{re.sub('[^A-Za-z0-9_.-]+', '-', name)[:60].strip('.-') or 'study'}-{fingerprint[:16]}"


def _cut_half_line(file: Path) -> None:
    """Remove an incomplete last line, to which the next line would be appended."""
    if file.exists():
        content = read_regular(file)
        if content and not content.endswith(b"\n"):
            os.truncate(file, content.rfind(b"\n") + 1)


@contextmanager
def _held(lock: JournalFileOpenLock) -> Iterator[None]:
    lock.acquire()
    try:
        yield
    finally:
        with suppress(RuntimeError):  # another process took it because this one stalled too long
            lock.release()
