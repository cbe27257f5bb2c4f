"""Estimates of how long the remaining cells take, and their basis."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .._device import choose_device
from ..data.labelled import LabelledImages
from ..data.pools import POOL
from ..data.view_set import Kind
from ..heads.fit import fit_stack
from ..heads.problem import FeatureProblem
from ..methods.settings import FitSettings
from ..networks.trunk_cache import output_bytes
from ..networks.two_streams import TwoStreams
from ..runs.config import RunConfig
from ..runs.run_data import RunData
from ..runs.train_and_test import train_and_test
from ..runs.trunk_folder import join_images
from ..runs.trunk_store import TrunkStore
from ..training.inputs import Inputs, TensorInputs
from ..training.trainer import READ_EVERY
from .cell import Cell
from .cell_training import Workplace, config_of, draw_split
from .cell_trunks import needed_features, trunks_of
from .frozen_settings import frozen_candidates, head_settings
from .result import Attempt, DoneCell, done_cells

_FOLDS = 3  # of few-shot cross-validation with three images per class
_TRUNK_IMAGES = 8
_STACK_FITS, _STACK_STEPS = 4, 10
_FORWARD_SHARE = 1 / 3  # a step is a pass forward and about twice as much backward


@dataclass(frozen=True)
class Estimate:
    """An estimate of how long cells take.

    Attributes:
        seconds: The estimate.
        basis: What it is based on, in words.
    """

    seconds: float
    basis: str


def estimate(
    pending: Sequence[Cell], records: Sequence[Attempt], where: Workplace, workers: int, threads: int
) -> Estimate:
    """Estimate how long cells take: from finished cells, else from one training step done now.

    Args:
        pending: The cells.
        records: Attempts in the same folder.
        where: The folders of images and features, and the device.
        workers: How many cells are computed in parallel.
        threads: Threads per worker.
    """
    if not pending:
        return Estimate(0.0, "nothing is left to compute")
    if len(pools := dict.fromkeys(cell.pool for cell in pending)) > 1:  # training with a pool takes longer
        parts = [
            estimate([cell for cell in pending if cell.pool == pool], records, where, workers, threads)
            for pool in pools
        ]
        told = (f"{pool}: {part.basis}" for pool, part in zip(pools, parts, strict=True))
        return Estimate(sum(part.seconds for part in parts), "; ".join(told))
    first = pending[0]
    alike = [
        one
        for one in records
        if (one.cell.backbone, one.cell.frozen, one.cell.pool) == (first.backbone, first.frozen, first.pool)
    ]
    done = done_cells(alike)
    if done:
        workers = 1 if pending[0].frozen else workers
        seconds = sum(_from_records(cell, done) for cell in pending) / workers
        return Estimate(seconds, f"the time that {len(done)} cells in this folder took, {workers} in parallel")
    if pending[0].frozen:
        return _from_a_stack(pending, where)
    return _from_a_step(pending, where, workers, threads)


def _from_records(cell: Cell, done: Sequence[DoneCell]) -> float:
    """Estimate one cell from others, of its method if possible: training time per step, other times unchanged."""
    alike = [one.result for one in done if one.cell.method == cell.method] or [one.result for one in done]
    if cell.frozen:  # trained together: each takes its share
        return sum(one.seconds.get("select", 0.0) + one.seconds.get("train", 0.0) for one in alike) / len(alike)
    step = sum(one.seconds.get("train", 0.0) / max(one.steps, 1) for one in alike) / len(alike)
    rest = sum(one.seconds.get("test", 0.0) + one.seconds.get("features", 0.0) for one in alike) / len(alike)
    return (step * _steps(cell) + rest) * _fits(cell)


def _steps(cell: Cell) -> int:
    return int(cell.settings.get("steps", FitSettings().steps))


def _fits(cell: Cell) -> int:
    """Count the trainings of a cell: one, plus those that choose its settings."""
    folds = {"none": 0, "validation": 1, "cv": _FOLDS}[cell.select]
    return 1 + folds * int(cell.search.get("trials", 0))


def _from_a_step(pending: Sequence[Cell], where: Workplace, workers: int, threads: int) -> Estimate:
    before = torch.get_num_threads()
    try:
        trunk, images = _time_trunk(pending, where)  # before the cells, with all threads
        torch.set_num_threads(threads)
        step, row, sizes = _time_step(pending[0], where)
    finally:
        torch.set_num_threads(before)
    cells = sum((step * _steps(cell) + row * sizes["target_test"]) * _fits(cell) for cell in pending)
    if choose_device(where.device).type == "cuda":  # processes share it: together they are hardly faster than one
        workers = min(workers, torch.cuda.device_count())
    with_threads = f"{threads} thread{'s' if threads > 1 else ''}"
    basis = (
        f"one training step of {pending[0].method} done now with {with_threads} ({step:.2g} s), {workers} cells in "
        f"parallel, and {images} images through the frozen layers first ({1000 * trunk:.0f} ms each)"
    )
    return Estimate(cells / workers + trunk * images, basis)


def _from_a_stack(pending: Sequence[Cell], where: Workplace) -> Estimate:
    """Estimate from a few steps of a small stack of random features of the right shapes."""
    trunk, images = _time_trunk(pending, where)
    cell = pending[0]
    split = draw_split(cell, where)
    size = _feature_size(cell, where, len(split.classes))
    sides = [split.sides[name] for name in ("source_train", "target_train")]
    labels = [torch.tensor(side.labels) for side in sides]
    features = [torch.randn(len(side), size) for side in sides]
    pool = torch.randn(len(split.sides[POOL]), size) if POOL in split.sides else None
    problem = FeatureProblem(features[0], labels[0], features[1], labels[1], len(split.classes), pool=pool)
    settings = replace(head_settings(cell.method, cell.settings), steps=_STACK_STEPS)
    began = time.perf_counter()
    fit_stack([problem] * _STACK_FITS, [settings] * _STACK_FITS, device=choose_device(where.device))
    step = (time.perf_counter() - began) / _STACK_FITS / _STACK_STEPS
    steps = sum(head_settings(one.method, one.settings).steps * (1 + _FOLDS * _tried(one)) for one in pending)
    basis = (
        f"{_STACK_FITS} small fits of {cell.method} done now ({1000 * step:.1f} ms per step of one), and {images} "
        f"images through the network first ({1000 * trunk:.0f} ms each)"
    )
    return Estimate(step * steps + trunk * images, basis)


def _tried(cell: Cell) -> int:
    return len(frozen_candidates(cell.method, cell.settings, cell.search["space"])) if cell.search else 0


def _feature_size(cell: Cell, where: Workplace, num_classes: int) -> int:
    folder = trunks_of(cell, num_classes, where)[1]["target"]
    return output_bytes(folder.trunk, folder.spec) // 4


def _time_trunk(pending: Sequence[Cell], where: Workplace) -> tuple[float, int]:
    """Return the seconds per image in the frozen layers, and how many images have to pass through them."""
    device, total, images = choose_device(where.device), 0.0, 0
    for features, lists in needed_features(pending, where):
        missing = sum(len(features.missing(one)) for one in join_images(lists))
        spec = features.spec
        batch = torch.zeros(_TRUNK_IMAGES, spec.channels, spec.size, spec.size, device=device)
        began = time.perf_counter()
        with torch.no_grad():
            features.trunk.to(device)(batch)
        total += (time.perf_counter() - began) / _TRUNK_IMAGES * missing
        images += missing
    return total / max(images, 1), images


def _time_step(cell: Cell, where: Workplace) -> tuple[float, float, dict[str, int]]:
    """Return the seconds per step, those to classify an image, and the sizes of the split's sides."""
    split = draw_split(cell, where)
    steps = 2 * READ_EVERY if choose_device(where.device).type == "cuda" else 2  # a GPU's first ones are recorded
    config = replace(config_of(cell, cell.settings, where), steps=steps, epochs=None)
    labelled = split.sides["source_train"], split.sides["target_train"]
    data = RunData(split.classes, *labelled, None, pool=split.sides.get(POOL), protocol=cell.pool)
    trained = train_and_test(config, data, _BlankStore())
    history = trained.result.history
    seconds = history[-1]["seconds"] if history else 0.0  # a classifier on frozen features takes no steps
    return seconds, seconds * _FORWARD_SHARE / max(trained.batch_rows, 1), split.counts()


class _BlankStore(TrunkStore):
    """Returns inputs of the right shape that take almost no memory or time."""

    def place(self, config: RunConfig, model: TwoStreams, rows: int) -> str:  # noqa: ARG002 - a store's signature
        return "memory"

    def inputs(
        self,
        config: RunConfig,  # noqa: ARG002
        model: TwoStreams,
        domain: str,
        images: LabelledImages,
        place: str,  # noqa: ARG002
        rows: Sequence[int] | None = None,
    ) -> Inputs:
        spec = model.inputs[domain]
        with torch.no_grad():
            like = next(model.parameters())
            blank: Tensor = model.trunk(domain)(torch.rand(1, spec.channels, spec.size, spec.size, device=like.device))
        return TensorInputs(blank.expand(len(images) if rows is None else len(rows), *blank.shape[1:]))

    def view_inputs(
        self,
        config: RunConfig,
        model: TwoStreams,
        domain: str,
        images: LabelledImages,
        place: str,
        strength: Kind,  # noqa: ARG002
        rows: Sequence[int] | None = None,
    ) -> Inputs:
        return self.inputs(config, model, domain, images, place, rows)
