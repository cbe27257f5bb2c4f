"""How good predictions are: logits over many rows, accuracies, their intervals, and confusions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..data.names import enumerate_words
from ..functional.checks import check_label_range, check_labels
from ..functional.shares import Interval, wilson_interval
from .inputs import Inputs


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`.

    Attributes:
        rows: Number of rows.
        correct: Number of rows classified correctly.
        micro: Share of rows classified correctly.
        macro: Mean, over the classes that have rows, of the share of their rows classified correctly.
        interval95: Wilson's 95 % interval of `micro`.
        per_class: The share classified correctly by class; None for a class without rows.
        per_class_interval95: Wilson's 95 % interval of each.
        confusion: Rows by true class (first) and predicted class.
    """

    rows: int
    correct: int
    micro: float
    macro: float
    interval95: Interval
    per_class: dict[str, float | None]
    per_class_interval95: dict[str, Interval | None]
    confusion: list[list[int]]

    @property
    def precision(self) -> dict[str, float | None]:
        """By class, the share of the rows predicted as it that belong to it; None for a class never predicted."""
        return {
            name: self.confusion[place][place] / taken if taken else None
            for place, (name, taken) in enumerate(zip(self.per_class, self._predicted(), strict=False))
        }

    @property
    def f1(self) -> dict[str, float | None]:
        """By class, the harmonic mean of precision and accuracy; None for a class without rows and never predicted."""
        scores: dict[str, float | None] = {}
        for place, (name, taken) in enumerate(zip(self.per_class, self._predicted(), strict=False)):
            total = taken + sum(self.confusion[place])
            scores[name] = 2 * self.confusion[place][place] / total if total else None
        return scores

    def _predicted(self) -> list[int]:
        return [sum(column) for column in zip(*self.confusion, strict=True)]

    def mistakes(self, most: int = 3, classes: int = 3) -> list[str]:
        """Say where it fails: which classes are taken for another, the most frequent mistakes first.

        Args:
            most: How many sentences, one for each class that others are taken for.
            classes: How many classes to name in each.

        Example:
            >>> logits, labels = torch.eye(3)[[0, 1, 1, 1, 2]], torch.tensor([0, 0, 2, 2, 2])
            >>> evaluate(logits, labels, ["cat", "dog", "owl"]).mistakes()
            ['takes 2 of 3 owl, 1 of 2 cat for dog']
        """
        names = list(self.per_class)
        taken: list[tuple[int, str]] = []
        for place, name in enumerate(names):
            wrong = [(row[place], truth, sum(row)) for truth, row in zip(names, self.confusion, strict=True)]
            others = sorted((one for one in wrong if one[0] and one[1] != name), key=lambda one: -one[0])
            if others:
                listed = enumerate_words((f"{count} of {of} {truth}" for count, truth, of in others), classes)
                taken.append((sum(count for count, _, _ in others), f"takes {listed} for {name}"))
        return [sentence for _, sentence in sorted(taken, key=lambda one: -one[0])[:most]]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain numbers, lists and dicts."""
        return {**asdict(self), "precision": self.precision, "f1": self.f1}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Evaluation":
        """Read the result of `as_json`.

        Raises:
            ValueError: Something is missing, or has the wrong type.
        """
        try:
            low, high = content["interval95"]
            intervals = {
                name: None if ends is None else tuple(ends) for name, ends in content["per_class_interval95"].items()
            }
            return cls(
                rows=int(content["rows"]),
                correct=int(content["correct"]),
                micro=float(content["micro"]),
                macro=float(content["macro"]),
                interval95=(low, high),
                per_class=dict(content["per_class"]),
                per_class_interval95=intervals,
                confusion=list(content["confusion"]),
            )
        except KeyError as error:
            raise ValueError(f"the accuracy has no {error}") from None
        except (TypeError, AttributeError) as error:
            raise ValueError(f"the accuracy is damaged: {error}") from None


def evaluate(logits: Tensor, labels: Tensor, classes: Sequence[str] | int) -> Evaluation:
    """Compare predictions with the truth.

    Args:
        logits: Shape (rows, classes); the highest of a row is its prediction.
        labels: The true classes, integers.
        classes: The names of the classes, or their number.

    Returns:
        Accuracies with their 95 % intervals, and the confusion matrix.

    Example:
        >>> result = evaluate(torch.eye(3)[[0, 1, 1, 2]], torch.tensor([0, 1, 2, 2]), ["cat", "dog", "owl"])
        >>> result.micro, round(result.macro, 3), result.per_class["owl"]
        (0.75, 0.833, 0.5)
    """
    names = [str(number) for number in range(classes)] if isinstance(classes, int) else list(classes)
    if not isinstance(logits, Tensor) or logits.dim() != 2 or logits.shape[1] != len(names):
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"logits must have the shape (rows, {len(names)}), one column for each class, got {shape}")
    if len(set(names)) != len(names):
        raise ValueError("classes must not repeat a name")
    if logits.shape[0] == 0:
        raise ValueError("logits is empty: there is nothing to evaluate")
    labels = torch.as_tensor(labels).to(logits.device)
    check_labels(labels, logits, ("labels", "logits"))
    check_label_range(labels, len(names), "labels")
    if bool(logits.isnan().any()):
        raise ValueError("logits holds NaN")
    cells = labels.to(torch.int64) * len(names) + logits.argmax(1)
    confusion = cells.cpu().bincount(minlength=len(names) ** 2).reshape(len(names), len(names))
    return _summarise(confusion.tolist(), names)


def _summarise(confusion: list[list[int]], names: list[str]) -> Evaluation:
    rights = [row[k] for k, row in enumerate(confusion)]
    counts = [sum(row) for row in confusion]
    shares = [right / count if count else None for right, count in zip(rights, counts, strict=True)]
    present = [share for share in shares if share is not None]
    intervals = [wilson_interval(right, count) if count else None for right, count in zip(rights, counts, strict=True)]
    return Evaluation(
        rows=sum(counts),
        correct=sum(rights),
        micro=sum(rights) / sum(counts),
        macro=sum(present) / len(present),
        interval95=wilson_interval(sum(rights), sum(counts)),
        per_class=dict(zip(names, shares, strict=True)),
        per_class_interval95=dict(zip(names, intervals, strict=True)),
        confusion=confusion,
    )


@torch.inference_mode()
def predict_logits(
    model: nn.Module,
    inputs: Inputs,
    *,
    batch_size: int = 256,
    from_trunk: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Tensor:
    """Classify rows with only the target stream and its classifier.

    Args:
        model: Two streams; in evaluation mode during the call.
        inputs: The rows.
        batch_size: Rows per batch.
        from_trunk: The inputs are outputs of the frozen trunk, not images.
        progress: Called with the number of rows classified and the total.

    Returns:
        Logits of shape (rows, classes), float32 on the CPU.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    like = next(model.parameters(), torch.empty(0))  # the precision "64-true" leaves a model in float64
    training = model.training
    model.eval()
    try:
        logits = []
        for first in range(0, len(inputs), batch_size):
            last = min(first + batch_size, len(inputs))
            batch = inputs.batch(torch.arange(first, last)).to(like.device, like.dtype)
            output = model(None, batch, from_trunk=from_trunk).target_logits
            logits.append(output.float().cpu())
            if progress is not None:
                progress(last, len(inputs))
    finally:
        model.train(training)
    if not logits:
        raise ValueError("inputs is empty: there is nothing to classify")
    return torch.cat(logits)
