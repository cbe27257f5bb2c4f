"""Weights of rows in a stack of fits: the same as for one fit, and without them nothing changes."""

import pytest
import torch
from made_up_problems import problem
from torch import Tensor
from torch.testing import assert_close

from sohot import ScatterAlignment
from sohot.heads import FeatureProblem
from sohot.heads.alignment import StackedAlignment
from sohot.heads.domain_loss import StackedLoss
from sohot.heads.layout import StackLayout, lay_out
from sohot.losses.domain_loss import DomainLoss, loss_class
from sohot.methods import HeadSettings, method

LOSSES = ("variance", "ccsa", "dsne", "dage", "supcon")
PROBLEMS = [problem(0, (5, 4, 6), (3, 2, 4)), problem(1, (4, 1, 3), (2, 3, 0))]


def laid_out() -> tuple[StackLayout, Tensor]:
    layout = lay_out([(one.source_labels, one.target_labels) for one in PROBLEMS], 3)
    return layout, layout.fill([one.source for one in PROBLEMS], [one.target for one in PROBLEMS])


def weights_of(one: FeatureProblem) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(len(one.source))
    source, target = (torch.rand(len(x), generator=generator).double() for x in (one.source, one.target))
    source[1], target[-1] = 0, 0
    return source, target


def in_slots(layout: StackLayout) -> Tensor:
    weights = [weights_of(one) for one in PROBLEMS]
    return layout.fill([s.unsqueeze(1) for s, _ in weights], [t.unsqueeze(1) for _, t in weights]).squeeze(2)


@pytest.mark.parametrize("estimator", ["plugin", "unbiased"])
@pytest.mark.parametrize(("orders", "scope"), [((2,), "class"), ((2,), "marginal"), ((4, 3), "class"), ((), "class")])
def test_the_alignment_of_each_fit(orders: tuple[int, ...], scope: str, estimator: str) -> None:
    layout, rows = laid_out()
    options = {"full_rows": 3, "scatter_rows": 2}
    stacked = StackedAlignment(
        layout, orders, scope, estimator, rows.shape[2], rows.requires_grad_(), in_slots(layout), **options
    )
    found = stacked(rows, torch.ones(2, dtype=torch.float64))
    totals = (stacked.shares * found.distances).sum((1, 2))
    (slopes,) = torch.autograd.grad(totals.sum(), rows)
    for k, one in enumerate(PROBLEMS):
        sigma1 = float(len(orders))
        single = ScatterAlignment(3, orders or (2,), sigma1, scope=scope, estimator=estimator, **options).double()
        source, target = weights_of(one)
        leaf = one.source.clone().requires_grad_()
        data = leaf, one.source_labels, one.target, one.target_labels
        loss = single(*data, source_weights=source, target_weights=target)
        assert_close(totals[k], loss)
        assert_close(slopes[k, layout.source_slots[k]], *torch.autograd.grad(loss, leaf))
        measured = ScatterAlignment(3, scope=scope, estimator=estimator, feature_scale="initial").double()
        measured(*data, source_weights=source, target_weights=target)
        assert_close(found.energy[k].sqrt(), measured.scale)


def new_loss(name: str, layout: StackLayout, rows: Tensor, weights: Tensor | None) -> tuple[StackedLoss, DomainLoss]:
    kind = loss_class(method(name).loss)
    assert kind is not None
    settings = [HeadSettings(method=name, loss_weight=1.0)] * 2
    return StackedLoss(kind, settings, layout, rows, weights), kind(3, weight=1.0)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_of_another_paper_of_each_fit(name: str) -> None:
    layout, rows = laid_out()
    stacked, single = new_loss(name, layout, rows, in_slots(layout))
    found = stacked(rows, torch.ones(2, dtype=torch.float64))
    spread = stacked.spread(rows)
    for k, one in enumerate(PROBLEMS):
        source, target = weights_of(one)
        data = one.source, one.source_labels, one.target, one.target_labels
        assert_close(found[k], single(*data, source_weights=source, target_weights=target))
        if single.is_scaled:
            measured = type(single)(3, feature_scale="initial").double()
            measured(*data, source_weights=source, target_weights=target)
            assert_close(spread[k], measured.scale)


@pytest.mark.parametrize("shape", [(), (2,)], ids=["for all fits", "for each"])
def test_equal_weights_are_none_bit_for_bit(shape: tuple[int, ...]) -> None:
    layout, rows = laid_out()
    rows, scale, weights = rows.float(), torch.ones(2), torch.full((*shape, layout.slots), 0.3)
    for estimator in ("plugin", "unbiased"):
        options = layout, (2, 3), "class", estimator, rows.shape[2], rows
        plain, equal = (StackedAlignment(*options, w)(rows, scale) for w in (None, weights))
        assert all(map(torch.equal, plain, equal))
    for name in LOSSES:
        plain, equal = (new_loss(name, layout, rows, w)[0](rows, scale) for w in (None, weights))
        assert torch.equal(plain, equal)


def test_nonsense_gets_one_sentence() -> None:
    layout, rows = laid_out()
    shape = rf"weights must have the shape \(2, {layout.slots}\) or \({layout.slots},\), one for each slot, got \(5,\)"
    for weights, sentence in ((torch.ones(5), shape), (-torch.ones(layout.slots), "of at least 0, got -1.0")):
        with pytest.raises(ValueError, match=sentence):
            StackedAlignment(layout, (2,), "class", "plugin", rows.shape[2], rows, weights)
