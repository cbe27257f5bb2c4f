"""Prepare the rows of each problem once, however many fits use it."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .layout import Labels
from .preparation import Preparation, prepare
from .problem import FeatureProblem, Rows, TrainingRows
from .settings import HeadSettings
from .training import PreparedFit


class Ready(NamedTuple):
    """A fit that can train, and what brings raw features there, by domain."""

    fit: PreparedFit
    preparations: dict[str, Preparation]


_AT_ONCE = 64
"""Problems prepared together on a GPU: raw features in float64 are larger than what trains."""

_Key = tuple[int, bool, bool, int]


class Preparing:
    """Prepares problems on a device and remembers them.

    Args:
        device: Where the fits will train.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._ready: dict[_Key, Ready] = {}
        self._features: dict[int, Tensor] = {}  # of shared tensors, on the device

    def __call__(self, problems: Sequence[FeatureProblem], settings: Sequence[HeadSettings], size: int) -> list[Ready]:
        """Prepare problems whose features come to `size` coordinates."""
        keys: list[_Key] = []
        missing: dict[_Key, tuple[FeatureProblem, TrainingRows]] = {}
        for problem, of_fit in zip(problems, settings, strict=True):
            method = of_fit.resolved_method()
            key = id(problem), method.uses_source, method.uses_target, size
            keys.append(key)
            if key not in self._ready:
                missing[key] = problem, problem.seen_by(method)
        # On a CPU one by one: a result must not depend, not even in its last digit, on what else is prepared with it.
        at_once = 1 if self.device.type == "cpu" else _AT_ONCE
        items = list(missing.items())
        for start in range(0, len(items), at_once):
            part = dict(items[start : start + at_once])
            self._ready |= zip(part, self._prepare(list(part.values()), size), strict=True)
        return [self._ready[key] for key in keys]

    def _prepare(self, problems: list[tuple[FeatureProblem, TrainingRows]], size: int) -> list[Ready]:
        sources = [None if seen.source is None else self._take(seen.source) for _, seen in problems]
        targets = [self._take(seen.target) for _, seen in problems]
        apart = sources[0] is not None and sources[0].shape[1] != targets[0].shape[1]
        pairs = list(zip(sources, targets, strict=True))
        if apart:  # nothing relates the columns of the two domains: each has its own axes
            for_source = prepare([source for source in sources if source is not None], size)
            for_target = prepare(targets, size)
        else:
            both = [target if source is None else torch.cat([source, target]) for source, target in pairs]
            for_source = for_target = prepare(both, size)
        found = zip(problems, pairs, for_source, for_target, strict=True)
        return [_ready(*one) for one in found]

    def _take(self, rows: Rows) -> Tensor:
        if rows.chosen is None:
            return rows.features.to(self.device)
        if id(rows.features) not in self._features:
            self._features[id(rows.features)] = rows.features.to(self.device)
        return rows.of(self._features[id(rows.features)])


def _ready(
    problem: tuple[FeatureProblem, TrainingRows],
    pair: tuple[Tensor | None, Tensor],
    for_source: Preparation,
    for_target: Preparation,
) -> Ready:
    (whole, seen), (source, target) = problem, pair
    labels = Labels(seen.target.labels.new_empty(0) if seen.source is None else seen.source.labels, seen.target.labels)
    fit = PreparedFit(
        None if source is None else for_source(source.double()).to(whole.dtype),
        for_target(target.double()).to(whole.dtype),
        labels,
    )
    kept = {"target": Preparation(*(x.to(whole.dtype) for x in for_target))}
    if for_source is for_target:
        if whole.source.shape[1] == whole.target.shape[1]:
            kept["source"] = kept["target"]
    else:
        kept["source"] = Preparation(*(x.to(whole.dtype) for x in for_source))
    return Ready(fit, kept)
