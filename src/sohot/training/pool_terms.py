"""The losses on pool rows, by the names that recipes use."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from ..functional.unlabelled import class_confusion, information_loss, mean_entropy, pseudo_label_loss
from ..methods.pool_recipes import CONFUSION, ENTROPY, INFORMATION, PSEUDO


class PoolAnswers(NamedTuple):
    """What the model answers for the pool rows of a batch, and what the teacher made of them."""

    logits: Tensor  # (n, C)
    labels: Tensor  # (n,) pseudo-labels
    kept: Tensor  # (n,) 1 where a pseudo-label is trusted, else 0
    prior: Tensor  # (C,) estimated class shares


TERMS: dict[str, Callable[[PoolAnswers], Tensor]] = {
    PSEUDO: lambda answers: pseudo_label_loss(answers.logits, answers.labels, answers.kept),
    INFORMATION: lambda answers: information_loss(answers.logits, answers.prior),
    ENTROPY: lambda answers: mean_entropy(answers.logits),
    CONFUSION: lambda answers: class_confusion(answers.logits),
}
