"""The losses on pool rows, by the names that recipes use."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from ..functional.unlabelled import information_loss, pseudo_label_loss
from ..methods.pool_recipes import INFORMATION, PSEUDO


class PoolAnswers(NamedTuple):
    """What the model answers for the pool rows of a batch, and what the teacher made of them."""

    features: Tensor  # (n, d)
    logits: Tensor  # (n, C)
    labels: Tensor  # (n,) pseudo-labels
    kept: Tensor  # (n,) 1 where a pseudo-label is trusted, else 0
    prior: Tensor  # (C,) estimated class shares


TERMS: dict[str, Callable[[PoolAnswers], Tensor]] = {
    PSEUDO: lambda answers: pseudo_label_loss(answers.logits, answers.labels, answers.kept),
    INFORMATION: lambda answers: information_loss(answers.logits, answers.prior),
}
