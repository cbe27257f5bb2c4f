"""Learned and closed-form class weights."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracle import batch

from sohot import ScatterAlignment
from sohot.functional import scatter_alignment
from sohot.functional.class_weighting import closed_form_weight

SIZES = ([4, 3, 0, 5, 1, 4], [3, 3, 4, 1, 3, 3])


def test_weights_of_one_change_nothing() -> None:
    data = batch(0, *SIZES)
    torch.testing.assert_close(
        ScatterAlignment(6, (2, 3), class_weights="learned")(*data), ScatterAlignment(6, (2, 3))(*data)
    )


def test_equals_equation_six_with_the_mean_over_orders() -> None:
    data = batch(0, *SIZES)
    align = ScatterAlignment(6, (2, 4), 0.3, 0.7, class_weights="learned", alpha1=0.2, alpha2=0.5).double()
    for parameter in align.parameters():
        torch.nn.init.uniform_(parameter, 0.0, 2.0)
    zeta, zeta_bar = align.zeta, align.zeta_bar
    distances = scatter_alignment(*data, num_classes=6, orders=(2, 4)).distances
    shared = 5
    expected = (
        0.3 / 2 / shared * (zeta * distances[1:]).sum()
        + 0.7 / shared * (zeta_bar * distances[0]).sum()
        + 0.2 / 2 * (zeta - 1).square().sum()
        + 0.5 * (zeta_bar - 1).square().sum()
    )
    torch.testing.assert_close(align(*data), expected)


def test_shapes_and_start() -> None:
    align = ScatterAlignment(6, (2, 3), class_weights="learned")
    assert align.zeta.shape == (2, 6)
    assert align.zeta_bar.shape == (6,)
    assert (align.zeta == 1).all()
    assert {name for name, _ in align.named_parameters()} == {"weights.raw_zeta", "weights.raw_zeta_bar"}


def test_without_learned_weights_there_are_none_to_ask_for() -> None:
    with pytest.raises(ValueError, match="build it with class_weights='learned'"):
        _ = ScatterAlignment(3).zeta


@pytest.mark.parametrize(("optimizer_type", "lr"), [(torch.optim.SGD, 0.01), (torch.optim.Adam, 0.1)])
def test_a_weight_that_would_turn_negative_stops_at_zero_and_can_come_back(optimizer_type: type, lr: float) -> None:
    """With plain weights SGD on features and ζ reaches −1e93 in 24 steps here."""
    source, source_labels, target, target_labels = batch(0, [4, 4], [3, 3], dtype=torch.float32)
    source, target = (10 * source).requires_grad_(), (10 * target).requires_grad_()
    align = ScatterAlignment(2, class_weights="learned", alpha1=0.1, alpha2=0.1, check_values=False)
    optimizer = optimizer_type([source, target, *align.parameters()], lr=lr)
    for _ in range(50):
        loss = align(source, source_labels, target, target_labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert torch.isfinite(loss)
        assert loss >= 0
        assert (align.zeta >= 0).all()
        assert (align.zeta_bar >= 0).all()
    assert (align.zeta_bar == 0).all()
    fresh = torch.optim.SGD(align.parameters(), lr=1.0)
    for _ in range(50):  # where the distances are gone, only the pull towards 1 is left
        fresh.zero_grad()
        align(source, source_labels, source, source_labels).backward()
        fresh.step()
    torch.testing.assert_close(align.zeta, torch.ones(1, 2), rtol=0.01, atol=0)
    torch.testing.assert_close(align.zeta_bar, torch.ones(2), rtol=0.01, atol=0)


def test_two_batches_can_share_one_backward() -> None:
    align = ScatterAlignment(2, class_weights="learned").double()
    first, second = batch(0, [4, 4], [3, 3]), batch(1, [3, 5], [2, 3])
    (align(*first) + align(*second)).backward()
    together = align.weights.raw_zeta.grad.clone()
    align.zero_grad()
    align(*first).backward()
    align(*second).backward()
    torch.testing.assert_close(together, align.weights.raw_zeta.grad)


@given(distance=st.floats(0, 50), sigma=st.floats(0, 2), alpha=st.floats(0.01, 5), classes=st.integers(1, 40))
def test_the_closed_form_is_the_minimum(distance: float, sigma: float, alpha: float, classes: int) -> None:
    def objective(zeta: torch.Tensor) -> torch.Tensor:
        return sigma / classes * zeta * distance + alpha * (zeta - 1).square()

    best = closed_form_weight(torch.tensor(distance).double(), torch.tensor(1 / classes).double(), sigma, alpha)
    candidates = torch.linspace(0, 1, 201, dtype=torch.float64)
    assert 0 <= best <= 1
    assert objective(best) <= objective(candidates).min() + 1e-12


def test_closed_form_weights_minimise_the_loss_of_the_learned_ones() -> None:
    data = batch(0, *SIZES)
    options = {"orders": (2, 3), "sigma1": 0.2, "sigma2": 0.2, "alpha1": 1.0, "alpha2": 1.0}
    learned = ScatterAlignment(6, class_weights="learned", **options).double()
    optimizer = torch.optim.SGD(learned.parameters(), lr=0.1)
    for _ in range(500):
        optimizer.zero_grad()
        learned(*data).backward()
        optimizer.step()
    best = ScatterAlignment(6, class_weights="closed-form", **options)(*data)
    torch.testing.assert_close(learned(*data).detach(), best, rtol=0.05, atol=0)
    assert best <= learned(*data) + 1e-9
    assert best < ScatterAlignment(6, **options)(*data)


def test_closed_form_without_a_penalty_switches_distances_off() -> None:
    weights = closed_form_weight(torch.tensor([0.0, 2.0, -1.0]), torch.ones(()), sigma=1.0, alpha=0.0)
    assert weights.tolist() == [1, 0, 1]
