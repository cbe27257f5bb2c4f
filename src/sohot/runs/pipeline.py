"""`fit_run`: from two folders of images to a trained model with its report, in one folder."""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from torch import Tensor

from .._device import choose_device, use_threads
from .._files import holding_folder, is_leftover, remove_leftovers, write_json, write_toml
from ..data.labelled import Progress
from ..methods.settings import FitSettings
from ..networks.two_streams import TwoStreams
from ..selection.calibration import Calibration, Effect
from ..selection.choice import Choice
from ..selection.held_out import HeldOut
from ..training.errors import ChangedRun
from ..training.fabric import make_fabric
from ..training.ranks import Ranks
from ..training.run_folder import require_same
from .auto import SELECTION, candidates_of, head_of, is_auto, read_held_out, recall_choice
from .calibration_file import CALIBRATION, read_calibration, write_calibration
from .config import BETTER, LAYERS, RunConfig
from .description import CONFIG, DESCRIPTION, POOL_LABELS, REPORT, make_report
from .frozen_head import has_frozen_head, is_solved
from .launcher import check_room, end_with_parent, launch, needs_launch
from .pool_defaults import has_pool, with_pool_defaults
from .predictions import labels_of, predictions_of, write_predictions
from .presets import explain_paper, is_paper, resolve_paper
from .run_data import RunData, add_test, digest_names, gather, gather_training
from .run_model import describe_model
from .run_outputs import OUTPUTS, target_logits, write_outputs
from .selection import asked_options, describe_data, for_both, require_one_device, result_options, select
from .split_file import SPLIT, write_run_split
from .statistics_choice import choose_statistics
from .train_and_test import StepWatcher, TrainedModel, train_and_test
from .trunk_outputs import cache_folder
from .trunk_store import TrunkStore

PREDICTIONS = "predictions.csv"
"""What the run says about each test image."""

OWN = {
    *(CONFIG, REPORT, DESCRIPTION, SELECTION, SPLIT, PREDICTIONS, POOL_LABELS, OUTPUTS, CALIBRATION),
    *("cache", "checkpoints", "inputs", "log.csv", "tensorboard", ".lock"),
}


class Watcher:
    """Receives reports from the pipeline while it works; this one ignores them."""

    progress: Progress | None = None

    def note(self, sentence: str) -> None:
        """Receive what the user should know: what a method stands for, or what does not fit."""

    def data(self, data: RunData) -> None:
        """Receive the data found; before a selection without the images of --target-test."""

    def chosen(self, choice: Choice) -> None:
        """Receive the chosen method, and why."""

    def steps(self, settings: FitSettings) -> AbstractContextManager[StepWatcher | None]:  # noqa: ARG002
        """Return the watcher of the steps, for the duration of training."""
        return nullcontext(None)


def fit_run(config: RunConfig, watcher: Watcher | None = None, given: Collection[str] | None = None) -> dict[str, Any]:
    """Train according to a configuration and test the last step.

    Args:
        config: The configuration; `out` names the folder of the run. Its method may be `paper` or `auto`; the run
            stores what these resolve to.
        watcher: Receives the data found and each step.
        given: Names of the options that override those of `paper` and `auto`; None for those that differ from the
            defaults.

    For several devices it starts one process each, unless `torchrun` did so. Of several ranks the first one scans the
    images, writes and tests.

    Returns:
        The report, as stored in the folder: data, settings, accuracy (None without test images), time. Empty for all
        ranks but the first, and if separate processes did the work.

    Raises:
        RanksFailed: A process started for the run failed.
    """
    began = time.perf_counter()
    ranks = Ranks.here()
    watcher = watcher if watcher is not None and ranks.first else Watcher()
    if is_paper(config):
        config = resolve_paper(config, given)
        watcher.note(explain_paper(config))
    config = with_pool_defaults(config, given)
    if is_auto(config):
        require_one_device(config)
    check_room(config)
    if needs_launch(config):
        launch(config)
        return {}
    end_with_parent()
    use_threads(config.threads)
    with _owned_folder(config) if ranks.first else nullcontext(_folder(config)) as out:
        return _fit_in(out, config, watcher, given, began)


def _fit_in(
    out: Path, config: RunConfig, watcher: Watcher, given: Collection[str] | None, began: float
) -> dict[str, Any]:
    """Train and test in a folder that is ours."""
    ranks = Ranks.here()
    config.require_places()  # before the images are scanned
    choose_device(config.device)
    store = TrunkStore(progress=watcher.progress, tell=watcher.note)
    config, compares_head = _plan(config, given, watcher)
    if is_auto(config) or compares_head:
        config, data = _choose(config, given, out, store, watcher, head=compares_head)
    else:
        if ranks.several:
            make_fabric(config.settings())  # from here on the ranks can communicate
        data = ranks.from_first(lambda: gather(config, watcher.progress))
        config = _with_statistics(config, data, store, watcher)
    watcher.data(data)
    selection = recall_choice(out, describe_data(data), result_options(config)) if ranks.first else None

    def begin(model: TwoStreams, settings: FitSettings) -> dict[str, Any]:
        identity = _identity(config, model, data)
        if ranks.first:
            _prepare(out, config, settings, identity)
            write_run_split(out, data.classes, data.sides())
        return identity

    trained = train_and_test(config, data, store, begin=begin, steps=watcher.steps, progress=watcher.progress)
    if not ranks.first:
        return {}
    held_out = _held_out_of_kept(out, trained, selection)
    if held_out is not None:
        write_calibration(out, held_out)
    calibration = read_calibration(out)
    accuracy = _accuracy(data, trained, calibration)
    seconds = time.perf_counter() - began
    report = make_report(config, data, trained, accuracy, seconds, selection)
    temperature = 1.0 if calibration is None else calibration.temperature
    _write_outputs(out, data, trained, temperature)
    if data.pool is not None:
        labels = labels_of(data.pool, _pool_logits(config, data, trained, watcher.progress), data.classes, temperature)
        write_predictions(out / POOL_LABELS, labels, top=2)
    write_json(out / REPORT, report)
    rmtree(cache_folder(config), ignore_errors=True)  # useless once the run is done
    return report


def _held_out_of_kept(out: Path, trained: TrainedModel, selection: Mapping[str, Any] | None) -> HeldOut | None:
    """Return what was kept says about held-out target images; None if it was never asked about any."""
    if trained.start is not None and trained.solved:
        return trained.start.held_out
    return None if selection is None else read_held_out(out)


def _accuracy(data: RunData, trained: TrainedModel, calibration: Calibration | None) -> dict[str, Any] | None:
    """Return the accuracy on the test images, and how honest the probabilities are, as JSON values."""
    if trained.evaluation is None:
        return None
    accuracy = trained.evaluation.as_json()
    if data.test is not None and trained.outputs is not None and trained.outputs.logits is not None:
        rows = HeldOut(trained.outputs.logits.numpy(), np.array(data.test.labels))
        accuracy["calibration"] = Effect.of(rows, calibration)._asdict()
    return accuracy


def _write_outputs(out: Path, data: RunData, trained: TrainedModel, temperature: float) -> None:
    """Store what the model makes of its images, so that nobody has to show them to it again."""
    if trained.outputs is None:
        return
    write_outputs(out, trained.outputs)
    if data.test is not None and trained.outputs.logits is not None:
        write_predictions(out / PREDICTIONS, predictions_of(data.test, trained.outputs.logits, temperature), top=2)


def _pool_logits(config: RunConfig, data: RunData, trained: TrainedModel, progress: Progress | None) -> Tensor:
    """Return the logits of the unlabelled images; a classifier on frozen features trained without them."""
    assert data.pool is not None
    if trained.outputs is not None and trained.outputs.pool_logits is not None:
        return trained.outputs.pool_logits
    if data.test is not None and trained.logits is not None and data.test.files == data.pool.files:
        return trained.logits
    return target_logits(trained.model, data.pool, config.read_threads, progress)


def _plan(config: RunConfig, given: Collection[str] | None, watcher: Watcher) -> tuple[RunConfig, bool]:
    """Resolve what can be resolved without looking at images; tell whether to compare with frozen features."""
    asked = config.trains == "head"
    if not (asked or config.keep == BETTER) or not has_frozen_head(config):
        return config, False
    if not asked and Ranks.here().several:
        watcher.note("several devices train layers without comparing them with a classifier on frozen features")
        return replace(config, keep=LAYERS), False
    if not asked:
        return config, True
    found = head_of(config)
    if found.method != config.method.strip().lower() and "method" in (config.changed() if given is None else given):
        watcher.note(
            f"with --trains head nothing below the classifier trains, so --method {config.method} comes to a logistic "
            f"regression on frozen features (--method {found.method})"
        )
    return found, False


def _choose(
    config: RunConfig, given: Collection[str] | None, out: Path, store: TrunkStore, watcher: Watcher, *, head: bool
) -> tuple[RunConfig, RunData]:
    """Choose by the labelled target images; only then look for test images."""
    pool = has_pool(config)
    candidates_of(config, given, head=head, pool=pool)  # refuses what does not fit before images are scanned
    data = gather_training(for_both(config), watcher.progress)
    watcher.data(data)
    asked = asked_options(config, given)
    if not (out / DESCRIPTION).exists():
        _write_config(out, asked)  # so that --resume knows the request
    config = _with_statistics(config, data, store, watcher)
    configs = {one.name: one.settings for one in candidates_of(config, given, head=head, pool=pool)}
    resolved, choice = select(config, configs, asked, data, store, watcher.progress)
    if choice is not None:
        watcher.chosen(choice)
    method = resolved.settings().resolved_method()
    if (method.uses_source, method.uses_target) == (data.source is not None, data.target is not None):
        return resolved, add_test(data, resolved, watcher.progress)
    return resolved, gather(resolved, watcher.progress)


def _with_statistics(config: RunConfig, data: RunData, store: TrunkStore, watcher: Watcher) -> RunConfig:
    """Resolve what batch normalisation uses, and say why."""
    chosen = choose_statistics(config, data, store)
    if chosen.reason is not None:
        data.notes.append(chosen.reason)
        watcher.note(chosen.reason)
    return chosen.config


def _folder(config: RunConfig) -> Path:
    if config.out is None:
        raise ValueError("--out is missing: give a folder for the run")
    return config.out


def require_folder(config: RunConfig) -> Path:
    """Check early that the run's folder is usable, not after an hour of work."""
    out = _folder(config)
    if config.resume and config.target is None and not (out / DESCRIPTION).exists():
        raise ValueError(f"--out {out} holds no run to resume")
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file, not a folder")
    if (out / DESCRIPTION).exists() and not config.resume:
        raise ChangedRun(f"--out {out} already holds a run: continue it with --resume, or give another folder")
    if out.is_dir() and not (out / DESCRIPTION).exists():
        strange = sorted(path.name for path in out.iterdir() if path.name not in OWN and not is_leftover(path))
        if strange:
            raise ValueError(f"--out {out} holds other files ({strange[0]}, …) and no run: give a new or empty folder")
    return out


@contextmanager
def _owned_folder(config: RunConfig) -> Iterator[Path]:
    """Check the run's folder and lock it, from before the first file is written until the last one is."""
    out = require_folder(config)
    with holding_folder(out):
        require_folder(config)  # again: another process may have had it until now
        remove_leftovers(out)
        yield out


def _prepare(out: Path, config: RunConfig, settings: FitSettings, identity: dict[str, Any]) -> None:
    """Compare a run with the one in its folder before images pass the trunk (`fit` compares all), or start a folder."""
    if (out / DESCRIPTION).exists():
        require_same(out / DESCRIPTION, {"settings": settings.decisive(), "config": identity}, f"--out {out}")
    if not ((out / DESCRIPTION).exists() and (out / CONFIG).exists()):  # a run that never began may have left one
        _write_config(out, config.stored())


def _write_config(out: Path, values: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_toml(out / CONFIG, values, f"Repeat with: sohot fit --config {CONFIG} --out NEW_FOLDER")


def _identity(config: RunConfig, model: TwoStreams, data: RunData) -> dict[str, Any]:
    """Describe what must not change on resume, besides the settings; image names are relative to their folders."""
    parts = {"source": data.source, "target": data.target}
    files = {name: None if images is None else digest_names(images) for name, images in parts.items()}
    if data.pool is not None:
        files["pool"] = digest_names(data.pool)
    network = describe_model(config, model)
    steps = {"solved": True} if is_solved(model) else {}
    chosen = {name: getattr(config, name) for name in ("shots", "source_shots", "leave_out", "augment")}
    return {"network": network, "data": {**chosen, "files": files, "classes": list(data.classes)}, **steps}
