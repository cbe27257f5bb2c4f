"""What happens to features before training."""

import pytest
import torch
from torch.testing import assert_close

from sohot.heads.preparation import prepare, principal_axes


def data(rows: int, size: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    spread = torch.logspace(0, -2, size, dtype=torch.float64)
    turned = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64)).Q
    return torch.randn(rows, size, generator=generator, dtype=torch.float64) * spread @ turned + 3


@pytest.mark.parametrize(("rows", "size", "count"), [(50, 20, 4), (12, 30, 8), (40, 200, 30), (60, 200, 30)])
def test_axes_are_those_of_a_singular_value_decomposition(rows, size, count):
    centred = data(rows, size) - data(rows, size).mean(0)
    [axes] = principal_axes(centred.unsqueeze(0), count)
    assert_close(axes.T @ axes, torch.eye(count, dtype=torch.float64), rtol=0, atol=1e-8)
    exact = torch.linalg.svdvals(centred)[:count].square().sum()
    assert_close((centred @ axes).square().sum(), exact, rtol=1e-6, atol=0)
    largest = axes.abs().argmax(0)
    assert (axes[largest, torch.arange(count)] > 0).all()


def test_axes_beyond_the_rank_are_zero():
    line = torch.linspace(-1, 1, 9, dtype=torch.float64).unsqueeze(1) * torch.tensor([3.0, 4.0, 0.0, 0.0]).double()
    [axes] = principal_axes(line.unsqueeze(0), 3)
    assert_close(axes[:, 0], torch.tensor([0.6, 0.8, 0.0, 0.0]).double())
    assert (axes[:, 1:] == 0).all()
    assert not axes.isnan().any()


@pytest.mark.parametrize("components", [None, 3, 50])
def test_prepared_rows_are_centred_in_a_unit_that_does_not_depend_on_the_number_of_axes(components):
    rows = data(40, 8)
    [preparation] = prepare([rows], components)
    prepared = preparation(rows)
    assert prepared.shape == (40, preparation.size)
    assert preparation.size == (3 if components == 3 else 8)
    assert_close(prepared.mean(0), torch.zeros(preparation.size).double(), rtol=0, atol=1e-12)
    squares = torch.linalg.svdvals(rows - rows.mean(0)).square()
    share = squares[: preparation.size].sum() / squares.sum()
    assert_close(prepared.square().sum() / rows.numel(), share)


def test_problems_prepared_together_are_those_prepared_alone():
    sets = [data(40, 30, seed=0), data(25, 30, seed=1), data(33, 30, seed=2)]
    for found, rows in zip(prepare(sets, 6), sets, strict=True):
        [alone] = prepare([rows], 6)
        assert_close(found.mean, alone.mean, rtol=0, atol=1e-12)
        assert_close(found.axes, alone.axes, rtol=0, atol=1e-9)


def test_rows_that_are_all_the_same_are_no_accident():
    [preparation] = prepare([torch.full((5, 40), 2.0)], 4)
    assert (preparation(torch.full((2, 40), 2.0)) == 0).all()
