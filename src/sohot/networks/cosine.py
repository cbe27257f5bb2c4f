"""A classifier of directions: it sees features divided by their length, and divides its logits by a temperature."""

from torch import Tensor, nn
from torch.nn.functional import normalize


class UnitLength(nn.Module):
    """Divides each row by its length; a row of zeros stays.

    >>> import torch
    >>> UnitLength()(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """

    def forward(self, features: Tensor) -> Tensor:
        """Map (…, d) to rows of length 1."""
        return normalize(features, dim=-1)


class CosineClassifier(nn.Linear):
    """(W f/‖f‖ + b) / T, as minimax entropy needs it: T of about 0.05 makes angles matter as much as logits do.

    Its paper (Saito et al., 2019) and the few-shot classifiers it follows have no bias. Here there is one, so that a
    logistic regression on directions is a start that this classifier reproduces exactly.

    Args:
        in_features: Size d of the features.
        out_features: Number of classes.
        temperature: T.

    Example:
        >>> import torch
        >>> classifier = CosineClassifier(4, 2, temperature=0.05)
        >>> rows = torch.randn(3, 4)
        >>> torch.allclose(classifier(rows), classifier(7 * rows), atol=1e-5)
        True
    """

    def __init__(self, in_features: int, out_features: int, temperature: float) -> None:
        super().__init__(in_features, out_features)
        self.temperature = temperature

    def forward(self, features: Tensor) -> Tensor:
        """Map features to logits."""
        return super().forward(normalize(features, dim=-1)) / self.temperature

    def extra_repr(self) -> str:
        """Show the settings when the module is printed."""
        return f"{super().extra_repr()}, temperature={self.temperature}"
