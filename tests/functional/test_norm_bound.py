import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sohot.functional.norm_bound import bound_norm


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.floats(0.01, 1e4), st.floats(1e-3, 1e3))
def test_result_lies_in_the_ball_keeps_directions_and_is_stable(seed, bound, size):
    rows = size * torch.randn(6, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    bounded, clipped = bound_norm(rows, bound)
    assert (bounded.square().sum(1) <= bound * (1 + 1e-9)).all()
    torch.testing.assert_close(torch.cosine_similarity(rows, bounded), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(bound_norm(bounded, bound)[0], bounded)
    assert torch.equal(clipped, rows.square().sum(1) > bound)
    assert torch.equal(bounded[~clipped], rows[~clipped])


def test_gradient_is_right_inside_and_outside_and_finite_at_zero():
    rows = torch.tensor([[3.0, 4.0, 1.0], [0.1, 0.2, 0.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: bound_norm(x, 1.0)[0], rows)
    zero = torch.zeros(1, 3, requires_grad=True)
    bound_norm(zero, 1.0)[0].sum().backward()
    assert torch.equal(zero.grad, torch.ones(1, 3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_does_not_overflow(dtype):
    bounded, clipped = bound_norm(torch.full((1, 4096), 40.0, dtype=dtype), 100.0)  # ‖φ‖² is 6.5e6, above float16
    assert bounded.dtype == dtype
    assert clipped.all()
    torch.testing.assert_close(bounded.float().square().sum(), torch.tensor(100.0), rtol=0.02, atol=0)
