"""Trains and tests on the sides of a split, as `sohot fit` does on folders."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..data.datasets import open_dataset
from ..data.datasets.dataset import DataSet
from ..data.labelled import LabelledImages
from ..data.protocols import POOL, make_split
from ..data.protocols.split import Split
from ..runs.config import RunConfig
from ..runs.run_data import RunData
from ..runs.shared_parts import SharedParts
from ..runs.train_and_test import TrainedModel, train_and_test
from ..runs.trunk_store import TrunkStore
from .cell import Cell
from .grid_keys import FEATURE_KEYS

FEATURES = "features"


@dataclass(frozen=True)
class Workplace:
    """Where cells are computed; it does not affect results.

    Attributes:
        root: The folder of the data set.
        out: The folder of the experiment.
        data: Options of the data set.
        device: "auto", "cpu", "cuda" or "mps".
        workers: Threads that read images; None for one per core.
    """

    root: Path
    out: Path
    data: Mapping[str, Any]
    device: str = "auto"
    workers: int | None = None


def draw_split(cell: Cell, where: Workplace) -> Split:
    """Draw the split of a cell; the last few are cached, since cells of one split follow each other."""
    return _split(
        cell.dataset,
        where.root,
        json.dumps(dict(where.data)),
        cell.protocol,
        cell.shift,
        cell.split,
        cell.pool,
        json.dumps(dict(cell.draw)),
    )


@lru_cache(maxsize=4)
def _dataset(name: str, root: Path, options: str) -> DataSet:
    return open_dataset(name, root, **json.loads(options))


@lru_cache(maxsize=8)
def _split(name: str, root: Path, options: str, protocol: str, shift: str, split: int, pool: str, draw: str) -> Split:
    return make_split(protocol, _dataset(name, root, options), shift, split, pool=pool, **json.loads(draw))


def config_of(cell: Cell, settings: Mapping[str, Any], where: Workplace) -> RunConfig:
    """Return the options of `sohot fit` for a cell."""
    own = {"method": cell.method, "backbone": cell.backbone, "device": where.device, "read_threads": where.workers}
    if cell.frozen:  # the whole network is the trunk
        settings = {name: value for name, value in settings.items() if name in FEATURE_KEYS}
        own |= {"trains": "head"}
    return RunConfig.from_values({**settings, **own, "loggers": "none"})


@lru_cache(maxsize=1)
def _parts(root: Path) -> SharedParts:
    """Return what the cells of one experiment share in this process."""
    return SharedParts(root)


def train(
    cell: Cell,
    settings: Mapping[str, Any],
    classes: Sequence[str],
    sides: Mapping[str, LabelledImages],
    test_side: str,
    where: Workplace,
) -> TrainedModel:
    """Train on the sides "source_train", "target_train", if the method uses them, and the pool; test on another.

    Args:
        cell: The cell.
        settings: Its settings, or others to try.
        classes: Names of the classes.
        sides: Images by side.
        test_side: The side to test on.
        where: The folder of shared features, and the device.
    """
    labelled = sides["source_train"], sides["target_train"]
    data = RunData(tuple(classes), *labelled, sides[test_side], pool=sides.get(POOL), protocol=cell.pool)
    store = TrunkStore(parts=_parts(where.out / FEATURES))
    return train_and_test(config_of(cell, settings, where), data, store)
