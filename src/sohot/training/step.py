"""One training step's forward pass: the model, its objective, and what they report."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..methods.settings import FitSettings
from .objective import Losses, Objective, full_precision
from .ranks import Ranks
from .streams import Output, as_streams, tail_of


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

    def forward(
        self,
        source: Tensor | None,
        source_labels: Tensor | None,
        target: Tensor | None,
        target_labels: Tensor | None,
    ) -> Losses:
        """Compute the losses ("loss" carries the gradient), accuracies and the clip rate of a batch.

        With several ranks the inputs are those of this rank's rows, the labels those of the whole batch, and so are the
        losses: the same on every rank.
        """
        if source is None and target is None:
            raise ValueError("batches returned a step without rows of either domain")
        streams = as_streams(self.model)
        output: Output
        if not self.objective.method.uses_target:
            through = streams(None, source, from_trunk=self.from_trunk)
            output = _Output(through.target_features, None, through.target_logits, None, through.clip_rate)
        else:
            output = streams(source, target, from_trunk=self.from_trunk)
        if self.ranks.several:
            output = self._gather(output, source_labels, target_labels)
        with torch.autocast(_device_type(source, target), enabled=False):
            penalty = streams.head_penalty(self.head_decay, self.coupling)
            if self.objective.start is not None:
                penalty = penalty + self.objective.start(self._tail)
        losses: Losses = self.objective(output, source_labels, target_labels, head_penalty=penalty)
        return losses | _report(output, source_labels, target_labels)

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
