"""A small model with the interface of TwoStreams and a small problem, for tests and for the ranks of `ddp_worker`."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

CLASSES = 3
FEATURES = 6


class Output(NamedTuple):
    source_features: Tensor | None
    target_features: Tensor | None
    source_logits: Tensor | None
    target_logits: Tensor | None
    clip_rate: Tensor | None


class SmallStreams(nn.Module):
    """Two-layer streams with dropout (randomness) and batch normalisation (buffers)."""

    num_classes = CLASSES

    def __init__(self, size: int = 4, heads: str = "shared", seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.tail = nn.Sequential(nn.Linear(size, FEATURES), nn.BatchNorm1d(FEATURES), nn.Tanh(), nn.Dropout(0.1))
            self.head = nn.Linear(FEATURES, CLASSES)
            self.source_head = nn.Linear(FEATURES, CLASSES) if heads == "coupled" else self.head

    def forward(self, source: Tensor | None, target: Tensor | None, *, from_trunk: bool = False) -> Output:
        del from_trunk
        features = [None if x is None else self.tail(x.flatten(1)) for x in (source, target)]
        logits = [None if x is None else head(x) for x, head in zip(features, self._heads(), strict=True)]
        return Output(*features, *logits, torch.full((), 0.25, device=self.head.weight.device))

    def _heads(self) -> tuple[nn.Linear, nn.Linear]:
        return self.source_head, self.head

    def parameter_groups(self, lr: float, head_factor: float = 10.0) -> list[dict[str, Any]]:
        heads = {id(p): p for head in self._heads() for p in head.parameters()}
        return [
            {"name": "tail", "params": list(self.tail.parameters()), "lr": lr},
            {"name": "head", "params": list(heads.values()), "lr": lr * head_factor},
        ]

    def head_penalty(self, weight_decay: float, coupling: float) -> Tensor:
        penalty = weight_decay * self.head.weight.square().sum()
        if self.source_head is not self.head:
            penalty = penalty + weight_decay * self.source_head.weight.square().sum()
            penalty = penalty + coupling * (self.source_head.weight - self.head.weight).square().sum()
        return penalty


def plain_streams() -> SmallStreams:
    """Streams without randomness and without statistics of a batch, so that rows do not see each other."""
    model = SmallStreams()
    model.tail = nn.Sequential(model.tail[0], nn.Tanh())
    return model


class RandomRows:
    """Batches of random rows, a pure function of the step."""

    def __init__(self, source: int, target: int, seed: int = 0) -> None:
        self.sizes, self.seed = (source, target), seed

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(1000 * self.seed + step)
        source, target = (torch.randperm(size, generator=generator)[: size * 2 // 3] for size in self.sizes)
        return source, target


def problem(rows: tuple[int, int] = (24, 9), size: int = 4, seed: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Classes as clusters; the target is the source turned and moved."""
    generator = torch.Generator().manual_seed(seed)
    centres = 3 * torch.randn(CLASSES, size, generator=generator)
    slant = 0.1 * torch.randn(size, size, generator=generator)
    turn = torch.linalg.matrix_exp(slant - slant.T)
    labels = [torch.arange(count) % CLASSES for count in rows]
    source, target = (centres[y] + 0.4 * torch.randn(len(y), size, generator=generator) for y in labels)
    return source, labels[0], target @ turn + 0.5, labels[1]
