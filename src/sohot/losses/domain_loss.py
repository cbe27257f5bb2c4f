"""What the rival losses share: checks, float32 or better, a weight, and one constant to divide the features by."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from ..functional.checks import check_finite, check_label_range, check_labels, check_pair
from ..functional.plain_checks import check_choice, check_count, check_not_negative
from .class_moments import within_class_energy

FEATURE_SCALES = ("none", "initial")


class RivalLoss(nn.Module, ABC):
    """A loss on the features and labels of both domains, called as `sohot.ScatterAlignment` is.

    Args:
        num_classes: Number of classes; labels are integers in 0 … num_classes − 1.
        weight: Factor of the loss.
        feature_scale: "none", or "initial" to divide features by one constant: the root mean squared distance of a row
            from the mean of its class and domain, in the first call. Margins and weights then mean the same for every
            network.
        check_values: Look for labels out of range and NaN or infinite features in each call.
    """

    scale: Tensor

    def __init__(
        self, num_classes: int, weight: float = 1.0, feature_scale: str = "none", check_values: bool = True
    ) -> None:
        super().__init__()
        self.num_classes = check_count(num_classes, "num_classes")
        self.weight = check_not_negative(weight, "weight")
        self.feature_scale = check_choice(feature_scale, FEATURE_SCALES, "feature_scale")
        self.check_values = check_values
        self.register_buffer("scale", torch.zeros(()))  # 0: not known yet

    @abstractmethod
    def compute(self, source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor) -> Tensor:
        """Give the loss of scaled features, not yet weighted; 0 that carries a gradient if no pair says anything."""

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
            return_parts: Also return an empty dict, as these losses have no parts: `ScatterAlignment` has.

        Returns:
            The loss, a scalar.
        """
        self._check(source, source_labels, target, target_labels)
        with torch.autocast(source.device.type, enabled=False):
            compute = torch.promote_types(torch.promote_types(source.dtype, target.dtype), torch.float32)
            source, target = self._scaled(source.to(compute), source_labels, target.to(compute), target_labels)
            loss = self.weight * self.compute(source, source_labels, target, target_labels)
        return (loss, {}) if return_parts else loss

    def _check(self, source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor) -> None:
        check_pair(source, target, ("source", "target"))
        check_labels(source_labels, source, ("source_labels", "source"))
        check_labels(target_labels, target, ("target_labels", "target"))
        if self.check_values:
            check_label_range(source_labels, self.num_classes, "source_labels")
            check_label_range(target_labels, self.num_classes, "target_labels")
            check_finite(source, "source")
            check_finite(target, "target")

    def _scaled(
        self, source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor
    ) -> tuple[Tensor, Tensor]:
        if self.feature_scale == "none":
            return source, target
        with torch.no_grad():
            labels = torch.cat([source_labels, target_labels + self.num_classes])
            energy = within_class_energy(torch.cat([source, target]), labels, 2 * self.num_classes)
            self.scale.copy_(torch.where(self.scale > 0, self.scale, energy.sqrt()))
            divisor = torch.where(self.scale > 0, self.scale, 1.0).to(source.dtype)
        return source / divisor, target / divisor

    def extra_repr(self) -> str:
        """Show the settings when the module is printed."""
        return f"num_classes={self.num_classes}, weight={self.weight}, feature_scale={self.feature_scale!r}"
