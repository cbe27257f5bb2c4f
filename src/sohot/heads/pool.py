"""The pool: unlabelled target rows, and what a good classifier makes of them.

A classifier that fits the pool is sure of each row and, over all rows, names the classes as often as they occur: small
entropies H(pⱼ), and a mean prediction p̄ close to the prior π, the class shares of the pool (information maximisation).
Nobody knows π. It is estimated from the answers of the classifier without the pool, so that a pool in which some
classes are rare is not forced to be balanced.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..functional.unlabelled import class_confusion, information_loss, mean_entropy

_ROUNDS = 30
_UNIFORM_SHARE = 1.0  # how much the uniform prior counts in an estimate, relative to the rows
_UNIFORM_ROWS = 3.0  # and besides, as this many rows of each class: ten rows say next to nothing about the shares
FULL_ROWS = 5
"""Rows per class from which a pool has its whole weight; a handful of rows in all says little about the target."""
_NONE = -1e4  # the logit of a class that cannot be: its probability is 0, and 0 times this is 0
_TINY = 1e-30


class Pool(NamedTuple):
    """The pools of a stack of fits.

    Attributes:
        rows: Features (F, u, k); a slot without a row is zero.
        weights: 1 / rows of the pool for each row, 0 for a slot without one: (F, u).
        strength: β of each fit, (F,).
        prior: Class shares of each pool, (F, C).
        loss: What is asked of the pool: "im" (sure of each row, class shares near the prior), "entropy" (sure of each
            row) or "mcc" (minimum class confusion).
    """

    rows: Tensor
    weights: Tensor
    strength: Tensor
    prior: Tensor
    loss: str = "im"

    def double(self) -> "Pool":
        """Convert to float64."""
        return Pool(self.rows.double(), self.weights.double(), self.strength.double(), self.prior.double(), self.loss)

    def term(self, logits: Tensor) -> Tensor:
        """Compute what the pool adds to each objective, β times its loss, from the logits of its rows: (F,)."""
        return self.strength * pool_loss(logits, self.weights, self.prior, self.loss)

    @torch.enable_grad()
    def term_and_gradient(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Compute it with its gradient with respect to the logits."""
        logits = logits.detach().requires_grad_()
        term = self.term(logits)
        (gradient,) = torch.autograd.grad(term.sum(), logits)
        return term.detach(), gradient


def class_prior(logits: Tensor, weights: Tensor) -> Tensor:
    """Estimate the class shares of each pool from what a classifier without the pool says about its rows.

    A few rounds of expectation maximisation (Saerens et al., Adjusting the outputs of a classifier to new a priori
    probabilities, 2002): r ∝ p π, then π is the mean of r over the rows, drawn to equal shares.

    Args:
        logits: Shape (F, u, C).
        weights: Weight of each row, (F, u), adding up to 1.

    Returns:
        The shares, (F, C); each row adds up to 1.

    Example:
        >>> logits = torch.tensor([[9.0, 0.0]] * 300 + [[0.0, 9.0]] * 100).unsqueeze(0)
        >>> class_prior(logits, torch.full((1, 400), 1 / 400)).round(decimals=2)
        tensor([[0.6200, 0.3800]])
    """
    shares, uniform = logits.softmax(2), 1 / logits.shape[2]
    prior = shares.new_full((len(shares), shares.shape[2]), uniform)
    pull = _UNIFORM_SHARE + _UNIFORM_ROWS * shares.shape[2] / (weights > 0).sum(1, keepdim=True)
    for _ in range(_ROUNDS):
        adjusted = shares * prior.unsqueeze(1)
        adjusted = adjusted / adjusted.sum(2, keepdim=True).clamp(min=_TINY)
        counted = (weights.unsqueeze(2) * adjusted).sum(1)
        prior = (counted + pull * uniform) / (1 + pull)
    return prior


def pool_loss(logits: Tensor, weights: Tensor, prior: Tensor, loss: str = "im") -> Tensor:
    """Compute what a pool costs each fit: (F,).

    Args:
        logits: Shape (F, u, C); −∞ for a class that a fit does not know.
        weights: Weight of each row, (F, u), adding up to 1.
        prior: Class shares of the pool, (F, C).
        loss: See `Pool`.

    Example:
        >>> sure, unsure = torch.tensor([[[9.0, 0.0], [0.0, 9.0]]]), torch.zeros(1, 2, 2)
        >>> [pool_loss(x, torch.full((1, 2), 0.5), torch.full((1, 2), 0.5)).item() for x in (sure, unsure)]
        [0.001..., 0.693...]
    """
    logits = logits.clamp(min=_NONE)
    if loss == "entropy":
        return mean_entropy(logits, weights)
    if loss == "im":
        return information_loss(logits, prior, weights)
    classes, known = logits.shape[2], (logits > _NONE).any(1).sum(1)
    # A class that cannot be counts as confused altogether: leave it out of the mean.
    return (classes * class_confusion(logits, weights=weights) - (classes - known)) / known
