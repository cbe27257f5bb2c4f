"""One training step's forward pass: the model, its objective, and what they report."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..methods.settings import FitSettings
from .objective import Losses, Objective
from .pool_rows import PoolBatch
from .pool_terms import PoolAnswers
from .ranks import Ranks
from .streams import Output, as_streams, full_precision, tail_of

Remember = Callable[[Tensor | None, Tensor | None], None]


class _Output(NamedTuple):
    """A reassembled output: from rows that went through another stream, or from those of all ranks."""

    source_features: Tensor | None
    target_features: Tensor | None
    source_logits: Tensor | None
    target_logits: Tensor | None
    clip_rate: Any


class TrainingStep(nn.Module):
    """Returns the losses of a batch as a dict; a module, so that devices and precision wrap all of it.

    At test time the target stream works alone. So if a method learns only from the source (`s`), the source rows go
    through the target stream: it is the one that must learn.

    Args:
        model: The two streams.
        objective: What they minimise.
        settings: λ, β' and whether inputs are outputs of the trunk.
        ranks: The processes that share the rows of a batch; None for this one alone.
    """

    def __init__(
        self, model: nn.Module, objective: Objective, settings: FitSettings, ranks: Ranks | None = None
    ) -> None:
        super().__init__()
        self.ranks = ranks or Ranks()
        self.model = model
        self.objective = objective
        self.head_decay = settings.head_decay
        self.coupling = settings.coupling
        self.from_trunk = settings.from_trunk
        self._tail = tail_of(model)  # in a tuple, so that parameters of the model are not registered again
        self.remember_source: Remember | None = None

    def forward(
        self,
        source: Tensor | None,
        source_labels: Tensor | None,
        target: Tensor | None,
        target_labels: Tensor | None,
        pool: PoolBatch | None = None,
    ) -> Losses:
        """Compute the losses ("loss" carries the gradient), accuracies and the clip rate of a batch.

        With several ranks the inputs are those of this rank's rows, the labels those of the whole batch, and so are the
        losses: the same on every rank. Pool rows pass the target stream beside the labelled ones.
        """
        if source is None and target is None:
            raise ValueError("batches returned a step without rows of either domain")
        streams = as_streams(self.model)
        of_target = source if not self.objective.method.uses_target else target
        own = 0 if of_target is None else len(of_target)
        if pool is not None:
            of_target = pool.inputs if of_target is None else torch.cat([of_target, pool.inputs])
        output: Output
        if not self.objective.method.uses_target:
            through = streams(None, of_target, from_trunk=self.from_trunk)
            features, logits = _first(through.target_features, own), _first(through.target_logits, own)
            output = _Output(features, None, logits, None, through.clip_rate)
        else:
            through = streams(source, of_target, from_trunk=self.from_trunk)
            output = through
            if pool is not None:
                features, logits = _first(through.target_features, own), _first(through.target_logits, own)
                output = _Output(through.source_features, features, through.source_logits, logits, through.clip_rate)
        answers = None if pool is None else self._pool_answers(through, own, pool)
        if self.ranks.several:
            output = self._gather(output, source_labels, target_labels)
        with torch.autocast(_device_type(source, target), enabled=False):
            penalty = streams.head_penalty(self.head_decay, self.coupling)
            if self.objective.start is not None:
                penalty = penalty + self.objective.start(self._tail)
        losses: Losses = self.objective(
            output, source_labels, target_labels, head_penalty=penalty, pool=pool, answers=answers
        )
        if pool is not None and self.remember_source is not None:
            self.remember_source(pool.source_rows, output.source_logits)
        return losses | _report(output, source_labels, target_labels)

    def _pool_answers(self, output: Output, before: int, pool: PoolBatch) -> PoolAnswers:
        """Take the pool rows from the output of the target stream, those of all ranks."""
        assert output.target_logits is not None  # pool rows pass the target stream
        logits = self.ranks.gather(full_precision(output.target_logits[before:]), len(pool.labels))
        return PoolAnswers(logits, pool.labels, pool.kept, pool.prior)

    def _gather(self, output: Output, source_labels: Tensor | None, target_labels: Tensor | None) -> Output:
        """Join the rows of all ranks."""
        labels = source_labels, target_labels
        own = [0 if of is None else self.ranks.shares(len(of))[self.ranks.own] for of in labels]

        def whole(rows: Tensor | None, of: Tensor | None) -> Tensor | None:
            return None if rows is None or of is None else self.ranks.gather(full_precision(rows), len(of))

        rate = output.clip_rate
        if rate is not None:
            device = next(of.device for of in labels if of is not None)
            rate = self.ranks.mean(torch.as_tensor(rate, dtype=torch.float32, device=device), sum(own))
        return _Output(
            whole(output.source_features, source_labels),
            whole(output.target_features, target_labels),
            whole(output.source_logits, source_labels),
            whole(output.target_logits, target_labels),
            rate,
        )


def _first(rows: Tensor | None, count: int) -> Tensor | None:
    """Return the first rows; None for none."""
    return rows[:count] if rows is not None and count else None


def _device_type(*inputs: Tensor | None) -> str:
    return next(x.device.type for x in inputs if x is not None)


@torch.no_grad()
def _report(output: Output, source_labels: Tensor | None, target_labels: Tensor | None) -> Losses:
    """Accuracy on the rows of this batch, and the share of features clipped by the norm bound."""
    report: Losses = {}
    given = ("source", output.source_logits, source_labels), ("target", output.target_logits, target_labels)
    for domain, logits, labels in given:
        if logits is not None and labels is not None:
            report[f"accuracy_{domain}"] = (logits.argmax(1) == labels).float().mean()
    if output.clip_rate is not None:
        device = next(labels.device for labels in (source_labels, target_labels) if labels is not None)
        report["clip_rate"] = torch.as_tensor(output.clip_rate, dtype=torch.float32, device=device).detach()
    return report
