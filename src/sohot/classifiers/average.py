"""The averaged classifier: what labels cannot tell apart is a candidate, and all candidates are averaged.

A candidate is a logistic regression on labelled rows of both domains; candidates differ in the blend of batch-norm
statistics behind their features, in the share of the target, and in the decay. Held-out labels weigh them, softly. With
a pool each candidate gets two companions, which start at it and also ask that the answers to the pool are sure and name
all classes about equally often, strictly or half so. They join the average as far as the pool is large and lies near
the labelled rows. One temperature makes the probabilities honest.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .preparation import ALL_AXES, NETWORK_AXES, Preparation, prepare
from .regression import Heads, PoolTerm, fit_heads, weighted_targets
from .rows import MOST_FOLDS, POOL, Rows, deal_folds, in_order
from .temperature import POOL_WIDTH, fit_temperature, pool_temperature

POOL_SAMPLE = 4000
"""Most rows of a pool that classifiers are fitted to; all others are labelled all the same."""
_TRUST = 0.1  # how much of the held-out log-likelihood counts: it comes from a handful of rows
_BALANCES = (1.0, 0.5)  # κ of the two companions
_FEWEST_ROWS = 3  # of a pool, per class
_FULL_STRENGTH = 5  # near rows per class from which the pool has its whole strength …
_FULL_PART = 20  # … and its whole part of the average
_SMALLEST = 0.02  # weight of the most distant row
_STRANGE, _FAMILIAR = 0.5, 0.75  # mean nearness of a pool that has no part, and of one with its whole part


@dataclass(frozen=True)
class AverageOptions:
    """What an average is made of.

    Attributes:
        blends: Parts of the target's batch-norm statistics; only 0 counts for features of one pass.
        target_shares: Shares of the target in the loss.
        decays: λ.
        pool_strength: β.
        components: Most axes of the features.
        pool_sample: Most rows of the pool to fit to.
        folds: Most folds.
        learn_from_pool: Whether the pool has any part in the fit.
    """

    blends: tuple[float, ...] = (0.0, 0.5, 1.0)
    target_shares: tuple[float, ...] = (0.5,)
    decays: tuple[float, ...] = (0.03,)
    pool_strength: float = 0.1
    components: int = NETWORK_AXES
    pool_sample: int = POOL_SAMPLE
    folds: int = MOST_FOLDS
    learn_from_pool: bool = True

    @classmethod
    def for_any_rows(cls, **changed: Any) -> "AverageOptions":
        """Return the options for rows of unknown origin: more candidates, and all axes."""
        usual: dict[str, Any] = {"target_shares": (0.5, 0.85), "decays": (0.03, 0.3), "components": ALL_AXES}
        return cls(**(usual | changed))


class HeldOut(NamedTuple):
    """Answers to labelled target rows by classifiers that did not learn from their labels.

    Attributes:
        rows: Numbers of the rows, as they were given.
        log_p: Log-probabilities before the temperature, (m, C).
        labels: Their classes, (m,).
    """

    rows: Tensor
    log_p: Tensor
    labels: Tensor


class AverageFit(NamedTuple):
    """An average, and what was learned on the way.

    Attributes:
        average: The classifier.
        held_out: Held-out answers; None if nothing could be held out, and then nothing is calibrated.
        facts: What the average holds and what the pool added, as JSON.
    """

    average: "Average"
    held_out: HeldOut | None
    facts: dict[str, Any]


class Average(nn.Module):
    """A mean of linear classifiers, in the logarithms of their probabilities.

    Args:
        preparation: Maps features to rows of each group.
        heads: The classifiers.
        part: How much each of them counts, (G, K), adding up to 1.
        temperature: What the mean is divided by.
    """

    def __init__(self, preparation: Preparation, heads: Heads, part: Tensor, temperature: float = 1.0) -> None:
        super().__init__()
        for name, tensor in (preparation._asdict() | heads._asdict()).items():
            self.register_buffer(name, tensor)
        self.register_buffer("part", part)
        self.register_buffer("temperature", torch.tensor(temperature, dtype=torch.float32))

    def forward(self, features: Tensor) -> Tensor:
        """Map features (n, passes, d) to log-probabilities (n, C)."""
        return (self.mix(features) / self.get_buffer("temperature")).log_softmax(1)

    def mix(self, features: Tensor) -> Tensor:
        """Average the log-probabilities, before the temperature: (n, C)."""
        preparation = Preparation(*(self.get_buffer(name) for name in Preparation._fields))
        heads = Heads(*(self.get_buffer(name) for name in Heads._fields))
        return _mix(heads(preparation(features)).log_softmax(3), self.get_buffer("part"))


def _mix(log_p: Tensor, part: Tensor) -> Tensor:
    """Average log-probabilities (G, n, K, C) with weights (G, K): (n, C)."""
    return torch.einsum("gnkc,gk->nc", log_p, part)


_USUAL = AverageOptions()


def fit_average(rows: Rows, num_classes: int, options: AverageOptions = _USUAL) -> AverageFit:
    """Fit the averaged classifier. Nothing depends on the order of the rows.

    Args:
        rows: Labelled rows of both domains (or of one), and the pool. Every class has a labelled row.
        num_classes: Number of classes.
        options: What to average.

    Example:
        >>> x = torch.tensor([[-2.0], [2.0], [-1.5], [1.0], [1.2], [-1.1]]).unsqueeze(1)
        >>> labels, is_target = torch.tensor([0, 1, 0, 1, 1, 0]), torch.tensor([False, False, True, True, True, True])
        >>> fit = fit_average(Rows(x, labels, is_target), 2)
        >>> fit.average(torch.tensor([[[-1.0]], [[1.0]]])).argmax(1)
        tensor([0, 1])
    """
    ordered, where, keys = in_order(rows)
    labelled = int((ordered.labels != POOL).sum())
    sources = int((~ordered.is_target[:labelled]).sum())
    sampled = ordered[: labelled + (options.pool_sample if options.learn_from_pool else 0)]
    folds = deal_folds(ordered.labels[sources:labelled].tolist(), keys[sources:labelled], options.folds)
    two_passes = rows.features.shape[1] > 1
    blends = options.blends if two_passes else (0.0,)
    preparation = prepare(sampled.features, sampled.labels != POOL, blends, options.components)
    task = _Task(preparation(sampled.features), sampled.labels[:labelled], sources, folds, num_classes, options)
    labels_alone = task.fit_labels()
    weights, of_labels = task.weigh(labels_alone)
    facts: dict[str, Any] = {"candidates": task.describe(blends, weights)}
    held_rows = torch.nonzero(folds >= 0).flatten()
    if task.pool < _FEWEST_ROWS * num_classes:
        heads, part, mixed = labels_alone[0], weights, of_labels
        temperature = 1.0 if mixed is None else fit_temperature(mixed, task.targets[held_rows])
    else:
        nearness = near_weights(task.rows, sources, labelled)
        rho = pool_part(nearness[:, labelled - sources :], num_classes)
        companions = task.fit_companions(labels_alone, nearness)
        heads, part = _joined(labels_alone[0], companions[0], weights, rho)
        mixed, temperature = task.calibrate(labels_alone, companions, weights, rho)
        facts["pool"] = task.describe_pool(labels_alone[0], weights, heads, part, nearness, rho)
    average = Average(preparation, heads, part, temperature)
    held_out = None if mixed is None else HeldOut(where[sources + held_rows], mixed, task.targets[held_rows])
    return AverageFit(average, held_out, facts | {"temperature": temperature})


def near_weights(rows: Tensor, sources: int, labelled: int) -> Tensor:
    """Weigh target rows by how near they lie to a labelled row: here, and only here, a row of the pool gets its weight.

    A row of the pool is compared with labelled target rows: one that is about as near to some labelled row as they are
    to the others has the weight 1, one that is much further away has almost none.

    Args:
        rows: Prepared rows (G, n, k): labelled source rows, labelled target rows, the pool.
        sources: Number of labelled source rows.
        labelled: Number of labelled rows.

    Returns:
        Weights of the labelled target rows and the pool, (G, n − sources).
    """
    unit = torch.nn.functional.normalize(rows, dim=2)
    nearest = []
    for group in unit:
        likeness = group[sources:] @ group[:labelled].T
        own = torch.arange(labelled - sources)
        likeness[own, sources + own] = -2.0  # not with itself
        nearest.append(likeness.amax(1))
    of_all = torch.stack(nearest)
    of_labelled = of_all[:, : labelled - sources]
    if not of_labelled.shape[1]:
        return torch.ones_like(of_all)
    usual = of_labelled.quantile(0.1, dim=1, keepdim=True)
    least = 2 * usual - of_labelled.median(1, keepdim=True).values
    return ((of_all - least) / (usual - least).clamp(min=1e-6)).clamp(_SMALLEST, 1)


def pool_part(nearness: Tensor, num_classes: int) -> float:
    """Return the weight ρ of a companion beside its candidate: 0 for a pool that is tiny or shows something else.

    Args:
        nearness: Weights of the rows of the pool, (G, u).
        num_classes: Number of classes.
    """
    size = min(1.0, float(nearness.sum(1).mean()) / (_FULL_PART * num_classes))
    familiar = (float(nearness.mean()) - _STRANGE) / (_FAMILIAR - _STRANGE)
    return size * min(max(familiar, 0.0), 1.0)


def _joined(labels_alone: Heads, companions: Heads, weights: Tensor, rho: float) -> tuple[Heads, Tensor]:
    """Join candidates (G, K) and their companions (G, 2 K) to one set of heads with their parts."""
    heads = Heads(
        torch.cat([labels_alone.weight, companions.weight], 2), torch.cat([labels_alone.bias, companions.bias], 1)
    )
    whole = 1 + len(_BALANCES) * rho
    return heads, torch.cat([weights, *[weights * rho] * len(_BALANCES)], 1) / whole


class _Task:
    """The sorted and prepared rows of one fit, and the regressions on them.

    Columns are settings (share of the target, decay); each is fitted to all labels first, then without those of each
    fold in turn.
    """

    def __init__(
        self, rows: Tensor, labels: Tensor, sources: int, folds: Tensor, classes: int, options: AverageOptions
    ) -> None:
        self.rows, self.labels, self.sources, self.folds = rows, labels, sources, folds
        self.classes, self.options = classes, options
        self.labelled = len(labels)
        self.targets = labels[sources:]
        self.pool = rows.shape[1] - self.labelled
        self.settings = [(share, decay) for share in options.target_shares for decay in options.decays]
        self.num_folds = int(folds.max()) + 1 if len(folds) else 0
        self._targets = self._weighted_targets()

    def _weighted_targets(self) -> Tensor:
        """Targets of all fits: (1 + folds, l, settings, C)."""
        shares = torch.tensor([share for share, _ in self.settings])
        is_target = torch.arange(self.labelled) >= self.sources
        fits = []
        for fold in range(-1, self.num_folds):
            left_out = torch.zeros(self.labelled, dtype=torch.bool)
            if fold >= 0:
                left_out[self.sources :] = self.folds == fold
            each = left_out.expand(len(shares), -1)
            fits.append(weighted_targets(self.labels, is_target, self.classes, shares, each))
        return torch.stack(fits)

    def _decays(self, times: int) -> Tensor:
        return torch.tensor([decay for _, decay in self.settings]).repeat(times)

    def fit_labels(self) -> list[Heads]:
        """Fit all candidates to the labels: whole, then without each fold."""
        fits, count = len(self._targets), len(self.settings)
        columns = torch.cat(list(self._targets), 1)
        heads = fit_heads(self.rows[:, : self.labelled], columns, self._decays(fits))
        return [heads.columns(torch.arange(i * count, (i + 1) * count)) for i in range(fits)]

    def _held_out(self, fits: list[Heads]) -> Tensor | None:
        """Log-probabilities of labelled target rows by the fits without them: (G, m', K, C); None without folds."""
        if not self.num_folds:
            return None
        target = self.rows[:, self.sources : self.labelled]
        answers = torch.stack([heads(target).log_softmax(3) for heads in fits[1:]])  # (folds, G, m, K, C)
        rows = torch.nonzero(self.folds >= 0).flatten()
        return answers[self.folds[rows], :, rows].transpose(0, 1)

    def weigh(self, labels_alone: list[Heads]) -> tuple[Tensor, Tensor | None]:
        """Weigh the candidates by their held-out likelihood, (G, K), and mix their held-out answers, (m', C).

        Without folds the network's own statistics count most, unless a pool supports the others.
        """
        groups, count = len(self.rows), len(self.settings)
        held = self._held_out(labels_alone)
        if held is not None:
            rows = torch.nonzero(self.folds >= 0).flatten()
            truth = self.targets[rows].view(1, -1, 1, 1).expand(groups, -1, count, 1)
            likelihood = held.gather(3, truth).sum((1, 3))
            weights = (_TRUST * likelihood).flatten().softmax(0).view(groups, count)
            return weights, _mix(held, weights)
        falling = torch.arange(2 * groups - 1, 0, -2) if self.pool < _FEWEST_ROWS * self.classes else torch.ones(groups)
        return (falling / falling.sum() / count).unsqueeze(1).expand(groups, count).float().contiguous(), None

    def fit_companions(self, labels_alone: list[Heads], nearness: Tensor) -> list[Heads]:
        """Fit the companions of all candidates: whole, then with the rows of each fold in the pool, without labels.

        A companion starts at its candidate, of the same fold: started at the whole fit, it would know the labels that
        it must not know.
        """
        count, balances = len(self.settings), len(_BALANCES)
        of_labelled, of_pool = nearness[:, : len(self.targets)], nearness[:, len(self.targets) :]
        weights, targets, starts = [], [], []
        for i, heads in enumerate(labels_alone):
            joins = (self.folds == i - 1).float() if i else torch.zeros(len(self.targets))
            rows = torch.cat([of_labelled * joins, of_pool], 1)
            for _ in _BALANCES:
                weights.append((rows / rows.sum(1, keepdim=True)).unsqueeze(2).expand(-1, -1, count))
                targets.append(self._targets[i])
                starts.append(heads)
        strength = (of_pool.sum(1) / (_FULL_STRENGTH * self.classes)).clamp(max=1) * self.options.pool_strength
        columns = len(starts) * count
        balance = torch.tensor(_BALANCES).repeat_interleave(count).repeat(len(labels_alone))
        pool = PoolTerm(torch.cat(weights, 2), strength.unsqueeze(1).expand(-1, columns), balance)
        start = Heads(torch.cat([h.weight for h in starts], 2), torch.cat([h.bias for h in starts], 1))
        heads = fit_heads(
            self.rows,
            torch.cat(targets, 1),
            self._decays(len(starts)),
            pool=pool,
            start=start,
            tolerance=2e-4,
            rounds=60,
        )
        step = balances * count
        return [heads.columns(torch.arange(i * step, (i + 1) * step)) for i in range(len(labels_alone))]

    def calibrate(
        self, labels_alone: list[Heads], companions: list[Heads], weights: Tensor, rho: float
    ) -> tuple[Tensor | None, float]:
        """Mix the held-out answers of whole averages, and find the temperature of the average."""
        if not self.num_folds:
            return None, 1.0
        pool, target = self.rows[:, self.labelled :], self.rows[:, self.sources : self.labelled]
        answers, held = [], []
        for i, pair in enumerate(zip(labels_alone, companions, strict=True)):
            heads, part = _joined(*pair, weights, rho)
            of_pool = _mix(heads(pool).log_softmax(3), part)
            if not i:
                log_p = of_pool.log_softmax(1)
                continue
            answers.append(of_pool.argmax(1))
            held.append(_mix(heads(target).log_softmax(3), part))
        rows = torch.nonzero(self.folds >= 0).flatten()
        mixed = torch.stack(held)[self.folds[rows], rows]
        centre = pool_temperature(log_p, torch.stack(answers))
        return mixed, fit_temperature(mixed, self.targets[rows], centre, POOL_WIDTH)

    def describe(self, blends: tuple[float, ...], weights: Tensor) -> list[dict[str, float]]:
        """List the candidates with their weights."""
        return [
            {"blend": blend, "target_share": share, "decay": decay, "weight": round(float(weight), 4)}
            for blend, of_group in zip(blends, weights, strict=True)
            for (share, decay), weight in zip(self.settings, of_group, strict=True)
        ]

    def describe_pool(
        self, alone: Heads, weights: Tensor, heads: Heads, part: Tensor, nearness: Tensor, rho: float
    ) -> dict[str, float]:
        """Say what the pool added: how near it lies, its part of the average, and how many of its labels it changed."""
        pool = self.rows[:, self.labelled :]
        before = _mix(alone(pool).log_softmax(3), weights).argmax(1)
        after = _mix(heads(pool).log_softmax(3), part).argmax(1)
        near = nearness[:, len(self.targets) :]
        share = len(_BALANCES) * rho / (1 + len(_BALANCES) * rho)
        return {
            "rows": self.pool,
            "nearness": round(float(near.mean()), 4),
            "part": round(share, 4),
            "changed": round(float((before != after).float().mean()), 4),
        }
