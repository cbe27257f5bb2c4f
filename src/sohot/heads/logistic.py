"""Regularised logistic regression of many fits at once, to its minimum: where every classifier on features starts.

The objective Σ wᵢ CEᵢ + λ‖W‖² is convex, so its minimum needs no learning rate, no schedule and no number of steps.
L-BFGS finds it for all fits of a stack together; each fit has its own step lengths and its own history, and rests when
its gradient is small, so that a result does not depend on what else is in the stack.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .pool import Pool

_HISTORY = 10
_MOST_ROUNDS = 500
_MOST_HALVINGS = 30
_TOLERANCE = 3e-8  # of the gradient: probabilities are then right to about 1e-6
_SMALL_DECAY = 1e-3  # below this λ less is tolerated, because the error of weights is that of the gradient over λ
POOL_TOLERANCE = 1e-5
"""Enough with a pool, whose minimum is one of many, and where it starts."""
_DESCENT = 1e-4  # share of the expected descent that a step must reach (Armijo)
_ROUNDING = 1e-14  # of a loss: near the minimum it no longer shows a descent that the gradient still does
_ABSENT = 10.0  # a class without rows lies this far below the others, where its unpenalised bias would fall for ever


class LogisticHeads(NamedTuple):
    """Classifiers of a stack."""

    weight: Tensor  # (F, k, C)
    bias: Tensor  # (F, C)


def fit_logistic(
    rows: Tensor,
    classes: Tensor,
    row_weights: Tensor,
    decay: Tensor,
    num_classes: int,
    *,
    pool: Pool | None = None,
    start: LogisticHeads | None = None,
    tolerance: float | None = None,
) -> LogisticHeads:
    """Minimise Σ wᵢ CEᵢ + λ‖W‖² for each fit; the biases are not penalised.

    Args:
        rows: Features of each fit, (F, n, k).
        classes: The class of each row, (F, n).
        row_weights: Weight of each row, (F, n), not negative; 0 for a slot without a row.
        decay: λ of each fit, (F,).
        num_classes: Number of classes C. A class without rows gets a bias below all others.
        pool: Unlabelled rows whose loss is added. The sum then has many minima, and that next to `start` is found.
        start: Where to start: with a pool, at the minimum without it; None for zeros.
        tolerance: Largest gradient to end with; None for one by which probabilities are right to about 1e-6.

    Example:
        >>> rows = torch.tensor([[[-1.0], [1.0], [2.0]]])
        >>> heads = fit_logistic(rows, torch.tensor([[0, 1, 1]]), torch.full((1, 3), 1 / 3), torch.tensor([0.1]), 2)
        >>> (rows[0] @ heads.weight[0] + heads.bias[0]).argmax(1)
        tensor([0, 1, 1])
    """
    # In float32 fits with a small λ come to rest too far from their minimum.
    problem = _Problem(rows.double(), row_weights.double(), decay.double(), classes, num_classes)
    if pool is not None:
        problem.pool = pool.double()
    close = _TOLERANCE * (decay.double() / _SMALL_DECAY).clamp(0.01, 1)
    found = _minimise(problem, problem.flat(start), close if tolerance is None else torch.full_like(close, tolerance))
    weight, bias = problem.parts(found)
    bias = bias - bias.masked_fill(~problem.present, 0).sum(1, keepdim=True) / problem.present.sum(1, keepdim=True)
    lowest = bias.masked_fill(~problem.present, torch.inf).amin(1, keepdim=True)
    bias = torch.where(problem.present, bias, lowest - _ABSENT)
    return LogisticHeads(weight.to(rows.dtype), bias.to(rows.dtype))


class _Problem:
    """Loss and gradient of all fits, on parameters (F, (k + 1)·C)."""

    def __init__(self, rows: Tensor, row_weights: Tensor, decay: Tensor, classes: Tensor, num_classes: int) -> None:
        self.rows, self.weights, self.decay = rows, row_weights, decay.view(-1, 1, 1)
        self.shape = rows.shape[0], rows.shape[2] + 1, num_classes
        truth = torch.nn.functional.one_hot(classes, num_classes).to(rows)
        self.truth = truth * row_weights.unsqueeze(2)
        self.present = self.truth.sum(1) > 0  # (F, C)
        self.absent = ~self.present.unsqueeze(1)
        # The curvature along a column while all classes are equally likely. Columns are principal axes, which differ
        # much in length: in this unit L-BFGS needs a third of the rounds.
        squares = (rows.square() * row_weights.unsqueeze(2)).sum(1)
        squares = torch.cat([squares, row_weights.sum(1, keepdim=True)], 1)
        share = self.present.sum(1, keepdim=True).double().reciprocal()
        curvature = squares * share * (1 - share)
        curvature[:, :-1] += 2 * decay.unsqueeze(1)
        self.inverse = curvature.clamp(min=1e-12).reciprocal().repeat_interleave(num_classes, 1)

        self.pool: Pool | None = None

    def flat(self, heads: LogisticHeads | None) -> Tensor:
        """Join weights and biases to parameters; zeros for None."""
        if heads is None:
            return self.rows.new_zeros(self.shape[0], self.shape[1] * self.shape[2])
        return torch.cat([heads.weight, heads.bias.unsqueeze(1)], 1).to(self.rows).flatten(1)

    def logits(self, flat: Tensor, rows: Tensor) -> Tensor:
        """Classify rows (F, n, k); −∞ for a class without labelled rows."""
        weight, bias = self.parts(flat)
        return torch.baddbmm(bias.unsqueeze(1), rows, weight).masked_fill_(self.absent, -torch.inf)

    def parts(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Split parameters into weights and biases."""
        both = flat.view(self.shape)
        return both[:, :-1], both[:, -1]

    def __call__(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss (F,) and its gradient (F, parameters)."""
        weight, _ = self.parts(flat)
        logits = self.logits(flat, self.rows)
        normal = logits.logsumexp(2, keepdim=True)
        picked = torch.where(self.truth > 0, logits - normal, 0)
        loss = (self.decay * weight.square()).sum((1, 2)) - (self.truth * picked).sum((1, 2))
        error = (logits - normal).exp_().mul_(self.weights.unsqueeze(2)).sub_(self.truth)  # (F, n, C)
        gradient = torch.empty(self.shape, dtype=flat.dtype, device=flat.device)
        gradient[:, :-1] = torch.baddbmm(weight * (2 * self.decay), self.rows.transpose(1, 2), error)
        gradient[:, -1] = error.sum(1)
        if self.pool is not None:
            term, error = self.pool.term_and_gradient(self.logits(flat, self.pool.rows))
            loss = loss + term
            gradient[:, :-1].baddbmm_(self.pool.rows.transpose(1, 2), error)
            gradient[:, -1] += error.sum(1)
        return loss, gradient.flatten(1)


def _minimise(problem: _Problem, flat: Tensor, tolerance: Tensor) -> Tensor:
    """Run L-BFGS with backtracking from some parameters on, until every fit's gradient is within its tolerance."""
    loss, gradient = problem(flat)
    moving = torch.ones_like(loss, dtype=torch.bool)
    moves: list[Tensor] = []
    turns: list[Tensor] = []
    for _ in range(_MOST_ROUNDS):
        moving &= gradient.abs().amax(1) > tolerance
        if not bool(moving.any()):
            break
        direction = _direction(gradient, moves, turns, problem.inverse)
        slope = (direction * gradient).sum(1)
        uphill = slope >= 0  # rounding may spoil the history of a fit: then follow its gradient
        direction = torch.where(uphill.unsqueeze(1), -gradient, direction)
        slope = torch.where(uphill, -gradient.square().sum(1), slope)
        length = moving.to(flat)
        for _ in range(_MOST_HALVINGS):
            tried = flat + length.unsqueeze(1) * direction
            new_loss, new_gradient = problem(tried)
            is_long = moving & ~(new_loss <= loss * (1 + _ROUNDING) + _DESCENT * length * slope)
            if not bool(is_long.any()):
                break
            length = torch.where(is_long, length / 2, length)
        else:  # these fits find no descent within the precision of the numbers: they are at their minimum
            moving &= ~is_long
            tried = torch.where(is_long.unsqueeze(1), flat, tried)
            new_loss, new_gradient = problem(tried)
        moves.append(tried - flat)
        turns.append(new_gradient - gradient)
        del moves[:-_HISTORY], turns[:-_HISTORY]
        flat, loss, gradient = tried, new_loss, new_gradient
    return flat


def _direction(gradient: Tensor, moves: list[Tensor], turns: list[Tensor], inverse_curvature: Tensor) -> Tensor:
    """The two-loop recursion of L-BFGS, for each fit; pairs without curvature do not count."""
    found = -gradient
    kept: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    for move, turn in zip(reversed(moves), reversed(turns), strict=True):
        curvature = (move * turn).sum(1)
        inverse = torch.where(curvature > 0, 1 / curvature, 0.0)
        share = inverse * (move * found).sum(1)
        found = found - share.unsqueeze(1) * turn
        kept.append((move, turn, inverse, share))
    found = found * inverse_curvature
    if moves:
        size = (turns[-1].square() * inverse_curvature).sum(1)
        curvature = (moves[-1] * turns[-1]).sum(1)
        found = found * torch.where((size > 0) & (curvature > 0), curvature / size, 1.0).unsqueeze(1)
    for move, turn, inverse, share in reversed(kept):
        found = found + (share - inverse * (turn * found).sum(1)).unsqueeze(1) * move
    return found
