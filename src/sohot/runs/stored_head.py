"""A head that `sohot fit-features` wrote: a classifier of features, and what made the features it was trained on."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from .._reading import read_json
from ..heads.result import StackedFit, read_fit
from .description import HEAD, REPORT
from .feature_network import differing
from .feature_set import FeatureSet, read_rows
from .predictions import Prediction, check_top, likeliest

LABELLED = "labelled"
"""Where the report of a head keeps the digests of the target images that trained it."""


@dataclass(frozen=True)
class StoredHead:
    """A head in memory.

    Attributes:
        path: Its folder or file.
        fit: The classifier.
        classes: Names of the classes, in the order of the logits.
        network: What made the features, see `FeatureNetwork`; empty if unknown.
    """

    path: Path
    fit: StackedFit
    classes: tuple[str, ...]
    network: dict[str, Any]

    @property
    def width(self) -> int:
        """Number of features of a row."""
        return len(self.fit.preparations["target"].mean)

    def label(self, rows: FeatureSet, top: int = 1) -> list[Prediction]:
        """Label rows of features; with the truth where a row has a label.

        Args:
            rows: The rows.
            top: How many of the most likely classes to return.

        Raises:
            ValueError: Another network made the rows, or they have another number of features.
        """
        if rows.network and self.network and (values := differing(self.network, rows.network)):
            raise ValueError(f"another network than that of {self.path} made its features: {values}")
        if rows.features.shape[1] != self.width:
            raise ValueError(f"{self.path} takes rows of {self.width} features, got {rows.features.shape[1]}")
        logits = self.fit.predict_logits(torch.from_numpy(rows.features))
        found = likeliest(map(Path, rows.files), logits, self.classes, top)
        return [replace(one, truth=name or None) for one, name in zip(found, rows.names().tolist(), strict=True)]


def read_head(path: Path) -> StoredHead:
    """Read a head from its folder or its file; no network is built, and nothing in it runs code.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It holds something else or is damaged.
    """
    file = path / HEAD if path.is_dir() else path
    fit, classes, about = read_fit(file)
    network = about.get("network") or {}
    if not isinstance(network, dict):
        raise ValueError(f"{file} is damaged: it describes the network as {network!r}")
    return StoredHead(path, fit, tuple(map(str, classes.tolist())), network)


def _read_report(file: Path) -> dict[str, Any]:
    """Read the report beside a head; empty if there is none."""
    if not file.is_file():
        return {}
    try:
        return dict(read_json(file))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file} is damaged: {error}") from None


def labelled_contents(path: Path) -> set[str] | None:
    """Return the digests of the target images that a head was trained on; None if it does not say.

    See `sohot.runs.feature_extraction.digests`.
    """
    found = _read_report((path if path.is_dir() else path.parent) / REPORT).get(LABELLED)
    return None if not isinstance(found, list) else {str(one) for one in found}


def label_files(head: StoredHead, files: list[Path], top: int = 1) -> list[Prediction]:
    """Label the rows of feature files with a head.

    Args:
        head: The head.
        files: Files that `sohot features` wrote, or other `.npz` files with an array `features`.
        top: How many of the most likely classes to return.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file does not fit the head, is damaged, or holds no features.
    """
    check_top(top, head.classes)
    predictions = []
    for file in files:
        rows = read_rows(file)
        try:
            predictions += head.label(rows, top)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
    return predictions


def describe_head(path: Path) -> dict[str, Any]:
    """Collect the facts about a head, under the names that `describe_run` uses.

    Args:
        path: Its folder, or its file alone, which knows less.
    """
    head = read_head(path)
    settings, temperature = head.fit.settings, head.fit.temperature
    training = f"trained for {settings.steps} steps" if settings.trains_network() else "a logistic regression"
    found = _read_report(path / REPORT) if path.is_dir() else {}
    return {
        "run": str(path),
        "state": f"a head on features, {training}",
        "step": settings.steps,
        "method": settings.resolved_method().name,
        "data": found.get("data"),
        "protocol": found.get("protocol"),
        "classes": list(head.classes),
        "selection": found.get("chosen"),
        "accuracy": found.get("accuracy"),
        "seconds": found.get("training_seconds"),
        "network": head.network,
        "settings": settings.as_json(),
        "versions": None,
        "command": found.get("command"),
        "calibration": None if temperature == 1 else {"temperature": temperature},
    }
