"""Computes a cell: trains on a split of a protocol, with given or chosen settings, and tests the last step."""

import gc
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from .._device import choose_device
from ..data.pools import POOL
from ..data.protocols.cross_validation import few_shot_folds, hold_out
from ..data.protocols.split import Split
from ..runs.train_and_test import TrainedModel
from ..selection.choice import AllFailed
from ..selection.held_out import HeldOut
from ..training.errors import Diverged, TrainingError
from .cell import Cell
from .cell_training import Workplace, config_of, draw_split, train
from .result import CellResult, ChosenSettings, Curve

__all__ = ["Workplace", "run_cell"]

SELECTION = "selection"
CURVES = ("loss", "cross_entropy", "alignment")
MOST_POINTS = 100
ROOM = 0.25
"""Share of a GPU's memory that a process leaves free between its cells, for the others that share it."""


def run_cell(cell: Cell, where: Workplace) -> CellResult:
    """Train and test a cell.

    Args:
        cell: The cell.
        where: The folders of its images and shared features.

    Returns:
        Accuracy, learned class weights, curves, times, sizes and notes.
    """
    result = _train_and_test(cell, where)
    _make_room(choose_device(where.device))
    return result


def _train_and_test(cell: Cell, where: Workplace) -> CellResult:
    split = draw_split(cell, where)
    settings, chosen, selecting = dict(cell.settings), None, 0.0
    if cell.select != "none":
        began = time.perf_counter()
        chosen = _select(cell, split, where)
        settings |= chosen.settings
        selecting = time.perf_counter() - began
    done = train(cell, settings, split.classes, split.sides, "target_test", where)
    return CellResult(
        accuracy=done.tested(),
        zeta=done.result.objective.learned_weights(),
        curve=_curve(done.result.history),
        chosen=chosen,
        seconds={**done.seconds._asdict(), "select": selecting},
        steps=done.result.steps,
        sizes={**done.sizes._asdict(), **({"pool": len(split.sides[POOL])} if POOL in split.sides else {})},
        notes=[*split.notes, *done.notes, *_collapse(done)],
    )


def _collapse(done: TrainedModel) -> list[str]:
    """Say why training stopped to learn from the pool, if it did."""
    told = (done.result.pool or {}).get("collapse")
    return [str(told)] if told else []


def _select(cell: Cell, split: Split, where: Workplace) -> ChosenSettings:
    """Choose settings by what they say about held-out shots, or about the validation images."""
    from ..selection.search import select  # Optuna is slow to import

    labelled = split.sides["target_train"]
    folds = [(labelled, split.sides["validation"])] if cell.select == "validation" else few_shot_folds(labelled)
    problems = [hold_out(split, train, held) for train, held in folds]

    def score(settings: dict[str, Any]) -> HeldOut:
        merged = {**cell.settings, **settings}
        found = []
        for sides in problems:
            logits = train(cell, merged, split.classes, sides, "validation", where).logits
            assert logits is not None  # there are images to validate on
            found.append(HeldOut(logits.numpy(), np.asarray(sides["validation"].labels)))
        return HeldOut.join(found)

    space, config = cell.search["space"], config_of(cell, cell.settings, where)
    given = {name: getattr(config.settings(), name, None) for name in space}
    default = {name: value for name, value in given.items() if isinstance(space[name], list) and value in space[name]}
    try:
        chosen = select(
            score,
            space,
            folder=where.out / SELECTION,
            name=cell.key,
            trials=cell.search["trials"],
            seed=0,
            default=default,  # the grid's own settings are among those tried
            failures=(Diverged,),
        )
    except AllFailed as error:
        raise TrainingError(str(error)) from None
    return ChosenSettings(dict(chosen.settings), chosen.accuracy or 0.0, chosen.trials)


def _curve(history: Sequence[Mapping[str, float]]) -> Curve:
    """Return the losses of at most 100 evenly spaced steps, including the first and the last."""
    chosen = [history[place] for place in curve_steps(len(history))]
    curve: dict[str, list[float | None]] = {"step": [int(record["step"]) for record in chosen]}
    for name in CURVES:
        values = [record.get(name, math.nan) for record in chosen]
        curve[name] = [value if math.isfinite(value) else None for value in values]
    return curve


def curve_steps(steps: int) -> list[int]:
    """Choose at most 100 evenly spaced steps, including the first and the last.

    >>> curve_steps(3), len(curve_steps(250)), curve_steps(250)[-1]
    ([0, 1, 2], 100, 249)
    """
    count = min(steps, MOST_POINTS)
    return sorted({round(place * (steps - 1) / max(count - 1, 1)) for place in range(count)})


def _make_room(device: torch.device) -> None:
    """Return memory of a GPU that is not in use, if little is free: other processes may need it."""
    if device.type != "cuda":
        return
    free, total = torch.cuda.mem_get_info(device)
    if free < ROOM * total:
        gc.collect()
        torch.cuda.empty_cache()
