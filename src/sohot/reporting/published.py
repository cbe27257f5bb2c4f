"""Published accuracies to print next to ours; averages are recomputed where the printed one does not match."""

import statistics
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from .._files import parse_toml
from ..functional.plain_checks import check_choice

AVERAGE = "average"
"""In place of a shift: the average over the shifts."""
BACKBONES = {"alexnet": "AlexNet", "vgg16": "VGG16", "resnet50": "ResNet-50", "own": "its own network"}


@dataclass(frozen=True)
class PublishedRow:
    """One published number.

    Attributes:
        method: The method: its name in sohot where it has one, else its label.
        label: Its name as printed.
        backbone: The network, by its name in sohot; "own" if it has none.
        protocol: "paper" or "rectified".
        shift: The shift, or `AVERAGE`.
        value: Accuracy on the target in per cent (or its gain, see `gain`), recomputed if single splits or shifts
            are printed.
        std: Standard deviation over the splits, if it or the splits are printed.
        splits: The accuracy of each split, if printed.
        printed: What is printed, if it differs from `value` by more than rounding.
        over: For an average: how many shifts it is over.
        varied: The setting and value that the number belongs to, such as ("target_shots", 3).
        gain: Whether the value is a difference from S+T instead of an accuracy.
    """

    method: str
    label: str
    backbone: str
    protocol: str
    shift: str
    value: float
    std: float | None = None
    splits: tuple[float, ...] = ()
    printed: float | None = None
    over: int | None = None
    varied: tuple[str, float] | None = None
    gain: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def published_names() -> list[str]:
    """Name the sets of published numbers.

    >>> published_names()
    ['office-alexnet', 'office-vgg', 'voc-sketch', 'rgbd-shots', 'sigma-sensitivity', 'office-rectified']
    """
    return list(_content())


def published(name: str) -> list[PublishedRow]:
    """Look up published numbers.

    Args:
        name: One of `published_names()`.

    Returns:
        The numbers, method by method and shift by shift, with the average over several shifts last.

    Raises:
        ValueError: There are no numbers of this name.

    Example:
        >>> average = published("office-alexnet")[-1]
        >>> average.label, average.shift, round(average.value, 2), average.printed
        ('So', 'average', 82.67, 82.68)
    """
    entries = _entry(name)["rows"]
    every = {shift for entry in entries for shift in (*entry.get("mean", ()), *entry.get("splits", ()))}
    return [row for entry in entries for row in _read_row(entry, every)]


def published_source(name: str) -> str:
    """Say where published numbers come from.

    >>> published_source("voc-sketch")
    'Koniusz, Tas and Porikli, CVPR 2017, Table 3'
    """
    source: str = _entry(name)["source"]
    return source


def stable_ranges(name: str) -> dict[str, tuple[float, float]]:
    """Return the ranges of settings in which published accuracies are reported to be stable.

    >>> stable_ranges("sigma-sensitivity")["sigma1"]
    (5e-09, 5e-08)
    """
    return {setting: (low, high) for setting, (low, high) in _entry(name).get("stable", {}).items()}


def backbone_label(backbone: str) -> str:
    """Write a backbone as publications do; for a user's own network, leave out the folder of its file.

    >>> backbone_label("vgg16"), backbone_label("timm:resnet18"), backbone_label("/data/nets/mine.py:build")
    ('VGG16', 'timm:resnet18', 'mine.py:build')
    """
    return BACKBONES.get(backbone, PurePath(backbone).name)


def _read_row(entry: dict[str, Any], every_shift: set[str]) -> list[PublishedRow]:
    names = {key: entry[key] for key in ("label", "backbone", "protocol")}
    names["method"] = entry.get("method", entry["label"])
    printed, stds = entry.get("printed", {}), entry.get("std", {})
    rows = [
        PublishedRow(**names, shift=shift, value=mean, std=stds.get(shift))
        for shift, mean in entry.get("mean", {}).items()
    ]
    for shift, splits in entry.get("splits", {}).items():
        mean, std = statistics.fmean(splits), statistics.pstdev(splits) if len(splits) > 1 else None
        other = _unless_rounding(printed.get(shift), mean)
        rows.append(PublishedRow(**names, shift=shift, value=mean, std=std, splits=tuple(splits), printed=other))
    whole = {row.shift for row in rows} == every_shift
    if len(rows) > 1 and (whole or "printed_average" in entry):  # averages some of the shifts only if its authors do
        mean = statistics.fmean(row.value for row in rows)
        other = _unless_rounding(entry.get("printed_average"), mean)
        rows.append(PublishedRow(**names, shift=AVERAGE, value=mean, printed=other, over=len(rows)))
    for shift, gains in entry.get("gains", {}).items():
        for at, gain in gains:
            rows.append(PublishedRow(**names, shift=shift, value=gain, varied=(entry["varied"], at), gain=True))
    return rows


def _unless_rounding(printed: float | None, value: float) -> float | None:
    """Return the printed value unless it is the value rounded to two places; a half may be rounded either way."""
    return printed if printed is not None and abs(printed - value) > 0.005 + 1e-9 else None


def _entry(name: str) -> dict[str, Any]:
    check_choice(name, tuple(_content()), "the name of published numbers")
    entry: dict[str, Any] = _content()[name]
    return entry


@cache
def _content() -> dict[str, Any]:
    return parse_toml(files(__package__).joinpath("published.toml").read_text(encoding="utf-8"))
