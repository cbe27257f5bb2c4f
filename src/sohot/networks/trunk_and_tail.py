"""The two parts of a stream, a frozen trunk and a tail that trains; and a stream after training."""

import torch
from torch import Tensor, nn
from typing_extensions import Self

from ..functional.norm_bound import bound_norm


class FrozenTrunk(nn.Sequential):
    """Frozen stages: no gradient, and always in evaluation mode, so that batch-norm statistics and dropout stay fixed.

    Without stages it returns its input.

    Example:
        >>> trunk = FrozenTrunk(nn.BatchNorm1d(2), nn.Dropout())
        >>> trunk.train()[0].training
        False
    """

    def __init__(self, *stages: nn.Module) -> None:
        super().__init__(*stages)
        self.requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> Self:  # noqa: ARG002 (the signature is that of nn.Module)
        """Stay in evaluation mode, whatever `mode` says."""
        return super().train(False)

    def forward(self, images: Tensor) -> Tensor:
        """Run the stages without a gradient to the input."""
        outputs = images.detach() if images.requires_grad else images
        for stage in self:
            outputs = stage(outputs)
        return outputs


class Tail(nn.Module):
    """What follows the trunk: the stages that train, and an optional projection.

    The features are aligned; the classifier sees them through `to_classifier`.

    Args:
        stages: The stages that train, possibly none.
        activation: Module between the last stage and what follows it, see `Backbone`.
        dropout: Rate of the dropout before the classifier.
        projection: A last linear layer, or None. It takes the classifier's place, after the activation.
        fix_statistics: Whether batch normalisation uses, and keeps, its initial statistics. With a handful of images
            per class the statistics of a batch are noise, and those of two domains together fit neither.
    """

    def __init__(
        self,
        stages: nn.Sequential,
        activation: nn.Module,
        dropout: float,
        projection: nn.Linear | None = None,
        fix_statistics: bool = False,
    ) -> None:
        super().__init__()
        self.stages = stages
        self.activation = activation
        self.dropout = nn.Dropout(dropout)
        self.projection = projection
        self.fix_statistics = fix_statistics
        self.train(self.training)

    def forward(self, trunk_outputs: Tensor) -> Tensor:
        """Map outputs of the trunk to features."""
        features: Tensor = self.stages(trunk_outputs)
        return features if self.projection is None else self.projection(self.activation(features))

    def to_classifier(self, features: Tensor) -> Tensor:
        """Map features to what the classifier sees."""
        seen: Tensor = self.dropout(self.activation(features) if self.projection is None else features)
        return seen

    def sees_batches(self) -> bool:
        """Whether rows depend on the others of a batch: batch normalisation by its statistics."""
        return any(
            isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training for module in self.stages.modules()
        )

    def train(self, mode: bool = True) -> Self:
        """Switch the mode of all but fixed batch normalisation."""
        super().train(mode)
        if self.fix_statistics:
            for module in self.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        return self


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
        return self.classify(self.features(images))

    def features(self, images: Tensor) -> Tensor:
        """Map images to the features that are aligned."""
        features: Tensor = self.tail(self.trunk(images))
        if self.norm_bound is not None:
            features, _ = bound_norm(features, self.norm_bound)
        return features

    def classify(self, features: Tensor) -> Tensor:
        """Map features to logits."""
        logits: Tensor = self.head(self.tail.to_classifier(features))
        return logits


class FeaturesBesideLogits(nn.Module):
    """Images to the features and logits of a stream side by side, so that one pass gives both.

    Args:
        classifier: The stream and its classifier.
    """

    def __init__(self, classifier: TargetClassifier) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) to rows of features and logits (B, features + num_classes)."""
        features = self.classifier.features(images)
        return torch.cat([features, self.classifier.classify(features)], dim=1)
