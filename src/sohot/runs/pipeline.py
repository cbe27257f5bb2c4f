"""`fit_run`: from two folders of images to a trained model with its report, in one folder."""

import json
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from shutil import rmtree
from typing import Any

import torch

from .._files import write_json
from ..methods.settings import FitSettings
from ..networks.model import TwoStreams
from ..networks.registry import find_builder
from ..selection.choice import Choice
from ..training.errors import ChangedRun
from ..training.fitting import fit
from ..training.ranks import Ranks, make_fabric, parting
from ..training.run_files import differences, read_description
from .batching import make_batches
from .building import build_model, describe_model
from .candidates import candidate_configs, is_auto
from .config import RunConfig
from .config_file import CONFIG, DESCRIPTION, write_config
from .description import REPORT, make_report
from .presets import explain_paper, is_paper, resolve_paper
from .run_data import Progress, RunData, add_test, digest_names, gather, gather_training
from .selection import asked_options, describe_data, for_both, require_one_device, result_options, select
from .selection_file import SELECTION, recall_choice
from .testing import accuracy_on
from .training_inputs import SharedInputs, cache_folder, choose_device

OWN = {CONFIG, REPORT, DESCRIPTION, SELECTION, "cache", "checkpoints", "log.csv", "tensorboard", ".lock"}

StepWatcher = Callable[[dict[str, float]], None]


class Watcher:
    """What the pipeline tells while it works; this one keeps quiet."""

    progress: Progress | None = None

    def note(self, sentence: str) -> None:
        """Take note of what a method stands for."""

    def data(self, data: RunData) -> None:
        """Take note of the data found; before a selection it comes without the images of --target-test."""

    def chosen(self, choice: Choice) -> None:
        """Take note of the method that was chosen, and why."""

    def steps(self, settings: FitSettings) -> AbstractContextManager[StepWatcher | None]:  # noqa: ARG002
        """Give what watches the steps, for the time of the training."""
        return nullcontext(None)


def fit_run(config: RunConfig, watcher: Watcher | None = None, given: Collection[str] | None = None) -> dict[str, Any]:
    """Train as a configuration says and test the last step.

    Args:
        config: The configuration; `out` names the folder of the run. Its method may be `paper` or `auto`; what these
            come to is what is stored with the run.
        watcher: Told of the data found and of each step.
        given: Names of the options that win over what `paper` and `auto` bring; None for those that differ from the
            defaults.

    Of several ranks the first one looks at the images, writes and tests.

    Returns:
        The report, as it is stored in the folder: data, settings, accuracy (None without test images), time. Empty for
        all ranks but the first.
    """
    began = time.perf_counter()
    ranks = Ranks.here()
    watcher = watcher if watcher is not None and ranks.first else Watcher()
    if is_paper(config):
        config = resolve_paper(config, given)
        watcher.note(explain_paper(config))
    if is_auto(config):
        require_one_device(config)
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    out = require_folder(config) if ranks.first else _folder(config)
    for name in (config.backbone, config.source_backbone):  # before the images are looked through
        if name is not None:
            find_builder(name)
    device = choose_device(config.device)
    shared = SharedInputs(watcher.progress)
    if is_auto(config):
        config, data = _choose(config, given, out, shared, watcher)
    else:
        if ranks.several:
            make_fabric(config.settings())  # from here on the ranks can talk
        data = ranks.from_first(lambda: gather(config, watcher.progress))
    watcher.data(data)
    # Pixels with their channels side by side: on a CPU the narrow convolutions run up to twice as fast.
    model = build_model(config, len(data.classes))
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # which torch's stubs lack
    batches = make_batches(config, data.source, data.target)
    rows = sum(len(images) for images in (data.source, data.target) if images is not None)
    cache = ranks.from_first(lambda: shared.place(config, model, rows))
    steps = None if config.epochs is None else config.epochs * batches.steps_per_epoch
    settings = config.settings(steps, from_trunk=cache != "off")
    identity = _identity(config, model, data)
    selection = None
    if ranks.first:
        selection = recall_choice(out, describe_data(data), result_options(config))
        _prepare(out, config, settings, identity)
    inputs = {
        domain: None if images is None else shared.whole(config, model, domain, images, cache)
        for domain, images in (("source", data.source), ("target", data.target))
    }
    labels = [() if images is None else images.labels for images in (data.source, data.target)]
    with parting(device), watcher.steps(settings) as on_step:
        result = fit(
            model,
            inputs["source"],
            labels[0],
            inputs["target"],
            labels[1],
            settings,
            batches=batches,
            run_dir=out,
            resume=config.resume,
            config=identity,
            on_step=on_step,
        )
    if not ranks.first:
        return {}
    accuracy = (
        None if data.test is None else accuracy_on(model.to(device), data.test, config.read_threads, watcher.progress)
    )
    report = make_report(config, data, settings, result, accuracy, time.perf_counter() - began, selection)
    write_json(out / REPORT, report)
    rmtree(cache_folder(config), ignore_errors=True)  # of no use once the run is done
    return report


def _choose(
    config: RunConfig, given: Collection[str] | None, out: Path, shared: SharedInputs, watcher: Watcher
) -> tuple[RunConfig, RunData]:
    """Choose a method by the labelled target images; only then look for images to test on."""
    candidate_configs(config, given)  # what cannot be had is said before the images are looked through
    if config.target_test is not None and not config.target_test.is_dir():
        raise FileNotFoundError(f"--target-test {config.target_test}: there is no such folder")
    data = gather_training(for_both(config), watcher.progress)
    watcher.data(data)
    if not (out / DESCRIPTION).exists():
        _write_config(out, asked_options(config, given))  # so that --resume knows what was asked for
    resolved, choice = select(config, given, data, shared, watcher.progress)
    watcher.chosen(choice)
    method = resolved.settings().resolved_method()
    if method.uses_source and method.uses_target:
        return resolved, add_test(data, resolved, watcher.progress)
    return resolved, gather(resolved, watcher.progress)


def _folder(config: RunConfig) -> Path:
    if config.out is None:
        raise ValueError("--out is missing: give a folder for the run")
    return config.out


def require_folder(config: RunConfig) -> Path:
    """Check early that the run's folder can be used: an error after an hour of work would be unkind."""
    out = _folder(config)
    if config.resume and config.target is None and not (out / DESCRIPTION).exists():
        raise ValueError(f"--out {out} holds no run to go on with")
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file, not a folder")
    if (out / DESCRIPTION).exists() and not config.resume:
        raise ChangedRun(f"--out {out} already holds a run: go on with it by --resume, or give another folder")
    if out.is_dir() and not (out / DESCRIPTION).exists():
        strange = sorted(path.name for path in out.iterdir() if path.name not in OWN)
        if strange:
            raise ValueError(f"--out {out} holds other files ({strange[0]}, …) and no run: give a folder of its own")
    return out


def _prepare(out: Path, config: RunConfig, settings: FitSettings, identity: dict[str, Any]) -> None:
    """Compare a run with the one in its folder, or begin a folder."""
    _require_same(out, settings, identity)
    if not ((out / DESCRIPTION).exists() and (out / CONFIG).exists()):  # one that never began may have left its own
        _write_config(out, config.stored())


def _write_config(out: Path, values: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_config(out / CONFIG, values, f"Repeat with: sohot fit --config {CONFIG} --out NEW_FOLDER")


def _identity(config: RunConfig, model: TwoStreams, data: RunData) -> dict[str, Any]:
    """Describe what must not change when a run is resumed, beside the settings; names below the folders, not places."""
    parts = {"source": data.source, "target": data.target}
    files = {name: None if images is None else digest_names(images) for name, images in parts.items()}
    network = describe_model(config, model)
    chosen = {name: getattr(config, name) for name in ("shots", "source_shots", "leave_out", "augment")}
    return {"network": network, "data": {**chosen, "files": files, "classes": list(data.classes)}}


def _require_same(out: Path, settings: FitSettings, identity: dict[str, Any]) -> None:
    """Refuse a changed configuration before the images pass the trunk; `fit` compares the rest."""
    if not (out / DESCRIPTION).exists():
        return
    stored = read_description(out / DESCRIPTION)
    now = json.loads(json.dumps({"settings": settings.decisive(), "config": identity}))
    if changes := [one for part, value in now.items() for one in differences(stored.get(part), value, part)]:
        raise ChangedRun(f"--out {out} holds another run, so it cannot be resumed; changed: {'; '.join(changes)}")
