"""Two passes of each image through a network: by its own statistics of batch normalisation, and by the target's.

Batch normalisation with the statistics of a new domain removes some of its style, and with it some of what the network
knows: the mean of both features is better than either.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

_STATISTICS = ("running_mean", "running_var")


class TwoPasses(nn.Module):
    """Stages that rows pass twice; the second time with other statistics of batch normalisation.

    Args:
        stages: The stages. Their own statistics are those of the first pass, and initially those of the second.
        first: Whether they begin the network: rows come once instead of as pairs (B, 2, …).
        last: Whether they end it: pairs are averaged.

    Example:
        >>> passes = TwoPasses(nn.Sequential(nn.BatchNorm1d(1, eps=0.0)), first=True, last=True).eval()
        >>> passes.set_second({"0.running_mean": torch.tensor([2.0])})
        >>> passes(torch.tensor([[4.0]])).item()
        3.0
    """

    def __init__(self, stages: nn.Sequential, *, first: bool, last: bool) -> None:
        super().__init__()
        self.stages, self.first, self.last = stages, first, last
        self._names = {name: name.replace(".", "-") for name in statistics_of(stages)}  # a buffer's name has no dot
        for name, tensor in statistics_of(stages).items():
            self.register_buffer(self._names[name], tensor.clone())

    def second(self) -> dict[str, Tensor]:
        """Return the statistics of the second pass, by their names in the stages."""
        return {name: self.get_buffer(own) for name, own in self._names.items()}

    @torch.no_grad()
    def set_second(self, statistics: Mapping[str, Tensor]) -> None:
        """Replace statistics of the second pass."""
        for name, tensor in statistics.items():
            self.get_buffer(self._names[name]).copy_(tensor)

    def forward(self, rows: Tensor) -> Tensor:
        """Pass rows twice."""
        if not isinstance(rows, Tensor):  # a tracer's stand-in: it would not see the statistics change
            raise TypeError("two passes cannot be traced as one")
        given, other = _both(rows, self.first)
        return _joined(self.stages(given), functional_call(self.stages, self.second(), (other,)), self.last)

    def in_two_copies(self) -> "TwoCopies":
        """Return the same passes through copies of the stages that share nothing."""
        other = deepcopy(self.stages)
        for name, tensor in self.second().items():
            other.get_buffer(name).copy_(tensor)
        return TwoCopies(deepcopy(self.stages), other, first=self.first, last=self.last)

    def extra_repr(self) -> str:
        """Show where it is in the network."""
        return f"first={self.first}, last={self.last}"


class TwoCopies(nn.Module):
    """Two passes through stages of their own: no longer to be trained, but to be traced, fused and exported.

    Args:
        given: The stages of the first pass.
        other: Those of the second.
        first: Whether they begin the network.
        last: Whether they end it.
    """

    def __init__(self, given: nn.Module, other: nn.Module, *, first: bool, last: bool) -> None:
        super().__init__()
        self.given, self.other, self.first, self.last = given, other, first, last

    def forward(self, rows: Tensor) -> Tensor:
        """Pass rows twice."""
        given, other = _both(rows, self.first)
        return _joined(self.given(given), self.other(other), self.last)


def _both(rows: Tensor, first: bool) -> tuple[Tensor, Tensor]:
    return (rows, rows) if first else (rows[:, 0], rows[:, 1])


def _joined(given: Tensor, other: Tensor, last: bool) -> Tensor:
    return (given + other) / 2 if last else torch.stack([given, other], dim=1)


def statistics_of(stages: nn.Module) -> dict[str, Tensor]:
    """Return the statistics of batch normalisation, by name."""
    return {
        f"{name}.{kind}": cast(Tensor, getattr(module, kind))
        for name, module in stages.named_modules()
        if isinstance(module, _BatchNorm) and module.running_mean is not None
        for kind in _STATISTICS
    }


def in_two_copies(network: nn.Module) -> nn.Module:
    """Return a copy of a network whose two passes share nothing; the network itself if it has none."""
    if not any(isinstance(module, TwoPasses) for module in network.modules()):
        return network
    found = deepcopy(network)
    for parent in list(found.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, TwoPasses):
                setattr(parent, name, child.in_two_copies())
    return found


def passes_of(*parts: nn.Module) -> Iterator[TwoPasses]:
    """Yield the two passes in parts of a network, in order."""
    for part in parts:
        for module in part.modules():
            if isinstance(module, TwoPasses):
                yield module


def copy_second(network: nn.Module, other: nn.Module) -> None:
    """Let the second passes of another network use the statistics of one."""
    for ours, theirs in zip(passes_of(network), passes_of(other), strict=True):
        theirs.set_second(ours.second())


@torch.no_grad()
def estimate_statistics(
    parts: Iterable[TwoPasses], batches: Iterable[Tensor], device: torch.device
) -> list[dict[str, Tensor]]:
    """Return the statistics of batch normalisation on images, which every layer before normalises likewise.

    Args:
        parts: All two passes of a network, in order.
        batches: Images; the batches are mixed and of about the same size, since each counts the same.
        device: Where to compute.

    Returns:
        For each part, its statistics by name.
    """
    network = nn.Sequential(*(deepcopy(one.stages) for one in parts)).to(device).eval()
    for module in network.modules():
        if isinstance(module, _BatchNorm) and module.running_mean is not None:
            module.reset_running_stats()
            module.momentum = None  # the mean over batches, not a moving one
            module.train()
    for images in batches:
        network(images.to(device))
    return [statistics_of(stages) for stages in network]
