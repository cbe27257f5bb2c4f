"""What is left of two streams once training is over."""

from torch import Tensor, nn

from ..functional.norm_bound import bound_norm
from .freezing import Tail


class TargetClassifier(nn.Module):
    """Images to logits: one stream and its classifier, frozen in evaluation mode.

    Args:
        trunk: Frozen stages.
        tail: Stages that trained.
        head: The classifier.
        norm_bound: τ of ‖φ‖² ≤ τ, or None.
    """

    def __init__(self, trunk: nn.Module, tail: Tail, head: nn.Module, norm_bound: float | None) -> None:
        super().__init__()
        self.trunk = trunk
        self.tail = tail
        self.head = head
        self.norm_bound = norm_bound
        self.requires_grad_(False)
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) to logits (B, num_classes)."""
        features = self.tail(self.trunk(images))
        if self.norm_bound is not None:
            features, _ = bound_norm(features, self.norm_bound)
        logits: Tensor = self.head(self.tail.to_classifier(features))
        return logits
