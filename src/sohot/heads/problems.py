"""Problems for the stacked trainer out of arrays of float64, and the settings where a domain is missing."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..methods.settings import HeadSettings
from .domains import Features, TrainingRows
from .problem import FeatureProblem
from .result import StackedFit

Offset = npt.NDArray[np.float64]


class Problems(NamedTuple):
    """The training rows as the trainer wants them: float32, moved by a constant so that nothing is lost by it.

    Attributes:
        source: Source rows.
        source_labels: Their classes.
        target: Target rows.
        target_labels: Their classes.
        num_classes: Number of classes.
        offsets: What was subtracted from the rows of "source" and "target".
    """

    source: Tensor
    source_labels: Tensor
    target: Tensor
    target_labels: Tensor
    num_classes: int
    offsets: dict[str, Offset]

    def problem(self, target_rows: Sequence[int] | None = None) -> FeatureProblem:
        """Give the problem with all target rows, or with some of them."""
        if target_rows is None:
            return FeatureProblem(self.source, self.source_labels, self.target, self.target_labels, self.num_classes)
        rows = torch.tensor(target_rows)
        return FeatureProblem(
            self.source, self.source_labels, self.target, self.target_labels[rows], self.num_classes, target_rows=rows
        )

    def restored(self, fit: StackedFit) -> StackedFit:
        """Make a fit take raw rows, on the CPU in float64: one row or many, the numbers are the same."""
        tensors, config = fit.state()
        tensors = {name: x.double() if x.is_floating_point() else x for name, x in tensors.items()}
        for domain, offset in self.offsets.items():
            if (name := f"{domain}.mean") in tensors:
                tensors[name] += torch.from_numpy(offset)
        return StackedFit.from_state(tensors, config)


def make_problems(rows: TrainingRows) -> Problems:
    """Bring training rows to the trainer's form. One domain alone stands in both places; method "t" sees it once."""
    one = rows.source if len(rows.source) else rows.target
    labels = rows.source_labels if len(rows.source) else rows.target_labels
    both = (one, one) if rows.one_domain else (rows.source, rows.target)
    numbers = (labels, labels) if rows.one_domain else (rows.source_labels, rows.target_labels)
    offsets = _offsets(*both)
    source, target = (_moved(x, offset) for x, offset in zip(both, offsets, strict=True))
    return Problems(
        source,
        torch.tensor(numbers[0]),
        target,
        torch.tensor(numbers[1]),
        len(rows.classes),
        dict(zip(("source", "target"), offsets, strict=True)),
    )


def _offsets(source: Features, target: Features) -> tuple[Offset, Offset]:
    """Give the mean of all rows; the domains keep their distance where they have the same features."""
    means = source.mean(axis=0, dtype=np.float64), target.mean(axis=0, dtype=np.float64)
    if source.shape[1] != target.shape[1]:
        return means
    share = len(target) / (len(source) + len(target))
    pooled = (1 - share) * means[0] + share * means[1]
    return pooled, pooled


def _moved(x: Features, offset: Offset) -> Tensor:
    return torch.from_numpy((x - offset).astype(np.float32))


def plain(value: Any) -> Any:
    """Turn numpy's numbers, which a grid search brings, into Python's."""
    return value.item() if isinstance(value, np.generic) else value


def one_domain_settings(settings: HeadSettings) -> HeadSettings:
    """Give the settings of a plain classifier: one stream, nothing to align. How carefully it trains stays."""
    values = {**settings.as_json(), "method": "t", "orders": None, "sigma1": 0.0}
    values |= {"l2_sp": settings.start_pull(), "head_first": settings.share_of_head()}
    return HeadSettings.from_json({**values, "streams": "shared", "heads": "shared"})


def settings_for(rows: TrainingRows, settings: HeadSettings, *, stacklevel: int = 3) -> HeadSettings:
    """Fit the settings to the rows there are, and warn of what cannot be done.

    Args:
        rows: The training rows.
        settings: What was asked for.
        stacklevel: Whose line the warning shows.

    Returns:
        The settings; those of a plain classifier where the rows are all of one domain.

    Raises:
        ValueError: The method learns from a domain that has no labelled row.
    """
    method = settings.resolved_method()
    if rows.unlabelled and len(rows.target):
        warnings.warn(
            f"{rows.unlabelled} target rows have no label and are left out: the method learns from labelled rows alone",
            stacklevel=stacklevel,
        )
    if not rows.one_domain:
        return settings
    if rows.has_target and len(rows.source):
        if not method.uses_source:
            raise ValueError(f"method={method.name!r} learns from the target alone, and no target row has a label")
        if method.uses_target:
            warnings.warn(
                "no target row has a label, so nothing can be aligned: trained on the source alone",
                stacklevel=stacklevel,
            )
    elif rows.has_target:
        if not method.uses_target:
            raise ValueError(f"method={method.name!r} learns from the source alone, and there is no source row")
        if method.uses_source:
            warnings.warn(
                "there is no source row, so nothing can be aligned: trained on the target alone", stacklevel=stacklevel
            )
    return one_domain_settings(settings)
