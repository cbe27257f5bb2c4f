"""Choose settings by score: Optuna proposes, one or more processes try, and results persist in a file."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import optuna

from ..methods.options import SEED, from_to
from .choice import AllFailed
from .search_space import parse_space
from .study import SharedStudy, Tried

__all__ = ["Chosen", "Tried", "parse_space", "select"]

TRIALS = from_to(1, 10**5)


@dataclass(frozen=True)
class Chosen:
    """The best setting.

    Attributes:
        settings: The setting, in values that JSON can hold.
        score: Its score.
        trials: Number of settings tried, over all processes.
    """

    settings: dict[str, Any]
    score: float
    trials: int


def select(
    score: Callable[[dict[str, Any]], float],
    space: Mapping[str, Any],
    *,
    folder: str | PathLike[str],
    name: str,
    trials: int,
    seed: int,
    default: Mapping[str, Any] | None = None,
    failures: tuple[type[Exception], ...] = (),
    on_trial: Callable[[Tried], None] | None = None,
) -> Chosen:
    """Choose the setting with the highest score.

    The default setting is tried first; of equal scores the earlier wins. A space with at most `trials` settings is
    tried in full; otherwise Optuna's tree-structured Parzen estimator proposes settings. Each score is saved in
    `folder` immediately: a call with the same space, name and seed resumes the selection. Several processes, even on
    several machines, may call it at the same time: they share the work and make the same choice. A setting whose
    process died is tried again.

    Args:
        score: Scores a setting; higher is better. A setting that raises one of `failures` or scores NaN or
            ±∞ has failed: it counts as tried and is never chosen.
        space: The choices or range of each setting; see `parse_space`.
        folder: Folder of the studies; the same for all processes.
        name: Name of the selection.
        trials: Number of settings to try, over all processes.
        seed: Random seed. A process working alone repeats the same settings with the same seed.
        default: The setting to try first; see `parse_space`.
        failures: Errors that count as a failed setting; any other ends the search.
        on_trial: Called after each setting that this process tried.

    Raises:
        ValueError: The space, a number or the file in the folder is invalid.
        AllFailed: Every setting failed.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     select(lambda s: -s["x"] ** 2, {"x": [3, -1, 2]}, folder=folder, name="parabola", trials=5, seed=0)
        Chosen(settings={'x': -1}, score=-1.0, trials=3)
    """
    TRIALS.check(trials, "trials")
    SEED.check(seed, "seed")
    with _quiet_optuna(), SharedStudy(Path(folder), name, parse_space(space, default), trials, seed) as study:
        while (attempt := study.take()) is not None:
            try:
                tried = attempt.finish(*_score(score, attempt.settings, study, failures))
            except BaseException:
                attempt.give_back()
                raise
            if on_trial is not None:
                on_trial(tried)
        return _best(study.tried())


def _score(
    score: Callable[[dict[str, Any]], float],
    settings: dict[str, Any],
    study: SharedStudy,
    failures: tuple[type[Exception], ...],
) -> tuple[float, str | None]:
    """Return the score of a setting, and the reason if it failed."""
    for known in study.tried():
        if known.settings == settings:  # proposals may repeat; scores would too
            return known.score, known.failure
    try:
        found = float(score(dict(settings)))
    except failures as error:
        return -math.inf, str(error)
    return (found, None) if math.isfinite(found) else (-math.inf, f"the score is {found}")


def _best(tried: list[Tried]) -> Chosen:
    best = max(tried, key=lambda one: (one.score, -one.number))
    if best.failure is not None:
        raise AllFailed(f"all {len(tried)} settings tried have failed; the first failure: {best.failure}")
    return Chosen(best.settings, best.score, len(tried))


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
