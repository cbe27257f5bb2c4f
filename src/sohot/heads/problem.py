"""What a fit learns from: labelled features of a source and a target."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..functional.checks import check_features, check_finite, check_label_range, check_labels
from ..functional.plain_checks import check_count
from ..methods.registry import Method


class Rows(NamedTuple):
    """Labelled rows of a feature tensor that other problems may share."""

    features: Tensor  # (all rows, d)
    chosen: Tensor | None  # which of them, None for all
    labels: Tensor  # one for each chosen row

    def of(self, features: Tensor) -> Tensor:
        """Take the chosen rows out of the features, or out of a copy of them on another device."""
        return features if self.chosen is None else features[self.chosen.to(features.device)]


class TrainingRows(NamedTuple):
    """The rows that a method looks at. With one domain alone, its rows go through the target's network."""

    source: Rows | None
    target: Rows


@dataclass(frozen=True, eq=False)
class FeatureProblem:
    """Labelled features of two domains.

    Many problems may come from the same images (splits, folds): with `source_rows` and `target_rows` they share one
    tensor of features and each holds the numbers of its rows only, see `from_rows`.

    Attributes:
        source: Source features, (n, d); with `source_rows` the tensor the rows are taken from.
        source_labels: Class of each source row, integers in 0 … num_classes − 1.
        target: Target features, (m, d2). d2 may differ from d where each domain has its own network.
        target_labels: Class of each target row.
        num_classes: Number of classes; a class may be missing from either domain.
        source_rows: Rows of `source` to use, in the order of `source_labels`; None for all.
        target_rows: Rows of `target` to use; None for all.

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

    def __post_init__(self) -> None:
        check_count(self.num_classes, "num_classes")
        for domain in ("source", "target"):
            features, labels, rows = (getattr(self, domain + end) for end in ("", "_labels", "_rows"))
            check_features(features, domain)
            check_finite(features, domain)
            if rows is not None:
                check_labels(rows, rows, (f"{domain}_rows", f"{domain}_rows"))
                if rows.numel() == 0 or int(rows.min()) < 0 or int(rows.max()) >= len(features):
                    raise ValueError(f"{domain}_rows must number rows of {domain}, 0 … {len(features) - 1}")
            check_labels(labels, features if rows is None else rows, (f"{domain}_labels", domain))
            check_label_range(labels, self.num_classes, f"{domain}_labels")

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
        """Precision to train in: that of the features, float32 at least."""
        return torch.promote_types(torch.promote_types(self.source.dtype, self.target.dtype), torch.float32)

    def seen_by(self, method: Method) -> TrainingRows:
        """Leave out the domain that a method does not learn from: its features must not shape anything."""
        source = Rows(self.source, self.source_rows, self.source_labels)
        target = Rows(self.target, self.target_rows, self.target_labels)
        if not method.uses_source:
            return TrainingRows(None, target)
        if not method.uses_target:
            if self.source.shape[1] != self.target.shape[1]:
                raise ValueError(
                    "the method 's' trains the target's network on source rows, but their feature sizes differ: "
                    f"{self.source.shape[1]} and {self.target.shape[1]}"
                )
            return TrainingRows(None, source)
        return TrainingRows(source, target)
