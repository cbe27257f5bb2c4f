"""Learning from the pool: the teacher labels it, its answers are remembered, and a collapse is noticed and undone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from ..functional.grouping import class_counts
from ..functional.unlabelled import align_shares, estimated_prior
from ..methods.settings import FitSettings
from .collapse import Collapse, PoolHealth, spread
from .inputs import Domain, Shown
from .neighbours import nearest_rows
from .objective import Losses
from .pool_rows import PoolBatch, PoolBatches, PoolDomain, PoolInputs
from .ranks import Ranks
from .streams import as_streams, full_precision
from .teacher import Teacher

REFRESH = 10
"""Steps between estimates of the class shares, searches for neighbours and looks for a collapse."""

_AT_ONCE = 64  # rows that the teacher answers for at once before the first step


_REMEMBERED = ("neighbours", "features", "probabilities", "source_confidence")


class PseudoLabels(NamedTuple):
    """What the teacher's answers say about every row of the pool."""

    labels: Tensor  # (n,)
    confidence: Tensor  # (n,)
    kept: Tensor  # (n,) 1 or 0


class PoolLearner(nn.Module):
    """The state of learning from a pool; what it remembers is part of a checkpoint.

    A batch shows few rows. Pseudo-labels, class shares and neighbours need all of them, so the last features and
    answers for every row are kept.

    Args:
        model: The model, on its device, with the weights from which training starts.
        inputs: The pool.
        source: The source domain; None for a method that does not learn from it.
        settings: The settings.
        fabric: Device and precision.
        ranks: The processes that share a batch.
    """

    prior: Tensor
    ramp: Tensor
    neighbours: Tensor | None
    features: Tensor | None  # (n, d) of the pool, as the teacher last saw it
    probabilities: Tensor | None  # (n, C) its answers
    source_confidence: Tensor | None  # the highest probability of each source row, as the model last answered

    def __init__(
        self,
        model: nn.Module,
        inputs: PoolInputs,
        source: Domain | None,
        settings: FitSettings,
        fabric: Fabric,
        ranks: Ranks,
    ) -> None:
        super().__init__()
        if len(inputs.weak) != len(inputs.strong):
            raise ValueError("the two views of the pool must have the same rows")
        self.settings, self.recipe = settings, settings.pool_recipe()
        self._fabric, self._ranks = fabric, ranks
        self.views = PoolDomain("pool", inputs.weak), PoolDomain("pool", inputs.strong)
        self.batches = PoolBatches(len(inputs.weak), settings.pool_rows, settings.seed)
        self._source = source
        self._teacher = Teacher(model, self.recipe.teacher)
        self._tested = self._teacher if self.recipe.tested is None else Teacher(model, self.recipe.tested)
        self._start = {name: tensor.detach().clone() for name, tensor in _changing(model).items()}
        self.num_classes = as_streams(model).num_classes
        self.register_buffer("prior", torch.full((self.num_classes,), 1 / self.num_classes))
        self.register_buffer("ramp", torch.zeros(()), persistent=False)
        for name in _REMEMBERED:
            self.register_buffer(name, None)
        self.health: PoolHealth | None = None
        self.collapse: str | None = None

    def begin(self) -> None:
        """Show the teacher every row once, so that the first step already knows the whole pool."""
        self.features, self.probabilities = self._answers_to(self.views[0], "target")
        if self._source is not None:
            stream = "source" if self.settings.resolved_method().uses_target else "target"
            self.source_confidence = self._answers_to(self._source, stream)[1].amax(1)
        self._place()
        self._refresh()
        labels = self.probabilities.argmax(1)
        self.health = PoolHealth.of(labels, self.num_classes, spread(self.features))

    @torch.no_grad()
    def _answers_to(self, domain: Domain, stream: str, teacher: Teacher | None = None) -> tuple[Tensor, Tensor]:
        """Return the features and class probabilities of all rows of a domain."""
        answers = []
        for rows in torch.split(torch.arange(len(domain.inputs)), _AT_ONCE):
            inputs = domain.arrange(domain.inputs.batch(rows).to(self._fabric.device))
            answers.append(self._answers(inputs, stream, teacher))
        features, probabilities = (torch.cat(parts) for parts in zip(*answers, strict=True))
        return features, probabilities

    def _answers(self, inputs: Tensor, stream: str, teacher: Teacher | None = None) -> tuple[Tensor, Tensor]:
        """Return the features and class probabilities of a teacher; of the one that labels the pool if None."""
        streams = as_streams((teacher or self._teacher).model)
        with self._fabric.autocast():
            given = (inputs, None) if stream == "source" else (None, inputs)
            output = streams(*given, from_trunk=self.settings.from_trunk)
        features, logits = getattr(output, f"{stream}_features"), getattr(output, f"{stream}_logits")
        return full_precision(features), full_precision(logits).softmax(1)

    @torch.no_grad()
    def look(
        self, weak: Shown, strong: Shown, source_rows: Tensor | None, *, refresh: bool
    ) -> tuple[PoolBatch | None, Losses]:
        """Let the teacher answer for the pool rows of a step; return what to learn from, and numbers for the log.

        Args:
            weak: This rank's rows in the weak view, and the numbers of all rows of the batch.
            strong: The same rows in the strong view.
            source_rows: Numbers of the batch's source rows; None if it has none.
            refresh: Whether to estimate the class shares and to look for neighbours anew.
        """
        if self.collapse is not None or self.features is None or self.probabilities is None:
            return None, {}
        rows = weak.labels
        features, probabilities = self._answers(weak.inputs, "target")
        features, probabilities = (self._ranks.gather(own, len(rows)) for own in (features, probabilities))
        before = self._pseudo_labels().labels[rows]
        self.features.index_copy_(0, rows, features.to(self.features.dtype))
        self.probabilities.index_copy_(0, rows, probabilities.to(self.probabilities.dtype))
        if refresh:
            self._refresh()
        now = self._pseudo_labels()
        numbers = {
            "mask_rate": now.kept.mean(),
            "pool_confidence": now.confidence.mean(),
            "pool_largest": class_counts(now.labels, self.num_classes).max() / len(now.labels),
            "pool_changed": (before != now.labels[rows]).float().mean(),
        }
        batch = PoolBatch(
            inputs=(strong if self.recipe.view == "strong" else weak).inputs,
            labels=now.labels[rows],
            kept=now.kept[rows],
            prior=self.prior,
            ramp=self.ramp,
            source_rows=source_rows,
        )
        return batch, numbers

    @torch.no_grad()
    def remember_source(self, rows: Tensor | None, logits: Tensor | None) -> None:
        """Store how sure the model now is of source rows."""
        if self.source_confidence is not None and rows is not None and logits is not None:
            confidence = full_precision(logits).softmax(1).amax(1)
            self.source_confidence.index_copy_(0, rows, confidence.to(self.source_confidence.dtype))

    def follow(self, model: nn.Module) -> None:
        """Update the averages after a step."""
        for average in self._averages().values():
            average.follow(model)

    def start_over_if_collapsed(self, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> bool:
        """Look for a collapse now and then; if there is one, go back to the start. Returns whether it did."""
        if self.collapse is not None or self.features is None or self.probabilities is None or (step + 1) % REFRESH:
            return False
        found = self._collapsed(self.features, self.probabilities)
        if found is not None:
            self.collapse = f"{found.value} by step {step + 1}, so training went on from its start without them"
            model.load_state_dict(self._start, strict=False)
            optimizer.state.clear()
            for average in self._averages().values():
                average.become(model)
        return found is not None

    def _collapsed(self, features: Tensor, probabilities: Tensor) -> Collapse | None:
        """Look for a collapse in what was answered, not in pseudo-labels: class shares that are evened out hide one."""
        return None if self.health is None else self.health.check(probabilities.argmax(1), spread(features))

    def install(self, model: nn.Module) -> None:
        """Give the model the averaged weights that are tested: the run keeps these, or its start if they collapsed."""
        self._tested.install(model)
        if self.collapse is not None or self.health is None:
            return
        found = self._collapsed(*self._answers_to(self.views[0], "target", self._tested))
        if found is not None:
            self.collapse = f"{found.value} by the last step, so the run keeps the model from which training started"
            model.load_state_dict(self._start, strict=False)

    def _averages(self) -> dict[str, Teacher]:
        """Return the running averages of the weights, by their name in a checkpoint."""
        return {"teacher": self._teacher} | ({} if self._tested is self._teacher else {"tested": self._tested})

    def set_ramp(self, step: int) -> None:
        """Set the factor of the losses for a step, where `look` finds it."""
        rising = self.recipe.ramp_up * self.settings.steps
        self.ramp.fill_(1.0 if rising == 0 else min(1.0, step / rising))

    def _refresh(self) -> None:
        """Find the neighbours of each row, and estimate the class shares of the pool from the teacher's answers."""
        assert self.features is not None
        assert self.probabilities is not None
        if self.recipe.neighbours:
            nearest = nearest_rows(self.features, self.recipe.neighbours)
            self.neighbours = nearest if self.neighbours is None else self.neighbours.copy_(nearest)
        if self.recipe.prior == "uniform":
            self.prior.fill_(1 / self.num_classes)
        else:
            self.prior.copy_(estimated_prior(self.probabilities))

    def _pseudo_labels(self) -> PseudoLabels:
        """Label the whole pool by the teacher's last answers, averaged over neighbours, moved toward the shares."""
        assert self.probabilities is not None
        answers = self.probabilities
        if self.neighbours is not None:
            answers = answers[self.neighbours].mean(1)
        if self.recipe.prior != "none":
            answers = align_shares(answers, answers.mean(0), self.prior.to(answers.dtype))
        confidence, labels = answers.max(1)
        least: Tensor | float = self.recipe.threshold
        if not self.recipe.fixed and self.source_confidence is not None:
            least = least * self.source_confidence.mean()
        return PseudoLabels(labels, confidence, (confidence >= least).to(answers.dtype))

    def _place(self) -> None:
        assert self.features is not None
        self.to(self._fabric.device)
        self.ramp = self.ramp.to(self.features.dtype)

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Return what a checkpoint stores, by file and name."""
        averages = {name: average.model.state_dict() for name, average in self._averages().items()}
        return {"pool": self.state_dict(), **averages}

    def plain(self) -> dict[str, Any]:
        """Return the rest of what a checkpoint stores, as JSON values."""
        return {"collapse": self.collapse, "health": None if self.health is None else self.health.as_json()}

    def restore(self, tensors: Mapping[str, Mapping[str, Tensor]], plain: Mapping[str, Any]) -> None:
        """Take the state of a checkpoint."""
        stored = tensors["pool"]
        for name in _REMEMBERED:
            if name in stored:
                setattr(self, name, torch.empty_like(stored[name]))
        self._place()
        self.load_state_dict(dict(stored))
        for name, average in self._averages().items():
            average.model.load_state_dict(dict(tensors[name]))
        self.collapse = plain["collapse"]
        self.health = None if plain["health"] is None else PoolHealth(**plain["health"])

    def summary(self) -> dict[str, Any]:
        """Describe how the pool was used at the end, as JSON values; class shares as the last answers suggest them."""
        shares = self.prior if self.probabilities is None else estimated_prior(self.probabilities)
        return {"prior": shares.tolist(), "collapse": self.collapse}


def _changing(model: nn.Module) -> dict[str, Tensor]:
    """Return what training changes: weights that train, and buffers."""
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    return {**trained, **dict(model.named_buffers())}
