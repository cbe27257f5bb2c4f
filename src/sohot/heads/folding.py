"""A fitted classifier of features as a module of torch, to put on top of the network that makes them."""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from ..functional.norm_bound import bound_norm
from .preparation import Preparation
from .result import StackedFit

DOMAIN = "target"


def fold(fit: StackedFit) -> nn.Module:
    """Return a module that maps raw target features to logits, as `fit.predict_logits` does, in float32.

    A fit with neither a hidden layer nor a norm bound is affine from end to end: it becomes one linear layer.

    Example:
        >>> from sohot.heads import FeatureProblem, fit_stack
        >>> from sohot.methods import HeadSettings
        >>> labels = torch.arange(12) % 3
        >>> rows = nn.functional.one_hot(labels, 4).float()
        >>> (fit,) = fit_stack([FeatureProblem(rows, labels, rows, labels, num_classes=3)], [HeadSettings(steps=5)])
        >>> fold(fit)
        Linear(in_features=4, out_features=3, bias=True)
    """
    affine = fit.shape.hidden is None and fit.settings.norm_bound is None
    module = _one_layer(fit) if affine else FoldedHead(fit)
    return module.float().requires_grad_(False).eval()


def _one_layer(fit: StackedFit) -> nn.Linear:
    """Ask the fit itself for its affine map: where it sends the origin and the unit vectors."""
    mean = fit.preparations[DOMAIN].mean
    origin = fit.predict_logits(mean.new_zeros(1, len(mean)), DOMAIN)
    units = fit.predict_logits(torch.eye(len(mean)).to(mean), DOMAIN)
    return _linear(units - origin, origin[0])


class FoldedHead(nn.Module):
    """The steps of a fit that is not affine: preparation, network with a residual, norm bound, classifier.

    Args:
        fit: The fit.
    """

    def __init__(self, fit: StackedFit) -> None:
        super().__init__()
        mean, axes = fit.preparations[DOMAIN]
        self.register_buffer("mean", mean.clone())
        self.register_buffer("axes", axes.clone())
        values, network, head = fit.parameters, fit.shape.network(DOMAIN), fit.shape.head(DOMAIN)
        self.hidden: nn.Linear | None = None
        if fit.shape.hidden is not None:
            self.hidden = _linear(values[f"{network}.hidden"], values[f"{network}.hidden_offset"])
        self.map = _linear(values[f"{network}.map"], values[f"{network}.offset"])
        self.classifier = _linear(*(values[f"{head}.{name}"] / fit.temperature for name in ("classifier", "bias")))
        self.norm_bound = fit.settings.norm_bound

    def forward(self, features: Tensor) -> Tensor:
        """Map raw features (n, d) to logits (n, classes)."""
        rows = Preparation(self.get_buffer("mean"), self.get_buffer("axes"))(features)
        moved = rows + self.map(rows if self.hidden is None else gelu(self.hidden(rows)))
        if self.norm_bound is not None:
            moved, _ = bound_norm(moved, self.norm_bound)
        logits: Tensor = self.classifier(moved)
        return logits


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """Make a layer of a matrix (in, out) and an offset (out,)."""
    size_in, size_out = weight.shape
    layer = nn.Linear(size_in, size_out)
    layer.weight.data, layer.bias.data = weight.T.contiguous(), bias.clone()
    return layer
