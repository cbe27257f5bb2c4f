"""Regularised logistic regressions: folds, settings and assumptions about the pool are columns of one solve.

For each column the objective is

    Σᵢ tᵢ·(−log pᵢ)  +  λ‖W‖²  +  β [ Σⱼ vⱼ H(pⱼ) + κ KL(Σⱼ vⱼ pⱼ ‖ uniform) ]

The first sum is over labelled rows, whose targets t are one-hot labels times the weights of the rows. The bracket is
over rows without labels, with weights v that add up to 1: their answers should be sure (small entropy H), and name all
classes about equally often (small divergence KL). Without the bracket the objective is convex.

Rows of several kinds (blends of features) are groups; each group has its own columns, and all of them move together by
L-BFGS, each with step lengths and a history of its own. The products with the rows are shared by all columns of a
group, which is what makes folds cheap.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_HISTORY = 8
_DESCENT = 1e-4  # share of the expected descent that a step must reach (Armijo)
_ROUNDING = 3e-6  # of a loss: float32 shows no smaller descent
_TRIES = 5  # of the length of a step, each a third of the one before
_STALLED = 3  # rounds without progress after which a column rests
_PROGRESS = 1e-5  # of a loss
_TINY = 1e-12


class Heads(NamedTuple):
    """Linear classifiers: G groups of K columns, for C classes.

    Attributes:
        weight: Shape (G, k, K, C).
        bias: Shape (G, K, C).
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, rows: Tensor) -> Tensor:
        """Classify rows (G, n, k): logits (G, n, K, C)."""
        groups, count, size = rows.shape
        columns = self.weight.shape[2:]
        logits = torch.bmm(rows, self.weight.reshape(groups, size, -1)).view(groups, count, *columns)
        return logits + self.bias.unsqueeze(1)

    def columns(self, indices: Tensor) -> "Heads":
        """Take some columns, possibly one of them several times."""
        return Heads(self.weight[:, :, indices], self.bias[:, indices])


class PoolTerm(NamedTuple):
    """What rows without labels add to the objective.

    Attributes:
        weights: v of the last rows, (G, u, K), adding up to 1 over the rows.
        strength: β, (G, K).
        balance: κ, (K,): how strongly the classes are held to equal shares.
    """

    weights: Tensor
    strength: Tensor
    balance: Tensor


def weighted_targets(
    labels: Tensor, is_target: Tensor, num_classes: int, shares: Tensor, held_out: Tensor | None = None
) -> Tensor:
    """Weigh labelled rows so that each domain has its share of the loss, however many rows it has.

    Args:
        labels: Classes (l,).
        is_target: Whether a row comes from the target (l,).
        num_classes: C.
        shares: Share of the target in each column, (K,); a domain without rows leaves its share to the other.
        held_out: Rows that a column leaves out (K, l); None for none.

    Returns:
        Shape (l, K, C).

    Example:
        >>> labels, is_target = torch.tensor([0, 1, 0, 0]), torch.tensor([False, False, True, True])
        >>> weighted_targets(labels, is_target, 2, torch.tensor([0.5])).sum(2).flatten()
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    trains = torch.ones(len(shares), len(labels)) if held_out is None else (~held_out).float()
    target = trains * is_target
    source = trains - target
    counts = source.sum(1, keepdim=True), target.sum(1, keepdim=True)
    share = torch.where(counts[0] == 0, 1.0, torch.where(counts[1] == 0, 0.0, shares.unsqueeze(1)))
    weights = source * (1 - share) / counts[0].clamp(min=1) + target * share / counts[1].clamp(min=1)
    one_hot = torch.nn.functional.one_hot(labels, num_classes)
    return weights.T.unsqueeze(2) * one_hot.unsqueeze(1)


def fit_heads(
    rows: Tensor,
    targets: Tensor,
    decay: Tensor,
    *,
    pool: PoolTerm | None = None,
    start: Heads | None = None,
    tolerance: float = 1e-4,
    rounds: int = 50,
) -> Heads:
    """Minimise the objective of each column.

    Args:
        rows: Prepared features (G, n, k), labelled rows first, rows without labels last. A row may be both: with a
            label for some columns and without it for others.
        targets: Weighted labels of the first rows, (l, K, C).
        decay: λ of each column, (K,).
        pool: What rows without labels add; None for nothing.
        start: Where to start; None for zeros. With a pool there are several minima: the one near the start is found.
        tolerance: Largest gradient to end with.
        rounds: Most rounds of L-BFGS.

    Example:
        >>> rows = torch.tensor([[[-1.0], [1.0], [2.0]]])
        >>> targets = weighted_targets(torch.tensor([0, 1, 1]), torch.zeros(3, dtype=bool), 2, torch.tensor([0.5]))
        >>> heads = fit_heads(rows, targets, torch.tensor([0.1]))
        >>> heads(rows)[0, :, 0].argmax(1)
        tensor([0, 1, 1])
    """
    objective = _Objective(rows, targets, decay, pool)
    return objective.heads(_minimise(objective, objective.flat(start), tolerance, rounds))


class _Objective:
    """Loss and gradient of all columns, as functions of parameters (G·K, (k + 1)·C)."""

    def __init__(self, rows: Tensor, targets: Tensor, decay: Tensor, pool: PoolTerm | None) -> None:
        self.rows, self.targets, self.pool = rows, targets, pool
        self.transposed = rows.transpose(1, 2)
        self.decay = decay.view(1, 1, -1, 1)
        self.labelled, self.columns, self.classes = targets.shape
        self.unlabelled = 0 if pool is None else pool.weights.shape[1]
        self.groups, _, self.size = rows.shape
        self.row_weights = targets.sum(2, keepdim=True)  # (l, K, 1)
        self.inverse_curvature = self._inverse_curvature()

    def _inverse_curvature(self) -> Tensor:
        """One over the curvature along each parameter while all classes are equally likely.

        Principal axes differ much in length; in this unit L-BFGS needs a third of the rounds.
        """
        weights = self.row_weights[..., 0]  # (l, K)
        squares = self.transposed[:, :, : self.labelled].square() @ weights  # (G, k, K)
        total = weights.sum(0).expand(self.groups, 1, -1)
        spread = (1 - 1 / self.classes) / self.classes
        curvature = torch.cat([squares * spread + 2 * self.decay[..., 0], total * spread], 1)
        inverse = curvature.clamp(min=1e-9).reciprocal().transpose(1, 2)  # (G, K, k + 1)
        return inverse.reshape(self.groups * self.columns, -1).repeat_interleave(self.classes, 1)

    def flat(self, heads: Heads | None) -> Tensor:
        """Join weights and biases to parameters; zeros for None."""
        if heads is None:
            return self.rows.new_zeros(self.groups * self.columns, (self.size + 1) * self.classes)
        joined = torch.cat([heads.weight, heads.bias.unsqueeze(1)], 1)
        return self._flat(joined.expand(self.groups, self.size + 1, self.columns, self.classes))

    def _flat(self, joined: Tensor) -> Tensor:
        return joined.transpose(1, 2).reshape(self.groups * self.columns, -1)

    def heads(self, flat: Tensor) -> Heads:
        """Split parameters into weights and biases."""
        joined = flat.view(self.groups, self.columns, self.size + 1, self.classes).transpose(1, 2)
        return Heads(joined[:, :-1], joined[:, -1])

    def __call__(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss (G·K, 1) and its gradient (G·K, parameters)."""
        heads = self.heads(flat)
        log_p = heads(self.rows).log_softmax(3)
        p = log_p.exp()
        labelled, count = self.labelled, self.rows.shape[1]
        loss = (self.decay * heads.weight.square()).sum((1, 3)) - (self.targets * log_p[:, :labelled]).sum((1, 3))
        error = torch.zeros_like(p)  # gradient with respect to the logits
        error[:, :labelled] = self.row_weights * p[:, :labelled] - self.targets
        if self.pool is not None:
            own = slice(count - self.unlabelled, count)
            term, gradient = _pool_term(log_p[:, own], p[:, own], self.pool)
            loss = loss + term
            error[:, own] += gradient
        slopes = torch.bmm(self.transposed, error.view(self.groups, count, -1))
        weight = slopes.view(self.groups, self.size, self.columns, self.classes) + 2 * self.decay * heads.weight
        joined = torch.cat([weight, error.sum(1, keepdim=True)], 1)
        return loss.reshape(-1, 1), self._flat(joined)


def _pool_term(log_p: Tensor, p: Tensor, pool: PoolTerm) -> tuple[Tensor, Tensor]:
    """Return what rows without labels cost each column, (G, K), and the gradient with respect to their logits.

    With p̄ = Σ vⱼ pⱼ and q = κ log(p̄ C), that gradient is β vⱼ pⱼ [ q − pⱼ·q − (log pⱼ + Hⱼ) ].
    """
    weights, strength = pool.weights.unsqueeze(3), pool.strength.unsqueeze(1).unsqueeze(3)
    certain = p * log_p
    entropy = -certain.sum(3, keepdim=True)
    mean = (weights * p).sum(1, keepdim=True).clamp(min=_TINY)
    surplus = pool.balance.view(1, 1, -1, 1) * (mean * p.shape[3]).log()
    term = pool.strength * ((weights * entropy).sum((1, 3)) + (mean * surplus).sum((1, 3)))
    inner = (p * surplus).sum(3, keepdim=True)
    return term, strength * weights * (p * (surplus - inner - entropy) - certain)


def _minimise(objective: _Objective, flat: Tensor, tolerance: float, rounds: int) -> Tensor:
    """Run L-BFGS with backtracking until every column has a small gradient or makes no progress."""
    loss, gradient = objective(flat)
    moving = torch.ones_like(loss, dtype=torch.bool)
    stalled = torch.zeros_like(loss)
    history: list[tuple[Tensor, Tensor, Tensor]] = []  # moves, turns of the gradient, inverse curvature along the move
    for _ in range(rounds):
        moving &= (gradient.abs().amax(1, keepdim=True) > tolerance) & (stalled < _STALLED)
        if not bool(moving.any()):
            break
        direction = _direction(gradient, history, objective.inverse_curvature)
        slope = _dot(direction, gradient)
        uphill = slope >= 0  # rounding may spoil the history of a column: then follow its gradient
        direction = torch.where(uphill, -gradient * objective.inverse_curvature, direction)
        slope = _dot(direction, gradient)
        length = moving.to(flat)
        for _ in range(_TRIES):
            tried = flat + length * direction
            new_loss, new_gradient = objective(tried)
            too_long = moving & ~(new_loss <= loss + _DESCENT * length * slope + _ROUNDING * loss.abs())
            if not bool(too_long.any()):
                break
            length = torch.where(too_long, length / 3, length)
        else:  # these columns find no descent within the precision of the numbers: they are at their minimum
            moving &= ~too_long
            tried = torch.where(too_long, flat, tried)
            new_gradient = torch.where(too_long, gradient, new_gradient)
            new_loss = torch.where(too_long, loss, new_loss)
        stalled = torch.where(new_loss > loss - _PROGRESS * loss.abs(), stalled + 1, 0.0)
        move, turn = tried - flat, new_gradient - gradient
        curvature = _dot(move, turn)
        history.append((move, turn, torch.where(curvature > _TINY, 1 / curvature.clamp(min=1e-20), 0.0)))
        del history[:-_HISTORY]
        flat, loss, gradient = tried, new_loss, new_gradient
    return flat


def _direction(gradient: Tensor, history: list[tuple[Tensor, Tensor, Tensor]], inverse_curvature: Tensor) -> Tensor:
    """The two-loop recursion of L-BFGS, for each column; moves without curvature have no effect."""
    direction = -gradient
    parts = []
    for move, turn, inverse in reversed(history):
        part = inverse * _dot(move, direction)
        direction = direction - part * turn
        parts.append(part)
    direction = direction * inverse_curvature
    if history:
        move, turn, inverse = history[-1]
        size = _dot(turn.square(), inverse_curvature)
        usable = (size > 0) & (inverse > 0)
        direction = direction * torch.where(usable, _dot(move, turn) / size.clamp(min=1e-20), 1.0)
    for (move, turn, inverse), part in zip(history, reversed(parts), strict=True):
        direction = direction + (part - inverse * _dot(turn, direction)) * move
    return direction


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(1, keepdim=True)
