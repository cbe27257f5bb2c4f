"""A cell: one training and test of a grid, named by a hash of everything that determines its result."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..data.pools import SUPERVISED
from ..methods.registry import method
from ..methods.settings import FitSettings
from ..runs.config import POOL_OPTIONS

RESULTS_VERSION = 1
"""Part of every key; raise it when a code change alters results, so that old results are not taken for new ones."""

CELLS = "cells"
"""Folder in that of an experiment that holds the results of its cells."""

SELECTIONS = ("none", "cv", "validation")

TRIALS = 20
"""Settings tried per cell when selecting."""

MOST_TRIALS = 10_000
MOST_CELLS = 100_000
"""Limits of a grid: more than these are a slip of the pen, and would only fill the memory."""

_FILES = ("weights", "source_weights")
_OF_POOL = {*POOL_OPTIONS, "pool_views"}


@dataclass(frozen=True)
class Cell:
    """Everything that determines one result, as JSON values.

    Attributes:
        dataset: Name of the data set.
        shift: Source and target domain.
        split: Number of the split.
        method: Normalized name of the method.
        backbone: Name of the network.
        protocol: Name of the protocol that splits the images.
        draw: Numbers of the protocol that differ from its defaults, such as `{"target_shots": 5}`.
        settings: Options of `sohot fit` that differ from its defaults; see `relevant_settings`.
        frozen: Whether only a head is trained, on features that do not change.
        select: How settings are chosen: "none", "cv" (few-shot cross-validation) or "validation".
        search: The candidates: `{"space": {name: [value, …]}, "trials": n}`; empty if select is "none".
        data: Fingerprint of the images, independent of their folder.
        weights: Fingerprint of the files of weights and of users' own networks; "" if there are none.
        pool: What the unlabelled target images are: "supervised" (there are none), "transductive" or "inductive".

    Example:
        >>> cell = Cell("office31", "A-W", 1, "so", "lite0", settings={"steps": 100})
        >>> cell == Cell.from_dict(cell.as_dict()), len(cell.key)
        (True, 64)
    """

    dataset: str
    shift: str
    split: int
    method: str
    backbone: str
    protocol: str = "paper"
    draw: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    frozen: bool = False
    select: str = "none"
    search: Mapping[str, Any] = field(default_factory=dict)
    data: str = ""
    weights: str = ""
    pool: str = SUPERVISED

    @property
    def key(self) -> str:
        """The cell's name: a hash of all the above, except the locations of files (their content is in `weights`).

        It always includes the number of steps, so that results are never confused with those of another default.
        """
        content = {**self.as_dict(), "results_version": RESULTS_VERSION}
        content["settings"] = {
            name: Path(value).name if name in _FILES else value for name, value in content["settings"].items()
        }
        if not self.frozen and "epochs" not in self.settings:
            content["settings"].setdefault("steps", FitSettings.steps)
        content["backbone"] = Path(self.backbone).name
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def __hash__(self) -> int:
        return hash(self.key)

    def as_dict(self) -> dict[str, Any]:
        """Return the cell as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Cell":
        """Rebuild a cell from the output of `as_dict`."""
        return cls(**content)

    def label(self) -> str:
        """Name the cell for readers.

        >>> Cell("office31", "A-W", 2, "so", "lite0", draw={"target_shots": 5}, settings={"sigma1": 0.5}).label()
        'A-W split 2 so target_shots=5 sigma1=0.5'
        >>> Cell("office31", "A-W", 2, "so", "lite0", pool="inductive").label()
        'A-W split 2 so inductive'
        """
        pool = [] if self.pool == SUPERVISED else [self.pool]
        pairs = [f"{name}={value}" for name, value in {**self.draw, **self.settings}.items()]
        return " ".join([self.shift, "split", str(self.split), self.method, *pool, *pairs])


def relevant_settings(
    name: str, settings: Mapping[str, Any], *, frozen: bool = False, pool: str = SUPERVISED
) -> dict[str, Any]:
    """Drop the settings that a method ignores, so that `s+t` is one cell whatever σ is.

    Args:
        name: Name of the method.
        settings: Options of `sohot fit`; with `frozen` those of training on features.
        frozen: Whether the cell trains on frozen features.
        pool: What the unlabelled target images are; without any, settings for them are ignored.

    Example:
        >>> relevant_settings("s+t", {"sigma1": 1.0, "steps": 50}), relevant_settings("so", {"sigma1": 1.0})
        ({'steps': 50}, {'sigma1': 1.0})
    """
    dropped = set(method(name).ignored(on_features=frozen))
    if pool == SUPERVISED:
        dropped |= _OF_POOL
    elif settings.get("pool_weight") == 0:  # as if there were none
        dropped |= _OF_POOL - {"pool_weight"}
    if not frozen and settings.get("heads", "shared") == "shared":
        dropped.add("coupling")
    if not frozen and settings.get("optimizer", "sgd") != "sgd":
        dropped.add("momentum")
    return {key: value for key, value in settings.items() if key not in dropped}
