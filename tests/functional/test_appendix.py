"""The paper's derivatives, autograd on the explicit tensors, and the closed form of the product agree."""

import appendix
import pytest
import torch
from hypothesis import given
from oracle import seeds, tensor_of

from sohot import scatter_distance
from sohot.functional import scatter_alignment


def rows(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(5, 3, generator=generator, dtype=torch.float64) + 1
    y = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    return x.requires_grad_(), y.requires_grad_()


@given(seeds)
def test_appendix_b_means(seed: int) -> None:
    x, y = rows(seed)
    expected = appendix.mean_distance_gradients(x.detach(), y.detach())
    by_definition = torch.autograd.grad((x.mean(0) - y.mean(0)).square().sum(), (x, y))
    labels = torch.zeros(9, dtype=torch.long)
    means_only = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    loss = scatter_alignment(x, labels[:5], y, labels[:4], 1, weights=means_only).loss
    torch.testing.assert_close(by_definition, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, (x, y)), expected)


@given(seeds)
def test_appendix_b_covariances(seed: int) -> None:
    x, y = rows(seed)
    expected = appendix.covariance_distance_gradients(x.detach(), y.detach())
    torch.testing.assert_close(torch.autograd.grad(scatter_distance(x, y, 2), (x, y)), expected)


@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
@given(seed=seeds)
def test_appendix_c_in_matrix_form(order: int, seed: int) -> None:
    x, y = rows(seed)
    expected = appendix.kernel_distance_gradients(x.detach(), y.detach(), order)
    by_definition = (tensor_of(x, order) - tensor_of(y, order)).square().sum()
    torch.testing.assert_close(torch.autograd.grad(by_definition, (x, y)), expected)
    torch.testing.assert_close(torch.autograd.grad(scatter_distance(x, y, order), (x, y)), expected)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_appendix_c_case_by_case(order: int) -> None:
    x, y = rows()
    by_x, by_y = torch.autograd.grad(scatter_distance(x, y, order), (x, y))
    x, y = x.detach(), y.detach()
    for row in range(len(x)):
        torch.testing.assert_close(appendix.kernel_distance_gradient_by_cases(x, y, order, row), by_x[row])
    for row in range(len(y)):
        torch.testing.assert_close(appendix.kernel_distance_gradient_by_cases(y, x, order, row), by_y[row])
