"""The losses of other papers for all fits of a stack in a few batched products."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ..methods.settings import HeadSettings
from .layout import Layout


class _Block(NamedTuple):
    """Slots of one bucket in one domain: G classes of W slots each."""

    first: int
    classes: int
    width: int
    taken: Tensor  # (F, G, W, 1) 1 where there is a row
    counts: Tensor  # (F, G, 1, 1) rows of each class, 1 at least

    def of(self, features: Tensor) -> Tensor:
        """Take the block out of all slots: (F, G, W, k)."""
        slots = features[:, self.first : self.first + self.classes * self.width]
        return slots.reshape(len(features), self.classes, self.width, -1)


class ClassRows:
    """Groups of rows of one class and one domain.

    Args:
        layout: Where the rows lie.
        like: A tensor that tells the type and the device.

    Attributes:
        counts: Rows of each group, (F, groups).
    """

    def __init__(self, layout: Layout, like: Tensor) -> None:
        taken = layout.taken()
        self.blocks: list[_Block] = []
        counts = []
        for bucket in layout.buckets:
            sides = (
                (bucket.source_first, bucket.source_width),
                (layout.sizes[0] + bucket.target_first, bucket.target_width),
            )
            for first, width in sides:
                if not width:
                    continue
                block = _Block(first, len(bucket.classes), width, taken, taken)
                own = block.of(taken.unsqueeze(2))
                rows = own.sum(2, keepdim=True)
                counts.append(rows.flatten(1))
                self.blocks.append(block._replace(taken=own.to(like), counts=rows.clamp(min=1).to(like)))
        self.counts = torch.cat(counts, 1).to(like)

    def squares(self, features: Tensor) -> Tensor:
        """Sum up the squared distances of each group's rows from their mean: (F, groups)."""
        found = []
        for block in self.blocks:
            rows = block.of(features) * block.taken
            centred = rows - rows.sum(2, keepdim=True) / block.counts
            found.append((centred * block.taken).square().sum((2, 3)))
        return torch.cat(found, 1)

    @torch.no_grad()
    def spread(self, features: Tensor) -> Tensor:
        """Give the root mean squared distance of a row from its mean, over groups of two rows or more: (F,).

        The measure is that of `sohot.losses.domain_loss.RivalLoss`; 0 where no group has two rows.
        """
        shown = self.counts > 1
        rows = self.counts.masked_fill(~shown, 0).sum(1).clamp(min=1)
        return (self.squares(features).masked_fill(~shown, 0).sum(1) / rows).sqrt()


class StackedRival(ABC):
    """A loss on the features of both domains.

    Args:
        settings: Settings of each fit; the method is that of the first.
        layout: Where the rows lie.
        like: A tensor that tells the type and the device.
    """

    is_scaled = True  # whether features are divided by their spread at the start, where feature_scale asks for it

    def __init__(self, settings: Sequence[HeadSettings], layout: Layout, like: Tensor) -> None:
        self.rows = ClassRows(layout, like)
        self.weight = _column([of_fit.used_loss_weight() for of_fit in settings], like)

    @abstractmethod
    def compute(self, features: Tensor) -> Tensor:
        """Give the loss of each fit's scaled features (F, slots, k), not yet weighted: (F,)."""

    def __call__(self, features: Tensor, scale: Tensor) -> Tensor:
        """Compute the weighted loss of features (F, slots, k), divided by `scale` (F,) where that matters."""
        if self.is_scaled:
            features = features / scale.view(-1, 1, 1)
        return self.weight * self.compute(features)


class _Variance(StackedRival):
    """See `sohot.losses.VariancePenalty`."""

    def compute(self, features: Tensor) -> Tensor:
        shown = self.rows.counts > 1
        variances = self.rows.squares(features) / self.rows.counts.clamp(min=1)
        return variances.masked_fill(~shown, 0).sum(1) / shown.sum(1).clamp(min=1)


class _OfPairs(StackedRival):
    """A loss of the distances between source rows and target rows."""

    def __init__(self, settings: Sequence[HeadSettings], layout: Layout, like: Tensor) -> None:
        super().__init__(settings, layout, like)
        self.source_slots = layout.sizes[0]
        taken, classes = layout.taken().double(), layout.classes()
        source, target = taken[:, : self.source_slots], taken[:, self.source_slots :]
        both = (source.unsqueeze(2) * target.unsqueeze(1)).bool()
        alike = classes[: self.source_slots].unsqueeze(1) == classes[self.source_slots :]
        self.same, self.other = (both & alike).to(like.device), (both & ~alike).to(like.device)
        self.target_shares = (target / target.sum(1, keepdim=True)).unsqueeze(2).to(like)

    def squared(self, features: Tensor) -> Tensor:
        """Measure each source row against each target row: (F, n, m).

        Rows are first moved by the mean of the target, as in `sohot.losses.cross_pairs`.
        """
        source, target = features[:, : self.source_slots], features[:, self.source_slots :]
        centre = (target.detach() * self.target_shares).sum(1, keepdim=True)
        x, y = source - centre, target - centre
        lengths = x.square().sum(2).unsqueeze(2) + y.square().sum(2).unsqueeze(1)
        return torch.baddbmm(lengths, x, y.mT, alpha=-2).clamp(min=0)


class _ContrastiveSemantic(_OfPairs):
    """See `sohot.losses.ContrastiveSemanticAlignment`."""

    def __init__(self, settings: Sequence[HeadSettings], layout: Layout, like: Tensor) -> None:
        super().__init__(settings, layout, like)
        self.margin = _column([of_fit.margin for of_fit in settings], like).view(-1, 1, 1)
        self.counts = [chosen.sum((1, 2)).clamp(min=1) for chosen in (self.same, self.other)]

    def compute(self, features: Tensor) -> Tensor:
        squared = self.squared(features)
        apart = (self.margin - squared.clamp(min=1e-12).sqrt()).clamp(min=0).square()
        near = squared.masked_fill(~self.same, 0).sum((1, 2)) / self.counts[0]
        far = apart.masked_fill(~self.other, 0).sum((1, 2)) / self.counts[1]
        return (near + far) / 2


class _StochasticNeighborhood(_OfPairs):
    """See `sohot.losses.StochasticNeighborhoodAlignment`."""

    def __init__(self, settings: Sequence[HeadSettings], layout: Layout, like: Tensor) -> None:
        super().__init__(settings, layout, like)
        self.margin = _column([of_fit.margin for of_fit in settings], like).unsqueeze(1)
        self.has_both = self.same.any(1) & self.other.any(1)
        self.count = self.has_both.sum(1).clamp(min=1)

    def compute(self, features: Tensor) -> Tensor:
        squared = self.squared(features)
        farthest = squared.masked_fill(~self.same, -1).amax(1)
        nearest = squared.masked_fill(~self.other, float("inf")).amin(1).masked_fill(~self.has_both, 0)
        gap = (farthest - nearest + self.margin).clamp(min=0)
        return gap.masked_fill(~self.has_both, 0).sum(1) / self.count


class _GraphEmbedding(_OfPairs):
    """See `sohot.losses.GraphEmbeddingAlignment`."""

    is_scaled = False

    def compute(self, features: Tensor) -> Tensor:
        squared = self.squared(features)
        near = squared.masked_fill(~self.same, 0).sum((1, 2))
        far = squared.masked_fill(~self.other, 0).sum((1, 2))
        return (near / far.masked_fill(far == 0, 1)) * (far > 0)


class _SupervisedContrastive(StackedRival):
    """See `sohot.losses.SupervisedContrastive`."""

    is_scaled = False

    def __init__(self, settings: Sequence[HeadSettings], layout: Layout, like: Tensor) -> None:
        super().__init__(settings, layout, like)
        self.temperature = _column([of_fit.temperature for of_fit in settings], like).view(-1, 1, 1)
        taken, classes = layout.taken().double(), layout.classes()
        itself = torch.eye(layout.slots, dtype=torch.bool)
        alike = (classes.unsqueeze(1) == classes) & ~itself
        partners = taken.unsqueeze(2) * taken.unsqueeze(1) * alike
        counts = partners.sum(2)
        anchors = (counts > 0).double()
        self.hidden = (itself | ~taken.bool().unsqueeze(1)).to(like.device)  # what an anchor does not look at
        self.partners = (partners / counts.clamp(min=1).unsqueeze(2)).to(like)
        self.anchors = (anchors / anchors.sum(1, keepdim=True).clamp(min=1)).to(like)

    def compute(self, features: Tensor) -> Tensor:
        rows = normalize(features, dim=2)
        similarity = rows @ rows.mT / self.temperature
        # −mean log softmax over the partners is log-sum-exp minus the partners' mean: less work than a log-softmax.
        total = similarity.masked_fill(self.hidden, -torch.inf).logsumexp(2)
        return ((total - (similarity * self.partners).sum(2)) * self.anchors).sum(1)


_RIVALS: dict[str, type[StackedRival]] = {
    "variance": _Variance,
    "ccsa": _ContrastiveSemantic,
    "dsne": _StochasticNeighborhood,
    "dage": _GraphEmbedding,
    "supcon": _SupervisedContrastive,
}


def make_rival(settings: Sequence[HeadSettings], layout: Layout, like: Tensor) -> StackedRival | None:
    """Build the loss that the fits' method calls for; None for a method without one. See `StackedRival`."""
    kind = _RIVALS.get(settings[0].resolved_method().name)
    return None if kind is None else kind(settings, layout, like)


def _column(values: Sequence[float], like: Tensor) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).to(like)
