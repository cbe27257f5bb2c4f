"""The objective: cross-entropy of both domains, the classifier's penalty, and the alignment (Eq. 5 and Eq. 6)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..losses.alignment import ScatterAlignment
from ..losses.starting_point import StartingPoint
from ..methods.registry import Method
from ..methods.settings import FitSettings
from .alignments import make_alignment
from .pool_rows import PoolBatch
from .pool_terms import TERMS, PoolAnswers
from .streams import Output, full_precision

Losses = dict[str, Tensor]


class Objective(nn.Module):
    """What a training step minimises:

        ℓ(W, b, Λ ∪ Λ*) + λ‖W‖² (+ β'‖W − W*‖²) + g(Φ, Φ*)

    with ℓ the mean cross-entropy over the rows of both domains and g the alignment of `sohot.ScatterAlignment`, whose
    class weights ζ and feature scale live in this module. Everything is computed in float32 or better, also under mixed
    precision: high-order powers exceed the range of half precision.

    Args:
        method: What to align.
        num_classes: Number of classes.
        settings: σ1, σ2, α1, α2, estimator, feature scale and the weight of the target.
        start: Holds weights near their initial values, for `TrainingStep`; it lives here to be saved with ζ.
        with_pool: Whether there are unlabelled target rows, whose losses are added.

    Example:
        >>> from collections import namedtuple
        >>> Out = namedtuple("Out", "source_features target_features source_logits target_logits clip_rate")
        >>> settings = FitSettings(method="so")
        >>> objective = Objective(settings.resolved_method(), 2, settings)
        >>> x, y = torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
        >>> losses = objective(Out(x, x, torch.zeros(4, 2), torch.zeros(4, 2), None), y, y)
        >>> round(losses["loss"].item(), 4)  # log 2: the domains are the same, so there is nothing to align
        0.6931
    """  # noqa: D415

    def __init__(
        self,
        method: Method,
        num_classes: int,
        settings: FitSettings,
        start: StartingPoint | None = None,
        *,
        with_pool: bool = False,
    ) -> None:
        super().__init__()
        self.start = start
        self.method = method
        self.target_weight = settings.target_weight
        self.alignment = make_alignment(method, num_classes, settings)
        self.pool_terms = settings.pool_recipe().terms if with_pool else {}

    def forward(
        self,
        output: Output,
        source_labels: Tensor | None,
        target_labels: Tensor | None,
        head_penalty: Tensor | None = None,
        pool: PoolBatch | None = None,
        answers: PoolAnswers | None = None,
    ) -> Losses:
        """Compute the loss and its parts.

        Args:
            output: Features and logits of the model.
            source_labels: Classes of the source rows, None if the model got no source.
            target_labels: Classes of the target rows, None if the model got no target.
            head_penalty: The penalty on the classifier's weights.
            pool: What is known of the unlabelled rows; None if there are none.
            answers: What the model answers for them.

        Returns:
            "loss", the sum of "cross_entropy", "head_penalty", "alignment" and "pool", the weighted losses on the pool;
            "cross_entropy_source" and "cross_entropy_target", the means of the domains; those
            losses by name; the parts of the alignment ("means", "order2", …,
            "weight_penalty"), unless the batch shows only one domain. Only "loss" carries a gradient.
        """
        logits = output.target_logits if output.source_logits is None else output.source_logits
        if logits is None:
            raise ValueError("output has no logits of either domain")
        with torch.autocast(logits.device.type, enabled=False):
            total, parts = self._cross_entropy(output, source_labels, target_labels)
            if head_penalty is not None:
                parts["head_penalty"] = head_penalty
                total = total + head_penalty
            if pool is not None and answers is not None:
                terms = {name: TERMS[name](answers) for name in self.pool_terms}
                weighted = [weight * terms[name] for name, weight in self.pool_terms.items()]
                parts |= {**terms, "pool": pool.ramp * torch.stack(weighted).sum()}
                total = total + parts["pool"]
            if aligned := self._align(output, source_labels, target_labels):
                parts |= aligned
                total = total + aligned["alignment"]
        return {"loss": total, **{name: part.detach() for name, part in parts.items()}}

    def learned_weights(self) -> dict[str, list[float]] | None:
        """Return learned class weights by term ("means", "order2", …), one number per class; None if there is none.

        >>> settings = FitSettings(method="so+zeta")
        >>> Objective(settings.resolved_method(), 2, settings).learned_weights()
        {'means': [1.0, 1.0], 'order2': [1.0, 1.0]}
        """
        alignment = self.alignment
        if not isinstance(alignment, ScatterAlignment) or alignment.weights is None:
            return None
        of_orders = zip(alignment.orders, alignment.zeta, strict=True)
        return {"means": alignment.zeta_bar.tolist(), **{f"order{order}": zeta.tolist() for order, zeta in of_orders}}

    def _align(self, output: Output, source_labels: Tensor | None, target_labels: Tensor | None) -> Losses:
        """Return the alignment and its parts; nothing if the batch shows only one domain."""
        source, target = output.source_features, output.target_features
        if self.alignment is None or source is None or target is None or source_labels is None or target_labels is None:
            return {}
        rows = full_precision(source), source_labels, full_precision(target), target_labels
        loss, parts = self.alignment(*rows, return_parts=True)
        return {"alignment": loss, **parts}

    def _cross_entropy(
        self, output: Output, source_labels: Tensor | None, target_labels: Tensor | None
    ) -> tuple[Tensor, Losses]:
        sums, rows, parts = [], [], {}
        given = ("source", output.source_logits, source_labels), ("target", output.target_logits, target_labels)
        for domain, logits, labels in given:
            if logits is not None and labels is not None:
                mean = cross_entropy(full_precision(logits), labels)
                parts[f"cross_entropy_{domain}"] = mean
                sums.append(mean * len(labels))
                rows.append(len(labels))
        if not sums:
            raise ValueError("no domain has both logits and labels")
        if self.target_weight is None or len(sums) == 1:
            total = torch.stack(sums).sum() / sum(rows)
        else:
            total = torch.lerp(parts["cross_entropy_source"], parts["cross_entropy_target"], self.target_weight)
        return total, {"cross_entropy": total, **parts}
