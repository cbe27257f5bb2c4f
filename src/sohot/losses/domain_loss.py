"""What the losses of other papers share: checks, at least float32, a weight, and a constant that divides features."""

from abc import ABC, abstractmethod
from importlib import import_module
from typing import ClassVar

import torch
from torch import Tensor, nn

from ..functional.checks import check_alignment_input, check_rows
from ..functional.plain_checks import check_choice, check_count, check_not_negative
from .domain_labels import DomainLabels

FEATURE_SCALES = ("none", "initial")


def loss_class(home: str | None) -> "type[DomainLoss] | None":
    """Import a loss; None for a method without one.

    Args:
        home: Its module and class, as recorded for the method.

    Example:
        >>> loss_class("ccsa:ContrastiveSemanticAlignment")
        <class 'sohot.losses.ccsa.ContrastiveSemanticAlignment'>
    """
    if home is None:
        return None
    module, name = home.split(":")
    kind: type[DomainLoss] = getattr(import_module(f".{module}", __package__), name)
    return kind


class DomainLoss(nn.Module, ABC):
    """A loss on the features and labels of both domains, called like `sohot.ScatterAlignment`.

    Args:
        num_classes: Number of classes; labels are integers in 0 … num_classes − 1.
        weight: Factor of the loss; None for `usual_weight`.
        feature_scale: "none", or "initial" to divide features by one constant: the root mean squared distance of a row
            from the mean of its class and domain, in the first call. Margins and weights then fit every network.
        check_values: Check in each call for labels out of range, and NaN or infinite features.
    """

    usual_weight: ClassVar[float] = 1.0
    is_scaled: ClassVar[bool] = True
    """Whether the loss depends on the size of the features, and so on `feature_scale`."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Numeric settings besides the weight; if many fits train at once, tensors of shape (fits, 1, 1)."""

    scale: Tensor

    def __init__(
        self, num_classes: int, weight: float | None = None, feature_scale: str = "none", check_values: bool = True
    ) -> None:
        super().__init__()
        self.num_classes = check_count(num_classes, "num_classes")
        self.weight = check_not_negative(self.usual_weight if weight is None else weight, "weight")
        self.feature_scale = check_choice(feature_scale, FEATURE_SCALES, "feature_scale")
        self.check_values = check_values
        self.register_buffer("scale", torch.zeros(()))  # 0: not known yet

    @abstractmethod
    def compute(self, source: Tensor, target: Tensor, labels: DomainLabels) -> Tensor:
        """Return the unweighted loss of scaled features; if no pair counts, a 0 that carries a gradient.

        Args:
            source: Source rows (…, n, d): of one model, or of each of many fits.
            target: Target rows (…, m, d).
            labels: The classes of both.

        Returns:
            Shape (…).
        """

    def forward(
        self,
        source: Tensor,
        source_labels: Tensor,
        target: Tensor,
        target_labels: Tensor,
        *,
        return_parts: bool = False,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of one batch.

        Args:
            source: Source features (n, d), rows in any order.
            source_labels: Their classes (n,).
            target: Target features (m, d).
            target_labels: Their classes (m,).
            return_parts: Also return an empty dict: unlike `ScatterAlignment`, these losses have no parts.

        Returns:
            The loss, a scalar.
        """
        check_alignment_input(source, source_labels, target, target_labels)
        if self.check_values:
            check_rows(source, source_labels, target, target_labels, num_classes=self.num_classes)
        compute = torch.promote_types(torch.promote_types(source.dtype, target.dtype), torch.float32)
        source, target = source.to(compute), target.to(compute)
        labels = DomainLabels(source_labels, target_labels, self.num_classes)
        with torch.autocast(source.device.type, enabled=False):
            loss = self.weight * self.compute(*self._scaled(source, target, labels), labels)
        return (loss, {}) if return_parts else loss

    def _scaled(self, source: Tensor, target: Tensor, labels: DomainLabels) -> tuple[Tensor, Tensor]:
        if self.feature_scale == "none":
            return source, target
        with torch.no_grad():
            self.scale.copy_(torch.where(self.scale > 0, self.scale, labels.spread(source, target)))
            divisor = torch.where(self.scale > 0, self.scale, 1.0).to(source.dtype)
        return source / divisor, target / divisor

    def extra_repr(self) -> str:
        """Show the settings when the module is printed."""
        return f"num_classes={self.num_classes}, weight={self.weight}, feature_scale={self.feature_scale!r}"


class MarginLoss(DomainLoss):
    """A loss with a margin that rows of two classes must keep.

    Args:
        num_classes: Number of classes.
        weight: Factor of the loss; None for `usual_weight`.
        margin: At least 0; for its meaning see the loss.
        feature_scale: "none" or "initial", see `DomainLoss`.
        check_values: Check labels and features in each call.
    """

    numbers = ("margin",)
    margin: float | Tensor

    def __init__(
        self,
        num_classes: int,
        weight: float | None = None,
        margin: float = 1.0,
        feature_scale: str = "none",
        check_values: bool = True,
    ) -> None:
        super().__init__(num_classes, weight, feature_scale, check_values)
        self.margin = check_not_negative(margin, "margin")
