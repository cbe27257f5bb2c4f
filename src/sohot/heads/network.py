"""The small networks and classifiers of all fits of a stack, as plain functions of stacked tensors.

A network starts as the identity: φ = x + x D + b with D = 0, or with a hidden layer φ = x + gelu(x A + a) B + b with
B = 0. So training starts from the given features, and weight decay pulls back to them. The first dimension of every
tensor is the fit.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import gelu

DOMAINS = ("source", "target")
Parameters = Mapping[str, Tensor]
_OF_NETWORKS = (".map", ".offset", ".hidden", ".hidden_offset")


class Shape(NamedTuple):
    """The tensor shapes of a fit; all fits of a stack share them."""

    size: int  # features
    num_classes: int
    streams: str
    heads: str
    hidden: int | None
    two_domains: bool  # else only the target's network

    def network(self, domain: str) -> str:
        """Name of the network that processes a domain's rows."""
        return domain if self.two_domains and self.streams == "separate" else "target"

    def head(self, domain: str) -> str:
        """Name of the classifier of a domain."""
        return domain if self.two_domains and self.heads == "coupled" else "target"


def tensor_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Name and shape of every parameter of one fit.

    >>> tensor_shapes(Shape(4, 3, "shared", "shared", hidden=None, two_domains=True))
    {'target.map': (4, 4), 'target.offset': (4,), 'target.classifier': (4, 3), 'target.bias': (3,)}
    """
    k = shape.size
    shapes: dict[str, tuple[int, ...]] = {}
    for name in dict.fromkeys(shape.network(domain) for domain in DOMAINS):
        if shape.hidden is None:
            shapes[f"{name}.map"] = (k, k)
        else:
            shapes |= {f"{name}.hidden": (k, shape.hidden), f"{name}.hidden_offset": (shape.hidden,)}
            shapes[f"{name}.map"] = (shape.hidden, k)
        shapes[f"{name}.offset"] = (k,)
    for name in dict.fromkeys(shape.head(domain) for domain in DOMAINS):
        shapes |= {f"{name}.classifier": (k, shape.num_classes), f"{name}.bias": (shape.num_classes,)}
    return shapes


def of_network(name: str) -> bool:
    """Tell whether a parameter belongs to a network on features, not to a classifier or the class weights.

    >>> of_network("target.offset"), of_network("target.bias"), of_network("zeta")
    (True, False, False)
    """
    return name.endswith(_OF_NETWORKS)


def first_values(shape: Shape, seed: int) -> dict[str, Tensor]:
    """Initial values of one fit: zeros, except hidden layer weights, drawn from the seed on the CPU in float64."""
    values = {name: torch.zeros(of_one, dtype=torch.float64) for name, of_one in tensor_shapes(shape).items()}
    if shape.hidden is not None:
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(shape.size, shape.hidden, generator=generator, dtype=torch.float64)
        for name in values:  # equal for both domains: separate networks start identical
            if name.endswith(".hidden"):
                values[name] = drawn / shape.size**0.5
    return values


def features(parameters: Parameters, name: str, rows: Tensor, norm_bound: Tensor | None) -> Tensor:
    """Run rows (F, n, k) through a network; `norm_bound` holds τ of each fit."""
    inner = rows
    if f"{name}.hidden" in parameters:
        inner = gelu(
            torch.baddbmm(parameters[f"{name}.hidden_offset"].unsqueeze(1), rows, parameters[f"{name}.hidden"])
        )
    moved = rows + torch.baddbmm(parameters[f"{name}.offset"].unsqueeze(1), inner, parameters[f"{name}.map"])
    if norm_bound is None:
        return moved
    excess = moved.square().sum(2, keepdim=True) / norm_bound.view(-1, 1, 1)
    return moved * excess.clamp(min=1).rsqrt()


def logits(parameters: Parameters, name: str, rows: Tensor) -> Tensor:
    """Classify features (F, n, k)."""
    return torch.baddbmm(parameters[f"{name}.bias"].unsqueeze(1), rows, parameters[f"{name}.classifier"])


def both_features(
    parameters: Parameters, shape: Shape, rows: Tensor, source_slots: int, norm_bound: Tensor | None
) -> Tensor:
    """Features of all slots, those of the source first."""
    if shape.network("source") == "target":
        return features(parameters, "target", rows, norm_bound)
    parts = rows[:, :source_slots], rows[:, source_slots:]
    return torch.cat([features(parameters, d, part, norm_bound) for d, part in zip(DOMAINS, parts, strict=True)], 1)


def both_logits(parameters: Parameters, shape: Shape, rows: Tensor, source_slots: int) -> Tensor:
    """Logits of all slots, those of the source first."""
    if shape.head("source") == "target":
        return logits(parameters, "target", rows)
    parts = rows[:, :source_slots], rows[:, source_slots:]
    return torch.cat([logits(parameters, d, part) for d, part in zip(DOMAINS, parts, strict=True)], 1)


def head_penalty(parameters: Parameters, shape: Shape, weight_decay: Tensor, coupling: Tensor) -> Tensor:
    """λ‖W‖² of each fit, for two classifiers λ‖W‖² + λ‖W*‖² + β'‖W − W*‖²: (F,)."""
    target = parameters["target.classifier"]
    penalty = weight_decay * target.square().sum((1, 2))
    if shape.head("source") == "source":
        source = parameters["source.classifier"]
        penalty = penalty + weight_decay * source.square().sum((1, 2))
        penalty = penalty + coupling * (source - target).square().sum((1, 2))
    return penalty
