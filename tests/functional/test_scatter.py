import pytest
import torch
from oracle import tensor_of

from sohot.functional import scatter_tensor, unique_coefficients


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_equals_the_sum_of_outer_products(order: int) -> None:
    x = torch.randn(6, 3, dtype=torch.float64) + 5
    torch.testing.assert_close(scatter_tensor(x, order), tensor_of(x, order), rtol=1e-12, atol=1e-12)


def test_order_two_is_the_population_covariance() -> None:
    x = torch.randn(9, 4, dtype=torch.float64)
    torch.testing.assert_close(scatter_tensor(x, 2), torch.cov(x.T, correction=0))


@pytest.mark.parametrize("order", [2, 3, 4])
def test_is_super_symmetric_with_the_counted_number_of_coefficients(order: int) -> None:
    tensor = scatter_tensor(torch.randn(20, 3, dtype=torch.float64), order)
    torch.testing.assert_close(tensor, tensor.transpose(0, order - 1))
    different = {round(value, 9) for value in tensor.flatten().tolist()}
    assert len(different) == unique_coefficients(3, order)


def test_one_row_has_no_scatter() -> None:
    assert scatter_tensor(torch.randn(1, 3), 4).abs().max() == 0


def test_half_precision_is_computed_in_float32() -> None:
    x = torch.randn(5, 3).half()
    assert scatter_tensor(x, 2).dtype == torch.float32
    torch.testing.assert_close(scatter_tensor(x, 2), scatter_tensor(x.float(), 2))


def test_autocast_does_not_lower_the_precision() -> None:
    x = torch.randn(50, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scatter = scatter_tensor(x, 2)
    torch.testing.assert_close(scatter, torch.cov(x.T, correction=0))


def test_is_differentiable() -> None:
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda rows: scatter_tensor(rows, 3), x)


def test_a_tensor_too_large_to_build_is_refused_with_advice() -> None:
    with pytest.raises(ValueError, match=r"68,719,476,736 coefficients.*method='gram'"):
        scatter_tensor(torch.zeros(3, 4096), 3)


@pytest.mark.parametrize("order", [2, 3])
def test_many_rows_are_summed_part_by_part(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    expected = scatter_tensor(x, order)
    monkeypatch.setattr("sohot.functional.scatter.MOST_PRODUCTS", 30)
    in_parts = scatter_tensor(x, order)
    torch.testing.assert_close(in_parts, expected)
    slopes = (torch.autograd.grad(tensor.square().sum(), x) for tensor in (in_parts, expected))
    torch.testing.assert_close(*slopes)
