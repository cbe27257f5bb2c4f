"""The rows that a step aligns: labelled ones, pool rows with their weights, and those of the banks."""

from typing import NamedTuple

import torch
from torch import Tensor

from .pool_rows import BankRows, PoolBatch
from .pool_terms import PoolAnswers
from .streams import Output


class AlignedRows(NamedTuple):
    """The arguments of an alignment; without a pool there are no weights."""

    source: Tensor
    source_labels: Tensor
    target: Tensor
    target_labels: Tensor
    source_weights: Tensor | None = None
    target_weights: Tensor | None = None

    def given(self) -> dict[str, Tensor]:
        """Return what there is, by name."""
        return {name: rows for name, rows in self._asdict().items() if rows is not None}


class _Rows(NamedTuple):
    features: Tensor
    labels: Tensor
    weights: Tensor


def aligned_rows(
    output: Output,
    source_labels: Tensor | None,
    target_labels: Tensor | None,
    pool: PoolBatch | None = None,
    answers: PoolAnswers | None = None,
) -> AlignedRows | None:
    """Collect the rows that a step aligns; None if it shows only one domain.

    Args:
        output: Features of the labelled rows.
        source_labels: Classes of the source rows.
        target_labels: Classes of the labelled target rows.
        pool: What is known of the pool; None without one.
        answers: The features of the pool rows of the batch.
    """
    source, target = output.source_features, output.target_features
    if source is None or source_labels is None:
        return None
    if pool is None or answers is None:
        if target is None or target_labels is None:
            return None
        return AlignedRows(full_precision(source), source_labels, full_precision(target), target_labels)
    of_source = [*_with_bank(_equal(source, source_labels), pool.source_bank)]
    of_target = [*_with_bank(_Rows(answers.features, pool.labels, pool.weights), pool.pool_bank)]
    if target is not None and target_labels is not None:
        of_target.insert(0, _equal(target, target_labels))
    joined = [_Rows(*map(torch.cat, zip(*parts, strict=True))) for parts in (of_source, of_target)]
    return AlignedRows(*joined[0][:2], *joined[1][:2], joined[0].weights, joined[1].weights)


def _equal(features: Tensor, labels: Tensor) -> _Rows:
    features = full_precision(features)
    return _Rows(features, labels, torch.ones_like(features[:, 0]).detach())


def _with_bank(shown: _Rows, bank: BankRows | None) -> list[_Rows]:
    """Add the rows of a bank. As these are constants, each row shown stands for several, and so does its gradient."""
    if bank is None:
        return [shown]
    features = torch.lerp(shown.features.detach(), shown.features, bank.factor.to(shown.features.dtype))
    kept = _Rows(bank.features.to(features.dtype), bank.labels, bank.weights.to(shown.weights.dtype))
    return [shown._replace(features=features), kept]


def full_precision(x: Tensor) -> Tensor:
    """Convert half precision to float32 and leave the rest."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
