"""What a classifier's answers to rows without labels tell: entropy, confusion, class shares, pseudo-labels.

Every function works on (…, rows, classes), so that many fits can share one call. `weights` are those of the rows,
(…, n) with sum 1, if they do not count alike.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

ROUNDS = 30
"""Rounds of expectation maximisation from which the estimated class shares hardly change."""

PRIOR_ROWS = 0.5
"""Weight of the uniform distribution in estimated shares, as a multiple of the number of rows: shares never reach 0."""


CONFUSION_TEMPERATURE = 2.5
"""Temperature of minimum class confusion in its paper."""


def mean_entropy(logits: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the mean entropy of the predictions, in nats: (…).

    >>> round(mean_entropy(torch.zeros(3, 4)).item(), 4)  # log 4
    1.3863
    """
    return _mean(_entropies(logits.log_softmax(-1)), weights)


def _entropies(logs: Tensor) -> Tensor:
    """Return the entropy of each row of log-probabilities."""
    return -(logs.exp() * logs).sum(-1)


def _mean(values: Tensor, weights: Tensor | None) -> Tensor:
    """Average over the rows, the last dimension."""
    return values.mean(-1) if weights is None else (weights * values).sum(-1)


def information_loss(logits: Tensor, prior: Tensor, weights: Tensor | None = None) -> Tensor:
    """Ask each row for a sure answer, and all rows together for these class shares: (…).

    mean_j H(p_j) + KL(p̄ ‖ π). With a uniform prior it is log C minus the mutual information of row and class.

    Args:
        logits: Shape (…, n, C).
        prior: Class shares (…, C), all above 0.
        weights: Weights of the rows.

    Example:
        >>> sure = 100 * torch.eye(2)
        >>> uniform = torch.tensor([0.5, 0.5])
        >>> [round(information_loss(rows, uniform).item(), 4) for rows in (sure, sure[[0, 0]])]
        [0.0, 0.6931]
    """
    logs = logits.log_softmax(-1)
    mean = _mean(logs.exp().transpose(-2, -1), None if weights is None else weights.unsqueeze(-2))
    # Clamped, a class that nobody predicts adds 0, with a gradient of 0 instead of NaN.
    divergence = (mean * (mean.clamp(min=torch.finfo(mean.dtype).tiny).log() - prior.log())).sum(-1)
    return _mean(_entropies(logs), weights) + divergence


def class_confusion(
    logits: Tensor, temperature: float = CONFUSION_TEMPERATURE, weights: Tensor | None = None
) -> Tensor:
    """Return how much the predictions mix classes up, the loss of minimum class confusion: (…).

    With p_j the prediction of row j at this temperature and w_j ∝ 1 + exp(−H(p_j)), sure rows counting up to twice,
    K = Σ_j w_j p_j p_jᵀ says which classes are predicted together. The loss is the share of each row of K that lies off
    the diagonal, averaged over the classes. (Jin et al., Minimum Class Confusion for Versatile Domain Adaptation, ECCV
    2020. The gradient is that of this equation; the authors' code takes w as constant.)

    Args:
        logits: Shape (…, n, C).
        temperature: What logits are divided by.
        weights: Weights of the rows, which multiply w.

    Example:
        >>> sure, doubtful = 100 * torch.eye(2), torch.zeros(2, 2)
        >>> [round(class_confusion(logits).item(), 4) for logits in (sure, doubtful, sure[[0, 0]])]
        [0.0, 0.5, 0.5]
    """
    logs = (logits / temperature).log_softmax(-1)
    shares = logs.exp()
    trust = 1 + (-_entropies(logs)).exp()
    trust = trust if weights is None else weights * trust
    together = (trust.unsqueeze(-1) * shares).transpose(-2, -1) @ shares
    # The sum of a class that nobody predicts may underflow; its share is then 0, as in the limit.
    own = together.diagonal(dim1=-2, dim2=-1) / together.sum(-1).clamp(min=torch.finfo(logs.dtype).tiny)
    return 1 - own.mean(-1)


def pseudo_label_loss(logits: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
    """Return Σ kept · cross-entropy / n: rows that are not kept count as rows with a loss of 0.

    Args:
        logits: Shape (n, C).
        labels: Pseudo-labels (n,).
        kept: Weight of each row (n,), 0 to leave it out.

    Example:
        >>> loss = pseudo_label_loss(torch.zeros(2, 2), torch.tensor([0, 1]), torch.tensor([1.0, 0.0]))
        >>> round(loss.item(), 4)  # log 2, halved
        0.3466
    """
    return (kept * cross_entropy(logits, labels, reduction="none")).mean()


def estimated_prior(probabilities: Tensor, rounds: int = ROUNDS) -> Tensor:
    """Estimate class shares from predictions of a classifier trained on equal shares, by expectation maximisation.

    r_jc ∝ p_jc π_c and π_c = (Σ_j r_jc + n/2C) / 1.5 n in turn, from uniform shares: doubtful rows are divided by what
    the sure ones say, held near uniform shares.

    Args:
        probabilities: Shape (…, n, C).
        rounds: Number of rounds.

    Returns:
        Shape (…, C), all above 0, with sum 1.

    Example:
        >>> estimated_prior(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.6, 0.4], [0.0, 1.0]]))
        tensor([0.6180, 0.3820])
    """
    rows, classes = probabilities.shape[-2:]
    prior = torch.full_like(probabilities[..., :1, :], 1 / classes)
    added = PRIOR_ROWS * rows / classes
    for _ in range(rounds):
        shares = probabilities * prior
        shares = shares / shares.sum(-1, keepdim=True).clamp(min=torch.finfo(shares.dtype).tiny)
        prior = (shares.sum(-2, keepdim=True) + added) / ((1 + PRIOR_ROWS) * rows)
    return prior.squeeze(-2)


def align_shares(probabilities: Tensor, shares: Tensor, prior: Tensor) -> Tensor:
    """Move predictions from their own class shares toward a prior (distribution alignment): q · π / shares, renormed.

    Args:
        probabilities: Shape (…, n, C).
        shares: Mean prediction over many rows (…, C).
        prior: The shares expected (…, C).

    Example:
        >>> align_shares(torch.tensor([[0.6, 0.4]]), torch.tensor([0.75, 0.25]), torch.tensor([0.5, 0.5]))
        tensor([[0.3333, 0.6667]])
    """
    moved = probabilities * (prior / shares.clamp(min=1e-6)).unsqueeze(-2)
    return moved / moved.sum(-1, keepdim=True).clamp(min=torch.finfo(moved.dtype).tiny)
