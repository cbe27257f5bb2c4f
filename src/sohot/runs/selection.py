"""Chooses among candidates by cross-validation on the labelled target images: a method, and whether to train layers.

Test images play no part: those of --target-test are not even decoded before the choice is made.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._files import holding_folder
from ..data.labelled import Progress
from ..selection.choice import AllFailed, Choice, FoldScore, choose, score_each
from ..selection.folds import Fold
from ..selection.spaces import HEAD
from ..training.errors import Interrupted, TrainingError
from ..training.ranks import Ranks
from .auto import AUTO, STAGE, SelectionFile, is_auto
from .config import RESULT_OPTIONS, RunConfig
from .frozen_head import target_folds
from .pool_selection import for_fold, select_with_pool
from .run_data import RunData, digest_names
from .train_and_test import train_fold
from .trunk_store import TrunkStore


def require_one_device(config: RunConfig) -> None:
    """Refuse several devices: a selection trains many small models, one after another, on one."""
    if config.devices > 1 or Ranks.here().several:
        raise ValueError(
            f"--method {AUTO} chooses on one device: omit --devices; to train on several, add it to "
            "the command in the report of such a run"
        )


def for_both(config: RunConfig) -> RunConfig:
    """Return a configuration that asks for training images of both domains, as the candidates of `auto` may need them.

    >>> for_both(RunConfig(method="auto", shots=3)).method, for_both(RunConfig(method="t")).method
    ('s+t', 't')
    """
    return replace(config, method="s+t", orders=None, sigma1=RunConfig.sigma1) if is_auto(config) else config


def select(
    config: RunConfig,
    configs: Mapping[str, RunConfig],
    asked: Mapping[str, Any],
    data: RunData,
    store: TrunkStore,
    progress: Progress | None = None,
) -> tuple[RunConfig, Choice | None]:
    """Choose a candidate by the labelled target images.

    In at most 5 folds every labelled target image is held out once, except in classes of one image. `choose` compares
    what the candidates say about these. Finished trainings are kept in the run's folder: the same selection, started
    again there, continues where it was killed.

    Args:
        config: What all candidates share; `out` is the run's folder.
        configs: The candidates by name.
        asked: The options that were given, as TOML values.
        data: The images that train.
        store: Keeps the trunk's outputs, also for the training that follows.
        progress: Receives the number of finished trainings, and the steps of the current one as a detail.

    Returns:
        The configuration of the chosen candidate, and the scores of all; None for these if no image can be held out, so
        that the classifier on frozen features is kept.

    Raises:
        ValueError: No class has two labelled target images, and there are no frozen features.
        ChangedRun: The folder holds another selection that was to be resumed.
        FolderInUse: Another process uses it.
        Interrupted: Ctrl-C or SIGTERM; finished trainings are kept.
        TrainingError: Every candidate failed.
    """
    folds = make_folds(config, data, needed=HEAD not in configs)
    out = config.out or Path()
    identity: dict[str, Any] = {
        "candidates": {name: result_options(one) for name, one in configs.items()},
        "data": describe_data(data),
        "folds": len(folds),
    }

    def score(name: str, number: int) -> FoldScore:
        known = kept.score(name, number)
        if known is not None:
            return known
        training = f"{name}, fold {number + 1} of {len(folds)}"
        on_step = None if progress is None else (lambda step, of: show(f"{training}, step {step} of {of}"))
        found = kept.add(name, number, train_fold(for_fold(configs[name], data), data, folds[number], store, on_step))
        show(training)
        return found

    def show(training: str) -> None:
        if progress is not None:
            progress(f"{STAGE}: {training}", len(kept), len(configs) * len(folds))

    with holding_folder(out):
        kept = SelectionFile(out, identity, asked, resume=config.resume)
        if not folds and data.pool is None:
            kept.finish(nothing_held_out(config))
            return configs[HEAD], None
        kept.write()
        try:
            if data.pool is not None:
                choice = select_with_pool(
                    configs, data, store, len(folds), lambda name: score_each([name], len(folds), score)[0]
                )
            else:
                choice = choose(score_each(configs, len(folds), score), _own_options(identity["candidates"]))
        except (Interrupted, KeyboardInterrupt) as error:
            signal = getattr(error, "signal", "SIGINT")
            cause = "Ctrl-C" if signal == "SIGINT" else signal
            raise Interrupted(
                f"stopped by {cause} while a method was being chosen; {len(kept)} of {len(configs) * len(folds)} "
                f"trainings are done and kept in {kept.file}; resume to continue",
                signal,
            ) from None
        except AllFailed as error:
            raise TrainingError(str(error)) from None
        kept.finish(choice.as_json())
    return configs[choice.chosen], choice


def make_folds(config: RunConfig, data: RunData, *, needed: bool = True) -> list[Fold]:
    """Split the labelled target images, in turn, into some that train and some that are held out.

    Args:
        config: The seed.
        data: The images.
        needed: Refuse images that cannot be held out; otherwise they make no folds.
    """
    folds = [] if data.target is None else target_folds(data.target, config.seed)
    if needed and not folds:
        raise ValueError(
            f"--method {AUTO} chooses by held-out target images, so at least one class needs two different labelled "
            "target images; otherwise name a method: --method means or --method s+t"
        )
    return folds


def nothing_held_out(config: RunConfig) -> dict[str, Any]:
    """Describe the choice of the classifier on frozen features where no labelled target image can be held out."""
    learns = is_auto(config) or config.settings().resolved_method().uses_target
    why = "no class has two labelled target images" if learns else f"--method {config.method} sees no target labels"
    reason = f"{why}, so nothing can tell whether training layers helps (--keep layers trains them)"
    return {"chosen": HEAD, "reason": reason, "folds": 0, "held_out_images": 0, "candidates": []}


def asked_options(config: RunConfig, given: Collection[str] | None) -> dict[str, Any]:
    """Return the requested options as TOML values; what to keep is still open."""
    stored = config.stored()
    names = config.changed() if given is None else given
    return {**{name: value for name, value in stored.items() if name in names}, "method": config.method}


def result_options(config: RunConfig) -> dict[str, Any]:
    """Return the options that affect a result, as TOML values."""
    stored = config.stored()
    return {name: stored.get(name) for name in RESULT_OPTIONS}


def describe_data(data: RunData) -> dict[str, Any]:
    """Describe the training images so that others can be told apart: names, classes, bytes."""
    parts = {"source": data.source, "target": data.target, "pool": data.pool}
    return {
        "classes": list(data.classes),
        **{
            domain: [digest_names(images), sum(file.stat().st_size for file in images.files)]
            for domain, images in parts.items()
            if images is not None
        },
    }


def _own_options(candidates: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the options in which candidates differ, by candidate."""
    names = dict.fromkeys(name for one in candidates.values() for name in one)
    differ = [name for name in names if len({repr(one.get(name)) for one in candidates.values()}) > 1]
    return {name: {key: one.get(key) for key in differ} for name, one in candidates.items()}
