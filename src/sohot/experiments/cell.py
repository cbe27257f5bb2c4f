"""A cell: one training and test of a grid, named by the hash of all that determines its result."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..methods.registry import method
from ..methods.settings import FitSettings

RESULTS_VERSION = 1
"""Part of every key; raise it when a change of the program changes results, so that old ones are not taken for new."""

SELECTIONS = ("none", "cv", "validation")

TRIALS = 20
"""Settings tried per cell where they are chosen."""

_FILES = ("weights", "source_weights")


@dataclass(frozen=True)
class Cell:
    """All that determines one result, in values that JSON holds.

    Attributes:
        dataset: Name of the data set.
        shift: From which domain to which.
        split: Number of the split.
        method: Name of the method, in its one spelling.
        backbone: Name of the network.
        protocol: Name of the protocol that divides the images.
        draw: Numbers of the protocol that differ from its own, such as `{"target_shots": 5}`.
        settings: Options of `sohot fit` that differ from its defaults; see `relevant_settings`.
        frozen: Whether only a head is trained, on features that do not change.
        select: How settings are chosen: "none", "cv" (few-shot cross-validation) or "validation".
        search: What they are chosen from: `{"space": {name: [value, …]}, "trials": n}`; empty where select is "none".
        data: Fingerprint of the images, whatever folder they lie in.
        weights: Fingerprint of files of weights and networks of one's own; "" where there are none.

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

    @property
    def key(self) -> str:
        """The cell's name: a hash of all the above, the places of files aside (their content is in `weights`).

        The number of steps is always part of it, so that results are never taken for those of another default.
        """
        content = {**self.as_dict(), "results_version": RESULTS_VERSION}
        content["settings"] = {
            name: Path(value).name if name in _FILES else value for name, value in content["settings"].items()
        }
        if not self.frozen and "epochs" not in self.settings:
            content["settings"].setdefault("steps", FitSettings.steps)  # the default was 200 once
        content["backbone"] = Path(self.backbone).name
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def __hash__(self) -> int:
        return hash(self.key)

    def as_dict(self) -> dict[str, Any]:
        """Give the cell as JSON holds it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Cell":
        """Rebuild a cell from what `as_dict` gave; what later versions may have added is left aside."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in content.items() if name in known})

    def label(self) -> str:
        """Name the cell for people.

        >>> Cell("office31", "A-W", 2, "so", "lite0", draw={"target_shots": 5}, settings={"sigma1": 0.5}).label()
        'A-W split 2 so target_shots=5 sigma1=0.5'
        """
        pairs = [f"{name}={value}" for name, value in {**self.draw, **self.settings}.items()]
        return " ".join([self.shift, "split", str(self.split), self.method, *pairs])


def relevant_settings(name: str, settings: Mapping[str, Any], *, frozen: bool = False) -> dict[str, Any]:
    """Leave out the settings that a method does not look at, so that `s+t` is one cell whatever σ is.

    Args:
        name: Name of the method.
        settings: Options of `sohot fit`; with `frozen` those of training on features.
        frozen: Whether they are of a cell on frozen features.

    Example:
        >>> relevant_settings("s+t", {"sigma1": 1.0, "steps": 50}), relevant_settings("so", {"sigma1": 1.0})
        ({'steps': 50}, {'sigma1': 1.0})
    """
    dropped = set(method(name).ignored(on_features=frozen))
    if not frozen and settings.get("heads", "shared") == "shared":
        dropped.add("coupling")
    if not frozen and settings.get("optimizer", "sgd") != "sgd":
        dropped.add("momentum")
    return {key: value for key, value in settings.items() if key not in dropped}
