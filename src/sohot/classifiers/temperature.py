"""One temperature by which the probabilities of a classifier are as high as it is right.

Dividing all logits by a temperature T changes no label, only the confidence in it. Two observations, neither of which
is enough alone, find T: the answers to labelled target rows by classifiers that did not learn from them, and, with a
pool, how often such classifiers disagree about the pool. The labels are few, so they say little about T; disagreement
is measured on many rows, but it is smaller than the share of errors, since the classifiers share most of what they
learned from.
"""

import math

import torch
from torch import Tensor

LOWEST, HIGHEST = 0.25, 8.0
"""Range of temperatures."""
WIDTH = 0.7
"""Standard deviation of log T around 0 before any label is seen, without a pool."""
POOL_WIDTH = 0.15
"""Standard deviation of log T around the temperature that disagreement gives."""
ERRORS_PER_DISAGREEMENT = 1.25
"""Errors on the pool for each disagreement of two folds, measured on development draws."""
_POOL_RANGE = 0.5, 2.0
_STEPS = 113
_MATCHING_STEPS = 40


def fit_temperature(log_p: Tensor, labels: Tensor, centre: float = 1.0, width: float = WIDTH) -> float:
    """Find the T that minimises −Σ log softmax(log p / T)[label] + (log T − log centre)² / (2 · width²).

    Args:
        log_p: Held-out log-probabilities (m, C).
        labels: Their true classes (m,).
        centre: The T that is most likely before any label is seen.
        width: Standard deviation of log T around it.

    Returns:
        T; the centre where there is no row.

    Example:
        >>> fit_temperature(torch.tensor([[4.0, 0.0]] * 40), torch.tensor([0, 0, 0, 1] * 10)) > 2  # far too sure
        True
    """
    grid = torch.linspace(math.log(LOWEST), math.log(HIGHEST), _STEPS, dtype=torch.float64)
    grid = torch.cat([grid, torch.tensor([math.log(centre)], dtype=torch.float64)])
    scaled = (log_p.double().unsqueeze(0) / grid.exp().view(-1, 1, 1)).log_softmax(2)
    likelihood = scaled.gather(2, labels.view(1, -1, 1).expand(len(grid), -1, 1)).sum((1, 2))
    loss = (grid - math.log(centre)) ** 2 / (2 * width**2) - likelihood
    return float(grid[loss.argmin()].exp())


def confidence(log_p: Tensor, temperature: float = 1.0) -> float:
    """Return the mean probability of the most likely class."""
    return float((log_p / temperature).softmax(-1).amax(-1).mean())


def temperature_for(log_p: Tensor, wanted: float) -> float:
    """Find the T at which the mean confidence has a given value, by bisection.

    Example:
        >>> log_p = torch.tensor([[3.0, 0.0], [1.0, 0.0]])
        >>> round(confidence(log_p, temperature_for(log_p, 0.7)), 3)
        0.7
    """
    low, high = math.log(LOWEST), math.log(HIGHEST)
    for _ in range(_MATCHING_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if confidence(log_p, math.exp(middle)) > wanted else (low, middle)
    return math.exp((low + high) / 2)


def disagreement(answers: Tensor) -> float:
    """Return the share of rows to which two folds give different labels, in the mean over pairs of folds.

    Args:
        answers: Labels (F, u) by the classifiers of at least two folds.
    """
    pairs = torch.combinations(torch.arange(len(answers)), 2)
    return float((answers[pairs[:, 0]] != answers[pairs[:, 1]]).float().mean())


def pool_temperature(log_p: Tensor, answers: Tensor) -> float:
    """Find the T at which the answers to the pool are as sure as the folds agree.

    Args:
        log_p: The answers to the pool (u, C).
        answers: Labels of the pool by the classifiers of the folds (F, u).
    """
    wanted = 1 - ERRORS_PER_DISAGREEMENT * disagreement(answers)
    return min(max(temperature_for(log_p, wanted), _POOL_RANGE[0]), _POOL_RANGE[1])
