"""Batches through a network without gradients; on a CPU each core takes images of its own."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from .._device import in_order, side_by_side
from .fusion import arranged, fuse_layers
from .two_passes import in_two_copies

ROWS = 8
"""Images that pass together on a CPU: enough to fill its units, few enough for what they need to stay in its caches."""


def run_batches(network: nn.Module, batches: Iterable[Tensor], device: torch.device) -> Iterator[Tensor]:
    """Pass batches through a network in evaluation mode and without gradients.

    Args:
        network: The network, on the device. On a CPU a copy with fused layers takes its place.
        batches: Batches of rows; the next ones are read while those before them are computed.
        device: Where the network is.

    Yields:
        The outputs of each batch, on the CPU.

    Example:
        >>> [outputs.shape for outputs in run_batches(nn.Flatten(), [torch.ones(3, 2, 2)], torch.device("cpu"))]
        [torch.Size([3, 4])]
    """
    network.eval()
    if device.type == "cpu":
        network = in_two_copies(network)  # threads share it
    else:
        for batch in batches:
            yield _pass(network, batch.to(device)).cpu()
        return
    sizes: list[int] = []
    parts: list[Tensor] = []
    for part in in_order(side_by_side(_jobs(network, batches, sizes), device)):
        parts.append(part)
        if sum(map(len, parts)) == sizes[0]:
            yield torch.cat(parts) if len(parts) > 1 else parts[0]
            del sizes[0]
            parts = []


def run_views(network: nn.Module, batches: Iterable[Tensor], views: int, device: torch.device) -> Iterator[Tensor]:
    """Pass batches through a network and average the outputs over the views of each image.

    Args:
        network: The network, on the device.
        batches: Batches of images; of shape (images, views, channels, size, size) if there are several views.
        views: Views of each image.
        device: Where the network is.

    Yields:
        The mean output of each image of a batch, on the CPU.

    Example:
        >>> images = torch.arange(4.0).view(2, 2, 1, 1, 1)
        >>> [outputs.tolist() for outputs in run_views(nn.Flatten(), [images], 2, torch.device("cpu"))]
        [[[0.5], [2.5]]]
    """
    if views == 1:
        return run_batches(network, batches, device)
    return (rows.mean(1) for rows in run_each_view(network, batches, views, device))


def run_each_view(network: nn.Module, batches: Iterable[Tensor], views: int, device: torch.device) -> Iterator[Tensor]:
    """Pass batches of shape (images, views, …) through a network; yield its outputs: (images, views, …), on the CPU."""
    outputs = run_batches(network, (batch.flatten(0, 1) for batch in batches), device)
    return (rows.view(-1, views, *rows.shape[1:]) for rows in outputs)


def _jobs(
    network: nn.Module, batches: Iterable[Tensor], sizes: list[int]
) -> Iterator[Callable[[], tuple[int, Tensor]]]:
    """Split batches into jobs, numbered; note the sizes of the batches."""
    fused: nn.Module | None = None
    number = 0
    for batch in batches:
        fused = fuse_layers(network, batch[:1]) if fused is None else fused
        sizes.append(len(batch))
        for rows in torch.split(batch, ROWS):
            yield partial(_numbered, number, fused, rows)
            number += 1


def _numbered(number: int, network: nn.Module, rows: Tensor) -> tuple[int, Tensor]:
    return number, _pass(network, arranged(rows))


@torch.no_grad()  # here, because the mode belongs to the thread that computes
def _pass(network: nn.Module, rows: Tensor) -> Tensor:
    like = next((value for value in network.parameters() if value.is_floating_point()), rows)
    outputs: Tensor = network(rows.to(like.dtype))
    return outputs.contiguous()
