"""The logistic regression behind the classifier on frozen features, with and without unlabelled images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..heads.logistic import fit_logistic
from ..heads.pool import FULL_ROWS, Pool, class_prior
from ..heads.preparation import principal_axes
from ..methods.settings import HeadSettings
from ..networks.two_streams import TwoStreams
from ..selection.folds import Fold
from ..selection.held_out import HeldOut, Logits

TARGET_SHARE = HeadSettings.target_weight or 0.5
"""Share of the target in the cross-entropy, unless --target-weight is given: as in every classifier on features."""

DECAY = HeadSettings.head_decay
"""λ in the unit in which features have a mean square of 1, unless --head-decay is given: likewise."""


class LabelledFeatures(NamedTuple):
    """Features of images of one domain, (n, d), and their classes, (n,)."""

    rows: Tensor
    labels: Tensor


@dataclass(frozen=True)
class FrozenHead:
    """A classifier on frozen features.

    Attributes:
        weight: Shape (classes, features), as of `nn.Linear`.
        bias: Shape (classes,).
    """

    weight: Tensor
    bias: Tensor

    def logits(self, rows: Tensor) -> Tensor:
        """Classify features."""
        return nn.functional.linear(rows, self.weight, self.bias)

    @torch.no_grad()
    def install(self, model: TwoStreams) -> None:
        """Make it the classifier of both domains."""
        for head in model.heads.values():
            assert isinstance(head, nn.Linear)
            head.weight.copy_(self.weight)
            head.bias.copy_(self.bias)


class FrozenProblem:
    """A logistic regression over the images of both domains, or of one.

    It minimises the cross-entropy, in which each domain has its share whatever its number of rows, plus λ‖W‖².

    Args:
        source: Features of the source; None to learn from the target alone.
        target: Features of the target; None to learn from the source alone.
        num_classes: Number of classes.
        target_share: Share of the target in the cross-entropy; None for `TARGET_SHARE`.
        decay: λ on the weights of the features as they are; None for `DECAY`, in the unit of the features.
        pool: Features of unlabelled target images; None for none.
        device: Where to compute; None for where the features are.

    Example:
        >>> rows, labels = torch.tensor([[0.0], [1.0], [10.0], [11.0]]), torch.tensor([0, 0, 1, 1])
        >>> problem = FrozenProblem(None, LabelledFeatures(rows, labels), 2)
        >>> problem.solve().logits(rows).argmax(1)
        tensor([0, 0, 1, 1])
        >>> problem.held_out([Fold([0, 2], [1, 3]), Fold([1, 3], [0, 2])]).right
        4
    """

    def __init__(
        self,
        source: LabelledFeatures | None,
        target: LabelledFeatures | None,
        num_classes: int,
        *,
        target_share: float | None = None,
        decay: float | None = None,
        pool: Tensor | None = None,
        device: torch.device | None = None,
    ) -> None:
        parts = [part for part in (source, target) if part is not None]
        rows = torch.cat([part.rows for part in parts]).to(device).double()
        self.num_classes = num_classes
        self.labels = torch.cat([part.labels for part in parts]).to(rows.device)
        self.first_target = 0 if source is None else len(source.rows)
        self.target_share = TARGET_SHARE if target_share is None else target_share
        self.size = rows.shape[1]
        self.mean = rows.mean(0)
        rows = rows - self.mean  # the bias is free, so this changes the conditioning, not the classifier
        self.scale = float(rows.square().mean().sqrt()) or 1.0
        self.decay = None if decay is None else decay / self.scale**2
        # The minimum lies in the span of the rows, and along their principal axes it is found sooner.
        others = rows[:0] if pool is None else pool.to(rows) - self.mean
        spanned = torch.cat([rows, others])
        self.axes = principal_axes(spanned.unsqueeze(0), min(spanned.shape))[0]
        self.rows, self.pool = rows / self.scale @ self.axes, others / self.scale @ self.axes

    def solve(self) -> FrozenHead:
        """Fit the classifier to all rows."""
        return self._solve([torch.ones_like(self.labels, dtype=torch.bool)])[0]

    def solve_with_pool(self, strength: float) -> tuple[FrozenHead, list[Logits]]:
        """Fit the classifier to all rows and to the pool.

        Args:
            strength: β, the weight of the pool's loss.

        Returns:
            The classifier; and what it and the classifier without the pool say about the pool.
        """
        everything = torch.ones_like(self.labels, dtype=torch.bool)
        heads = self._learn_pool(everything, self.pool, strength), *self._solve([everything], fold_back=False)
        answers = [head.logits(self.pool).cpu().numpy() for head in heads]
        return self._fold_back(heads[0]), answers

    def held_out(self, folds: Sequence[Fold], pool_strength: float | None = None) -> HeldOut:
        """Fit without the rows that each fold of the target holds out; return what the classifiers say about them.

        Args:
            folds: Rows of the target.
            pool_strength: β of the pool's loss, to learn from the pool too: the rows held out join it without their
                labels; None to leave it out.
        """
        kept = [torch.ones_like(self.labels, dtype=torch.bool) for _ in folds]
        held = [torch.tensor(fold.held, device=self.labels.device) + self.first_target for fold in folds]
        for mask, rows in zip(kept, held, strict=True):
            mask[rows] = False
        if pool_strength is None:
            heads = self._solve(kept, fold_back=False)
        else:
            pools = [torch.cat([self.pool, self.rows[rows]]) for rows in held]
            heads = [self._learn_pool(*given, pool_strength) for given in zip(kept, pools, strict=True)]
        found = [
            HeldOut(head.logits(self.rows[rows]).cpu().numpy(), self.labels[rows].cpu().numpy())
            for head, rows in zip(heads, held, strict=True)
        ]
        return HeldOut.join(found)

    def _solve(self, kept: Sequence[Tensor], *, fold_back: bool = True) -> list[FrozenHead]:
        """Fit one classifier to each choice of rows; on features as they are, or on the prepared ones."""
        stack = self.rows.expand(len(kept), *self.rows.shape)
        labels = self.labels.expand(len(kept), -1)
        decay = torch.stack([self._decay(mask) for mask in kept])
        found = fit_logistic(stack, labels, torch.stack([*map(self._weights, kept)]), decay, self.num_classes)
        heads = [FrozenHead(weight.T, bias) for weight, bias in zip(*found, strict=True)]
        return [self._fold_back(head) for head in heads] if fold_back else heads

    def _learn_pool(self, kept: Tensor, pool: Tensor, strength: float) -> FrozenHead:
        """Fit a classifier to labelled rows and a pool, on prepared features, from where the labels alone lead."""
        labelled = self.rows[None], self.labels[None], self._weights(kept)[None], self._decay(kept)[None]
        start = fit_logistic(*labelled, self.num_classes)
        weights = pool.new_full((1, len(pool)), 1 / len(pool))
        prior = class_prior(pool[None] @ start.weight + start.bias.unsqueeze(1), weights)
        beta = pool.new_tensor([strength * min(1, len(pool) / (FULL_ROWS * self.num_classes))])
        found = fit_logistic(*labelled, self.num_classes, pool=Pool(pool[None], weights, beta, prior), start=start)
        return FrozenHead(found.weight[0].T, found.bias[0])

    def _decay(self, kept: Tensor) -> Tensor:
        if self.decay is not None:
            return self.rows.new_tensor(self.decay)
        rows = self.rows[kept]
        return DECAY * (rows - rows.mean(0)).square().sum() / (len(rows) * self.size)

    def _weights(self, kept: Tensor) -> Tensor:
        """Weight of each row: domains have their shares, whose rows are equal."""
        weights = kept.double()
        source, target = weights[: self.first_target], weights[self.first_target :]
        shares = (1 - self.target_share, self.target_share) if len(source) and len(target) else (1.0, 1.0)
        for part, share in zip((source, target), shares, strict=True):
            part *= share / part.sum().clamp(min=1)
        return weights

    def _fold_back(self, head: FrozenHead) -> FrozenHead:
        """Fold the preparation of the features into the classifier."""
        weight = head.weight @ self.axes.T / self.scale
        return FrozenHead(weight.float().cpu(), (head.bias - weight @ self.mean).float().cpu())
