"""Choose settings by score: Optuna proposes, one or more processes try, and results persist in a file."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from ..methods.options import SEED, from_to
from .calibration import fit_temperature
from .choice import AllFailed, Gain
from .held_out import HeldOut
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
        accuracy: Share of held-out rows classified correctly, if these gave the score.
    """

    settings: dict[str, Any]
    score: float
    trials: int
    accuracy: float | None = None


def select(
    score: Callable[[dict[str, Any]], float | HeldOut],
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

    Settings that are scored by held-out rows are compared by the log-likelihood of these, and the default setting stays
    unless another one is clearly better: see `choose`. Settings with a number as their score: the highest wins.

    The default setting is tried first; of equal scores the earlier wins. A space with at most `trials` settings is
    tried in full; otherwise Optuna's tree-structured Parzen estimator proposes settings. Each score is saved in
    `folder` immediately: a call with the same space, name and seed resumes the selection. Several processes, even on
    several machines, may call it at the same time: they share the work and make the same choice. A setting whose
    process died is tried again.

    Args:
        score: Scores a setting: what it says about held-out rows, or a number, which is better if higher. A setting
            that raises one of `failures` or scores NaN or ±∞ has failed: it counts as tried and is never chosen.
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
        Chosen(settings={'x': -1}, score=-1.0, trials=3, accuracy=None)
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
    score: Callable[[dict[str, Any]], float | HeldOut],
    settings: dict[str, Any],
    study: SharedStudy,
    failures: tuple[type[Exception], ...],
) -> tuple[float, str | None, Sequence[float], float | None]:
    """Return the score of a setting, the reason if it failed, and what held-out rows say."""
    for known in study.tried():
        if known.settings == settings:  # proposals may repeat; scores would too
            return known.score, known.failure, known.log_likelihoods, known.accuracy
    rows: list[float] = []
    accuracy = None
    try:
        found = score(dict(settings))
        if isinstance(found, HeldOut):
            if not np.isfinite(found.logits).all():
                return -math.inf, "its logits are not finite", (), None
            accuracy = found.right / len(found)
            rows = found.log_likelihoods(fit_temperature(found)).tolist()
            found = math.fsum(rows) / len(rows)
    except failures as error:
        return -math.inf, str(error), (), None
    if not math.isfinite(found):
        return -math.inf, f"the score is {found}", (), None
    return float(found), None, rows, accuracy


def _best(tried: list[Tried]) -> Chosen:
    best = max(tried, key=lambda one: (one.score, -one.number))
    if best.failure is not None:
        raise AllFailed(f"all {len(tried)} settings tried have failed; the first failure: {best.failure}")
    default = next((one for one in tried if one.number == 0 and one.failure is None), best)
    if best.log_likelihoods and not Gain.of(np.array(best.log_likelihoods), np.array(default.log_likelihoods)).is_clear:
        best = default
    return Chosen(best.settings, best.score, len(tried), best.accuracy)


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
