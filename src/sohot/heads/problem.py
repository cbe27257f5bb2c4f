"""The data of a fit: labelled features of a source and a target, or of the only domain, and unlabelled ones."""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..functional.checks import check_features, check_finite, check_label_range, check_labels
from ..functional.plain_checks import check_count
from ..methods.registry import Method
from ..methods.settings import HeadSettings
from ..selection.folds import Fold

if TYPE_CHECKING:  # it imports scikit-learn, which those who train on images do without
    from .domains import DomainRows, Features

Offset = npt.NDArray[np.float64]


class ChosenRows(NamedTuple):
    """Labelled rows of a feature tensor that other problems may share."""

    features: Tensor  # (all rows, d)
    chosen: Tensor | None  # the rows to use, None for all
    labels: Tensor  # one for each chosen row

    def of(self, features: Tensor) -> Tensor:
        """Select the chosen rows from the features, or from a copy of them on another device."""
        return features if self.chosen is None else features[self.chosen.to(features.device)]


@dataclass(frozen=True, eq=False)
class FeatureProblem:
    """Labelled features of two domains, and unlabelled ones of the target.

    Many problems may come from the same images (splits, folds): with `source_rows` and `target_rows` they share one
    tensor of features and each holds only its row numbers; see `from_rows`.

    Attributes:
        source: Source features, (n, d); with `source_rows` the tensor the rows are taken from.
        source_labels: Class of each source row, integers in 0 … num_classes − 1.
        target: Target features, (m, d2). d2 may differ from d if each domain has its own network.
        target_labels: Class of each target row.
        num_classes: Number of classes; a class may be missing from either domain.
        source_rows: Rows of `source` to use, in the order of `source_labels`; None for all.
        target_rows: Rows of `target` to use; None for all.
        pool: Target features without labels, (u, d2); None for none.

    Example:
        >>> problem = FeatureProblem(torch.zeros(4, 8), torch.tensor([0, 1, 0, 1]), torch.ones(2, 8), torch.tensor([0, 1]), 2)
        >>> problem.sizes
        (4, 2)
    """  # noqa: E501

    source: Tensor
    source_labels: Tensor
    target: Tensor
    target_labels: Tensor
    num_classes: int
    source_rows: Tensor | None = None
    target_rows: Tensor | None = None
    pool: Tensor | None = None

    def __post_init__(self) -> None:
        check_count(self.num_classes, "num_classes")
        for domain in ("source", "target"):
            features, labels, rows = (getattr(self, domain + end) for end in ("", "_labels", "_rows"))
            check_features(features, domain)
            check_finite(features, domain)
            if rows is not None:
                check_labels(rows, rows, (f"{domain}_rows", f"{domain}_rows"))
                if rows.numel() == 0 or int(rows.min()) < 0 or int(rows.max()) >= len(features):
                    raise ValueError(f"{domain}_rows must be row numbers of {domain} in 0 … {len(features) - 1}")
            check_labels(labels, features if rows is None else rows, (f"{domain}_labels", domain))
            check_label_range(labels, self.num_classes, f"{domain}_labels")
        if self.pool is not None:
            check_features(self.pool, "pool")
            check_finite(self.pool, "pool")
            if self.pool.shape[1] != self.target.shape[1]:
                raise ValueError(
                    f"pool must have {self.target.shape[1]} features, as target has, got {self.pool.shape[1]}"
                )

    @classmethod
    def from_rows(
        cls, features: Tensor, labels: Tensor, source_rows: Tensor, target_rows: Tensor, num_classes: int
    ) -> "FeatureProblem":
        """Take both domains from one tensor of features with a label for each row.

        >>> features, labels = torch.randn(6, 3), torch.tensor([0, 1, 0, 1, 0, 1])
        >>> FeatureProblem.from_rows(features, labels, torch.arange(4), torch.tensor([4, 5]), 2).target_labels
        tensor([0, 1])
        """
        chosen = source_rows.long(), target_rows.long()
        return cls(features, labels[chosen[0]], features, labels[chosen[1]], num_classes, *chosen)

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of source rows and of target rows."""
        return len(self.source_labels), len(self.target_labels)

    @property
    def dtype(self) -> torch.dtype:
        """Training precision: that of the features, at least float32."""
        return torch.promote_types(torch.promote_types(self.source.dtype, self.target.dtype), torch.float32)

    def without(self, fold: Fold) -> "FeatureProblem":
        """Train without the held-out target rows of a fold; they join the pool, if there is one."""
        kept, held = (torch.tensor(rows) for rows in fold)
        if self.target_rows is not None:
            kept, held = self.target_rows[kept], self.target_rows[held]
        pool = None if self.pool is None else torch.cat([self.pool, self.target[held]])
        return replace(self, target_labels=self.target_labels[torch.tensor(fold.train)], target_rows=kept, pool=pool)

    def with_and_without_pool(self, *settings: HeadSettings) -> "list[FeatureProblem]":
        """Return the problem and the same without its pool; only the latter if no fit looks at the pool."""
        bare = self if self.pool is None else replace(self, pool=None)
        return [bare] if all(self.pool_seen_by(one) is None for one in settings) else [self, bare]

    def seen_by(self, method: Method) -> tuple[ChosenRows | None, ChosenRows]:
        """Return the source rows and the target rows that a method learns from.

        A domain that the method does not use is left out, so that its features have no influence. The rows of a single
        domain go through the target's network.
        """
        source = ChosenRows(self.source, self.source_rows, self.source_labels)
        target = ChosenRows(self.target, self.target_rows, self.target_labels)
        if not method.uses_source:
            return None, target
        if not method.uses_target:
            if self.source.shape[1] != self.target.shape[1]:
                raise ValueError(
                    "the method 's' trains the target's network on source rows, but their feature sizes differ: "
                    f"{self.source.shape[1]} and {self.target.shape[1]}"
                )
            return None, source
        return source, target

    def pool_seen_by(self, settings: HeadSettings) -> Tensor | None:
        """Return the unlabelled rows that a fit learns from; None if it does not look at them."""
        return self.pool if settings.pool_weight and settings.resolved_method().uses_target else None


def make_problem(rows: "DomainRows") -> tuple[FeatureProblem, dict[str, Offset]]:
    """Convert training rows to the trainer's float32, shifted by a constant to keep precision.

    A single domain serves as source and target; method "t" uses it once.

    Returns:
        The problem, and what was subtracted from the rows of "source" and "target".
    """
    one = rows.source if len(rows.source) else rows.target
    labels = rows.source_labels if len(rows.source) else rows.target_labels
    both = (one, one) if rows.one_domain else (rows.source, rows.target)
    numbers = (labels, labels) if rows.one_domain else (rows.source_labels, rows.target_labels)
    offsets = _offsets(*both)
    source, target = (_moved(x, offset) for x, offset in zip(both, offsets, strict=True))
    pool = _moved(rows.pool, offsets[1]) if len(rows.pool) and rows.pool.shape[1] == target.shape[1] else None
    problem = FeatureProblem(
        source, torch.tensor(numbers[0]), target, torch.tensor(numbers[1]), len(rows.classes), pool=pool
    )
    return problem, dict(zip(("source", "target"), offsets, strict=True))


def _offsets(source: "Features", target: "Features") -> tuple[Offset, Offset]:
    """Return the mean of all rows; domains with the same features share it, which keeps their distance."""
    means = source.mean(axis=0, dtype=np.float64), target.mean(axis=0, dtype=np.float64)
    if source.shape[1] != target.shape[1]:
        return means
    share = len(target) / (len(source) + len(target))
    pooled = (1 - share) * means[0] + share * means[1]
    return pooled, pooled


def _moved(x: "Features", offset: Offset) -> Tensor:
    return torch.from_numpy((x - offset).astype(np.float32))


def _one_domain_settings(settings: HeadSettings) -> HeadSettings:
    """Return the settings of a plain classifier: one stream, no alignment; training settings stay the same."""
    values = {**settings.as_json(), "method": "t", "orders": None, "sigma1": 0.0}
    values |= {"l2_sp": settings.start_pull(), "head_first": settings.share_of_head()}
    return HeadSettings.from_json({**values, "streams": "shared", "heads": "shared"})


def fitting_settings(rows: "DomainRows", settings: HeadSettings, *, stacklevel: int = 3) -> HeadSettings:
    """Adapt the settings to the available rows, and warn about what is impossible.

    Args:
        rows: The training rows.
        settings: The requested settings.
        stacklevel: Stack level of the line that the warning shows.

    Returns:
        The settings; those of a plain classifier if all rows belong to one domain.

    Raises:
        ValueError: The method learns from a domain that has no labelled row.
    """
    method = settings.resolved_method()
    if not rows.one_domain:
        return settings
    if rows.has_target and len(rows.source):
        if not method.uses_source:
            raise ValueError(f"method={method.name!r} learns only from the target, but no target row has a label")
        if method.uses_target:
            warnings.warn(
                "no target row has a label, so nothing can be aligned: labels come from the source alone",
                stacklevel=stacklevel,
            )
    elif rows.has_target:
        if not method.uses_target:
            raise ValueError(f"method={method.name!r} learns only from the source, but there is no source row")
        if method.uses_source:
            warnings.warn(
                "there is no source row, so nothing can be aligned: trained on the target alone", stacklevel=stacklevel
            )
    return _one_domain_settings(settings)
