"""Other ways to compute the alignment: what a careful user would write, and what other libraries offer."""

import importlib.util
from collections.abc import Callable
from importlib.metadata import distribution

import torch
from timing import Batch
from torch import Tensor

from sohot.functional import scatter_tensor

PairLoss = Callable[[Tensor, Tensor], Tensor]


def over_classes(batch: Batch, loss: PairLoss) -> Tensor:
    """Average a loss over the classes, one after another."""
    source, source_labels, target, target_labels = batch.arguments
    total = torch.zeros(())
    for c in range(batch.num_classes):
        total = total + loss(source[source_labels == c], target[target_labels == c])
    return total / batch.num_classes


def kernel_loop(batch: Batch, orders: tuple[int, ...]) -> Tensor:
    """Compute the paper's kernel form class by class, differentiated by autograd."""

    def loss(x: Tensor, y: Tensor) -> Tensor:
        mean_x, mean_y = x.mean(0), y.mean(0)
        x, y = x - mean_x, y - mean_y
        within, within_star, across = x @ x.T, y @ y.T, x @ y.T
        total = (mean_x - mean_y).square().sum()
        for order in orders:
            distance = within.pow(order).mean() + within_star.pow(order).mean() - 2 * across.pow(order).mean()
            total = total + distance / len(orders)
        return total

    return over_classes(batch, loss)


def explicit_covariances(x: Tensor, y: Tensor) -> Tensor:
    """Build and subtract both covariance matrices of a class."""
    means = (x.mean(0) - y.mean(0)).square().sum()
    return means + (scatter_tensor(x, 2) - scatter_tensor(y, 2)).square().sum()


def skada_coral() -> PairLoss:
    """Return skada's CORAL loss. It aligns whole domains; here it is called class by class."""
    from skada.deep.losses import deepcoral_loss

    return deepcoral_loss


def pytorch_adapt_coral() -> PairLoss:
    """Load pytorch-adapt's CORAL loss by file: the package no longer imports with current dependencies."""
    file = distribution("pytorch-adapt").locate_file("pytorch_adapt/layers/coral_loss.py")
    spec = importlib.util.spec_from_file_location("pytorch_adapt_coral", str(file))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CORALLoss()
