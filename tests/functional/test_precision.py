"""float32 and mixed precision stay close to float64 where naive forms lose their digits."""

import pytest
import torch
from oracle import batch
from torch import Tensor

from sohot import ScatterAlignment
from sohot.functional import scatter_alignment

Batch = tuple[Tensor, Tensor, Tensor, Tensor]


def relative_error(data: Batch, orders: tuple[int, ...], estimator: str = "plugin") -> float:
    exact = tuple(x.double() if x.is_floating_point() else x for x in data)
    results = []
    for source, source_labels, target, target_labels in (data, exact):
        source, target = source.clone().requires_grad_(), target.clone().requires_grad_()
        loss = scatter_alignment(source, source_labels, target, target_labels, 5, orders, estimator=estimator).loss
        loss.backward()
        results.append((loss.detach().double(), torch.cat([source.grad, target.grad]).double()))
    (loss, gradient), (exact_loss, exact_gradient) = results
    return max(
        float((loss - exact_loss).abs() / exact_loss.abs()),
        float((gradient - exact_gradient).norm() / exact_gradient.norm()),
    )


def far_away(how_far: float, between_domains: float = 0.0) -> Batch:
    """Unit spreads at class means `how_far` spreads from the origin, the domains `between_domains` apart."""
    source, source_labels, target, target_labels = batch(0, [20] * 5, [3] * 5, size=256, dtype=torch.float32)
    direction = torch.randn(256).sign()  # every coordinate moves
    return source + how_far * direction, source_labels, target + (how_far + between_domains) * direction, target_labels


@pytest.mark.parametrize("orders", [(2,), (3,), (4,), (2, 3, 4)])
@pytest.mark.parametrize("estimator", ["plugin", "unbiased"])
def test_float32_at_a_class_mean_of_100_spreads(orders: tuple[int, ...], estimator: str) -> None:
    assert relative_error(far_away(100.0), orders, estimator) < 1e-5


@pytest.mark.parametrize("orders", [(2,), (2, 3, 4)])
def test_float32_with_domains_100_spreads_apart(orders: tuple[int, ...]) -> None:
    assert relative_error(far_away(0.0, between_domains=100.0), orders) < 1e-5


def test_float32_with_domains_that_almost_agree() -> None:
    """At a relative distance of 2e-6 sums of three separate float32 terms are 14 % off."""
    source, labels, _, _ = batch(0, [20] * 5, [1] * 5, size=256, dtype=torch.float32)
    target = source + 1e-3 * torch.randn_like(source)
    assert relative_error((source, labels, target, labels), (2,)) < 1e-2


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_finite_and_close_under_autocast(half: torch.dtype) -> None:
    data = batch(0, [20] * 5, [3] * 5, size=256, dtype=torch.float32)
    layer = torch.nn.Linear(256, 256)
    # Without a scale the gradient itself would exceed what float16 features can take.
    align = ScatterAlignment(5, orders=(2, 3, 4), feature_scale="initial")

    def run(autocast: bool) -> tuple[Tensor, Tensor]:
        layer.zero_grad()
        with torch.autocast("cpu", dtype=half, enabled=autocast):
            loss = align(layer(data[0]) * 10, data[1], layer(data[2]) * 10, data[3])
        assert loss.dtype == torch.float32
        loss.backward()
        return loss.detach(), layer.weight.grad.clone()

    (loss, gradient), (exact_loss, exact_gradient) = run(True), run(False)
    assert torch.isfinite(loss)
    assert (loss - exact_loss).abs() / exact_loss < 2e-2
    assert (gradient - exact_gradient).norm() / exact_gradient.norm() < 2e-2


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_powers_of_raw_features_do_not_overflow_under_autocast(half: torch.dtype) -> None:
    data = batch(0, [20] * 5, [3] * 5, size=256, dtype=torch.float32)
    with torch.autocast("cpu", dtype=half):
        loss = ScatterAlignment(5, orders=(2, 3, 4))(10 * data[0].to(half), data[1], 10 * data[2].to(half), data[3])
    assert 1e12 < loss < float("inf")


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_half_precision_features_only_lose_what_they_have_lost_before(half: torch.dtype) -> None:
    data = batch(0, [20] * 5, [3] * 5, size=64, dtype=torch.float32)
    source, target = (10 * data[0]).to(half).requires_grad_(), (10 * data[2]).to(half)
    loss = scatter_alignment(source, data[1], target, data[3], 5, (2, 3)).loss
    exact = scatter_alignment(source.double(), data[1], target.double(), data[3], 5, (2, 3)).loss
    loss.backward()
    assert loss.dtype == torch.float32
    assert source.grad.dtype == half
    torch.testing.assert_close(loss.double(), exact, rtol=1e-5, atol=0)


def test_domains_of_different_precision_meet_at_the_higher_one() -> None:
    source, source_labels, target, target_labels = batch(0, [4] * 5, [3] * 5)
    loss = scatter_alignment(source.float(), source_labels, target, target_labels, 5).loss
    assert loss.dtype == torch.float64


@pytest.mark.parametrize("order", [8, 12])
def test_high_orders_are_exact_in_float32(order: int) -> None:
    data = batch(0, [6] * 5, [5] * 5, size=8, dtype=torch.float32)
    assert relative_error(data, (order,)) < 1e-4


def test_padding_far_from_the_origin_stays_out_of_high_powers() -> None:
    source, source_labels, target, target_labels = batch(0, [6, 3], [5, 3])
    near = scatter_alignment(source, source_labels, target, target_labels, 2, (30,)).distances
    far = scatter_alignment(source + 1e6, source_labels, target + 1e6, target_labels, 2, (30,)).distances
    torch.testing.assert_close(far, near, rtol=1e-5, atol=0)


def test_an_order_beyond_float32_says_what_to_do() -> None:
    data = batch(0, [6] * 5, [5] * 5, size=64, dtype=torch.float32)
    with pytest.raises(ValueError, match=r"scatters of order 12 exceed the range of torch.float32: scale the features"):
        scatter_alignment(100 * data[0], data[1], 100 * data[2], data[3], 5, (12,))
    scaled = ScatterAlignment(5, (12,), feature_scale="initial")
    assert torch.isfinite(scaled(100 * data[0], data[1], 100 * data[2], data[3]))
