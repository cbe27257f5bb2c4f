"""Losses over pairs of rows, summed part by part: the same numbers and derivatives, and no matrix of all pairs."""

import pytest
import torch
from domain_losses import CLASSES, LOSSES
from largest_tensor import LargestTensor
from torch import Tensor

from sohot.losses import domain_labels
from sohot.losses.domain_labels import DomainLabels
from sohot.losses.domain_loss import DomainLoss

OVER_PAIRS = [LOSSES[name]() for name in LOSSES if name != "variance"]
each_loss = pytest.mark.parametrize("loss", OVER_PAIRS, ids=lambda loss: type(loss).__name__)
N, M = 14, 9
SOURCE_LABELS, TARGET_LABELS = torch.arange(N) % 3, torch.arange(M) % 2


def in_parts(monkeypatch: pytest.MonkeyPatch, pairs: int) -> None:
    monkeypatch.setattr(domain_labels, "MOST_PAIRS", 0)
    monkeypatch.setattr(domain_labels, "PAIRS_OF_PART", pairs)


def value_and_slopes(loss: DomainLoss, labels: DomainLabels, *leading: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    rows = [torch.randn(*leading, n, 5, generator=generator).double().requires_grad_() for n in (N, M)]
    value = loss.compute(*rows, labels)
    return value, *torch.autograd.grad(value.sum(), rows)


@each_loss
def test_equals_the_sum_over_all_pairs(loss: DomainLoss, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = DomainLabels(SOURCE_LABELS, TARGET_LABELS, CLASSES)
    expected = value_and_slopes(loss, labels)
    in_parts(monkeypatch, 60)
    torch.testing.assert_close(value_and_slopes(loss, labels), expected)


@each_loss
def test_many_fits_with_missing_rows(loss: DomainLoss, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = torch.ones(2, N, dtype=torch.bool), torch.ones(2, M, dtype=torch.bool)
    taken[0][1, 3:6] = False
    taken[1][0, 7] = False
    labels = DomainLabels(SOURCE_LABELS, TARGET_LABELS, CLASSES, taken)
    expected = value_and_slopes(loss, labels, 2)
    in_parts(monkeypatch, 100)
    torch.testing.assert_close(value_and_slopes(loss, labels, 2), expected)


@each_loss
def test_no_matrix_of_all_pairs_is_made(loss: DomainLoss, monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts(monkeypatch, 1000)
    source, target = torch.randn(120, 4, requires_grad=True), torch.randn(80, 4)
    with LargestTensor() as seen:
        loss(source, torch.arange(120) % 3, target, torch.arange(80) % 3).backward()
    assert seen.most <= 1000
