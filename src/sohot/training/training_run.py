"""`fit`: train two streams by a method, with checkpoints, logs, and a clear ending in every case."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from ..methods.settings import FitSettings
from .batch_norm import synchronised_batch_norm
from .checkpoint import Checkpoint, load_checkpoint
from .fabric import make_fabric
from .inputs import Batches, Domain, Inputs, WholeSet, fingerprint_batches
from .loop import Loop, run_loggers
from .objective import Objective
from .pool_rows import PoolDomain, PoolInputs
from .randomness import reproducible
from .ranks import Ranks
from .run_folder import RunFolder
from .streams import as_streams, require_one_input
from .trainer import Record, Trainer, compiled, restore_model


@dataclass(frozen=True)
class FitResult:
    """The result of a finished run.

    Attributes:
        model: The trained model, the one given to `fit`, in evaluation mode.
        objective: The objective with the learned ζ and the feature scale.
        steps: Number of steps done in all.
        history: The record of each step done by this call.
        seconds: Time this call took.
        resumed_from: The step this call resumed from, None if it started from scratch.
        pool: What was found out about unlabelled images, as JSON values; None without any.
    """

    model: nn.Module
    objective: Objective
    steps: int
    seconds: float
    resumed_from: int | None = None
    history: list[Record] = field(default_factory=list)
    pool: dict[str, Any] | None = None


def fit(
    model: nn.Module,
    source: Inputs | None,
    source_labels: Any,
    target: Inputs | None,
    target_labels: Any,
    settings: FitSettings | None = None,
    *,
    pool: PoolInputs | None = None,
    batches: Batches | None = None,
    run_dir: str | Path | None = None,
    resume: bool = False,
    config: Mapping[str, Any] | None = None,
    on_step: Callable[[Record], None] | None = None,
) -> FitResult:
    """Train a model.

    Processes started by `torchrun` all call it with the same arguments; they share the rows of every batch and all end
    with the same model. The first of them writes and calls `on_step`.

    Args:
        model: Two streams such as `sohot.networks.TwoStreams`; trained in place.
        source: Inputs of the source; may be None for the method "t".
        source_labels: Their classes, integers in 0 … num_classes − 1.
        target: Inputs of the target; may be None for the method "s".
        target_labels: Their classes.
        settings: The settings; None for the defaults.
        pool: Unlabelled target images to learn from, in two views; the running average of the weights is then kept.
        batches: Rows of each step; None for the whole training set at once.
        run_dir: Folder for checkpoints and logs; None to keep nothing.
        resume: Resume the run in `run_dir`, if there is one. On a CPU the final weights are bit for bit those of a run
            that was never stopped.
        config: More that must not change between a run and its resumption (backbone, folders, …), as JSON values.
        on_step: Called after each step with its record.

    Returns:
        The trained model, its objective and the history.

    Raises:
        Diverged: The loss is not a number, or is far above its first value.
        Interrupted: Ctrl-C or SIGTERM; the state is saved.
        ChangedRun: `run_dir` contains a different run.
        CheckpointError: A checkpoint cannot be written or read.
        RankLost: Another training process is gone.
    """
    began = time.perf_counter()
    settings = FitSettings() if settings is None else settings
    num_classes = as_streams(model).num_classes
    method = settings.resolved_method()
    if method.needs_pool and pool is None:
        raise ValueError(f"method {method.name!r} learns from unlabelled target images: pass a pool")
    source_domain = Domain("source", source, source_labels, num_classes) if method.uses_source else None
    target_domain = Domain("target", target, target_labels, num_classes) if method.uses_target else None
    if not method.uses_target:
        require_one_input(model, settings.from_trunk)
    if batches is None:
        batches = WholeSet(*(len(domain.inputs) if domain else 0 for domain in (source_domain, target_domain)))
    if resume and run_dir is None:
        raise ValueError("resume=True needs the run_dir of the run to resume")
    folder, checkpoint = None, None
    with ExitStack() as stack:
        fabric = make_fabric(settings)
        ranks = Ranks.here()
        stack.enter_context(synchronised_batch_norm(model, ranks, fabric.device))
        if run_dir is not None:
            given = model, source_domain, target_domain, batches, settings, config, pool
            identity = _identity(*given) if ranks.first else {}
            folder = RunFolder(Path(run_dir), identity, resume=resume, keep=settings.keep_checkpoints)
            stack.callback(folder.close)
            checkpoint = _open(folder, ranks)
        stack.enter_context(reproducible(settings.seed, fabric.device.type))
        stack.enter_context(compiled(model, settings.compile))
        trainer = Trainer(fabric, model, source_domain, target_domain, batches, settings, pool)
        stack.callback(trainer.close)
        loggers = run_loggers(settings, folder, checkpoint) if ranks.first else []
        loop = Loop(trainer, folder, settings, loggers, on_step if ranks.first else None)
        history = loop.do(checkpoint)
    model.eval()
    return FitResult(
        model=model,
        objective=trainer.objective,
        steps=settings.steps,
        seconds=time.perf_counter() - began,
        resumed_from=checkpoint.step if checkpoint else None,
        history=history,
        pool=None if trainer.pool is None else trainer.pool.summary(),
    )


def keep_solved(
    model: nn.Module,
    source: Inputs | None,
    source_labels: Any,
    target: Inputs | None,
    target_labels: Any,
    settings: FitSettings,
    *,
    run_dir: str | Path | None = None,
    resume: bool = False,
    config: Mapping[str, Any] | None = None,
) -> FitResult:
    """Keep a model that has its final weights without training, as `fit` keeps the last step.

    Of several ranks only the first may call it.

    Args:
        model: The two streams; a run that is resumed sets the weights it has stored.
        source: Inputs of the source; may be None for the method "t".
        source_labels: Their classes.
        target: Inputs of the target; may be None for the method "s".
        target_labels: Their classes.
        settings: The settings; for the checkpoint, finding the weights counts as their last step.
        run_dir: Folder for the checkpoint; None to keep nothing.
        resume: Take the run in `run_dir`, if there is one.
        config: More that must not change between a run and its resumption, as JSON values.
    """
    began = time.perf_counter()
    num_classes, method = as_streams(model).num_classes, settings.resolved_method()
    source_domain = Domain("source", source, source_labels, num_classes) if method.uses_source else None
    target_domain = Domain("target", target, target_labels, num_classes) if method.uses_target else None
    if not method.uses_target:
        require_one_input(model, settings.from_trunk)
    objective = Objective(method, num_classes, settings, None)
    checkpoint = None
    if run_dir is not None:
        batches = WholeSet(*(len(domain.inputs) if domain else 0 for domain in (source_domain, target_domain)))
        identity = _identity(model, source_domain, target_domain, batches, settings, config)
        folder = RunFolder(Path(run_dir), identity, resume=resume, keep=settings.keep_checkpoints)
        with closing(folder):
            checkpoint = folder.open()
            if checkpoint is None:
                folder.save(settings.steps, {"model": model.state_dict(), "objective": {}, "optimizer": {}}, {})
            else:
                restore_model(model, checkpoint)
    model.eval()
    resumed_from = checkpoint.step if checkpoint else None
    return FitResult(model, objective, 0, time.perf_counter() - began, resumed_from)


def _open(folder: RunFolder, ranks: Ranks) -> Checkpoint | None:
    """Let the first rank create or check the folder; give every rank the checkpoint to resume from."""
    checkpoint = folder.open() if ranks.first else None
    newest = ranks.from_first(lambda: None if checkpoint is None else checkpoint.folder.name)
    return checkpoint if ranks.first or newest is None else load_checkpoint(folder.checkpoints / newest)


def _identity(
    model: nn.Module,
    source: Domain | None,
    target: Domain | None,
    batches: Batches,
    settings: FitSettings,
    config: Mapping[str, Any] | None,
    pool: PoolInputs | None = None,
) -> dict[str, Any]:
    """Describe what identifies a run; a resumed run must have the same."""
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    layout = [[name, list(tensor.shape), name in trained] for name, tensor in model.state_dict().items()]
    return {
        "settings": settings.decisive(),
        "data": {
            "source": source and source.fingerprint(),
            "target": target and target.fingerprint(),
            "batches": fingerprint_batches(batches, settings.steps),
            **({} if pool is None else {"pool": PoolDomain("pool", pool.weak).fingerprint()}),
        },
        "model": {
            "kind": type(model).__name__,
            "tensors": len(layout),
            "trained": len(trained),
            "layout": hashlib.sha256(json.dumps(layout).encode()).hexdigest()[:16],
        },
        "config": dict(config or {}),
    }
