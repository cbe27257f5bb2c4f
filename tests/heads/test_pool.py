"""The pool: unlabelled target rows in the objective, alone and in stacks, and the prior of its classes."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from sohot.heads import FeatureProblem, fit_stack
from sohot.heads.logistic import fit_logistic
from sohot.heads.pool import Pool, class_prior, pool_loss
from sohot.methods import HeadSettings
from sohot.selection import Fold

LOSSES = ("im", "entropy", "mcc")


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def even(fits: int, rows: int) -> torch.Tensor:
    return torch.full((fits, rows), 1 / rows, dtype=torch.float64)


def problem(seed: int = 0, pool: int = 40) -> FeatureProblem:
    """Three classes; the target is moved, and its pool is large."""
    source, target, unlabelled = torch.arange(30) % 3, torch.arange(9) % 3, torch.arange(pool) % 3
    centres = 3 * drawn(3, 5, seed=seed + 1)
    rows = [centres[y] + drawn(len(y), 5, seed=seed + 2 + k) for k, y in enumerate((source, target, unlabelled))]
    return FeatureProblem(rows[0], source, rows[1] + 1, target, 3, pool=rows[2] + 1)


@pytest.mark.parametrize("loss", LOSSES)
def test_empty_slots_and_the_order_of_rows_do_not_matter(loss: str) -> None:
    logits, prior = drawn(1, 6, 3), even(1, 3)
    expected = pool_loss(logits, even(1, 6), prior, loss)
    assert_close(pool_loss(logits[:, torch.tensor([4, 1, 0, 5, 2, 3])], even(1, 6), prior, loss), expected)
    padded, weights = torch.cat([logits, drawn(1, 2, 3)], 1), torch.cat([even(1, 6), torch.zeros(1, 2)], 1)
    assert_close(pool_loss(padded, weights, prior, loss), expected)
    assert_close(class_prior(padded, weights), class_prior(logits, even(1, 6)))


def test_a_class_that_cannot_be_costs_nothing_and_has_no_gradient() -> None:
    logits = torch.cat([drawn(1, 6, 3), torch.full((1, 6, 1), -torch.inf)], 2).requires_grad_()
    for loss in LOSSES:
        term = pool_loss(logits, even(1, 6), even(1, 4), loss)
        (gradient,) = torch.autograd.grad(term.sum(), logits)
        assert bool(torch.isfinite(gradient).all())
        assert not gradient[..., 3].any()


def test_the_prior_is_a_fixed_point_that_adds_up_to_one() -> None:
    logits, weights = 4 * drawn(2, 50, 3), even(2, 50)
    prior = class_prior(logits, weights)
    assert_close(prior.sum(1), torch.ones(2, dtype=torch.float64))
    adjusted = (logits + prior.log().unsqueeze(1)).softmax(2).mean(1)
    pull = 1 + 3 * 3 / 50
    assert_close((adjusted + pull / 3) / (1 + pull), prior, atol=1e-6, rtol=0)


def test_the_prior_follows_a_large_pool_and_hardly_a_small_one() -> None:
    sure = torch.tensor([[[9.0, 0.0]]])
    large, small = (class_prior(sure.expand(1, n, 2), even(1, n).float())[0, 0] for n in (1000, 3))
    assert large > 0.74
    assert 0.5 < small < 0.65


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradient_vanishes_where_a_fit_ends(loss: str) -> None:
    rows, labels, weights, decay = drawn(1, 30, 4), torch.arange(30).view(1, -1) % 3, even(1, 30), torch.tensor([0.05])
    pool = Pool(drawn(1, 20, 4, seed=5) + 1, even(1, 20), torch.tensor([0.3]), even(1, 3), loss)
    start = fit_logistic(rows, labels, weights, decay, 3)
    heads = fit_logistic(rows, labels, weights, decay, 3, pool=pool, start=start, tolerance=1e-5)

    def objective(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        entropy = torch.nn.functional.cross_entropy(rows[0] @ weight[0] + bias[0], labels[0])
        return entropy + decay * weight.square().sum() + pool.double().term(pool.rows @ weight + bias.unsqueeze(1))

    leaves = [x.clone().requires_grad_() for x in heads]
    gradients = torch.autograd.grad(objective(*leaves).sum(), leaves)
    assert max(float(x.abs().max()) for x in gradients) < 2e-5
    assert objective(*heads) < objective(*start)


FORMS: list[dict[str, Any]] = [
    {},
    {"prior": "uniform", "pool_loss": "mcc"},
    {"method": "t"},
    {"method": "means", "steps": 5},
    {"method": "so", "hidden": 3, "heads": "coupled", "streams": "separate", "norm_bound": 20.0, "steps": 5},
]


@pytest.mark.parametrize("form", FORMS)
def test_a_stack_finds_what_each_fit_finds_alone(form: dict[str, Any]) -> None:
    settings = [
        replace(HeadSettings(**form), head_decay=decay, pool_weight=beta) for decay, beta in ((0.03, 0.3), (0.1, 1))
    ]
    problems = [problem(), problem(7, pool=25)]
    together = fit_stack(problems, settings)
    for one, of_fit, found in zip(problems, settings, together, strict=True):
        (alone,) = fit_stack([one], [of_fit])
        assert_close(alone.predict_logits(one.target), found.predict_logits(one.target), atol=1e-4, rtol=1e-4)
        (bare,) = fit_stack([replace(one, pool=None)], [of_fit])
        assert not torch.allclose(alone.predict_logits(one.target), bare.predict_logits(one.target), atol=1e-2)


def test_no_pool_no_weight_and_source_only_are_the_same_as_ever_bit_by_bit() -> None:
    one = problem()
    pairs = [(HeadSettings(pool_weight=0), HeadSettings()), (HeadSettings(method="s"), HeadSettings(method="s"))]
    for with_pool, without in pairs:
        fits = fit_stack([one], [with_pool]) + fit_stack([replace(one, pool=None)], [without])
        for name, x in fits[0].parameters.items():
            assert torch.equal(x, fits[1].parameters[name])


def test_the_order_of_the_pool_does_not_matter() -> None:
    one = problem()
    assert one.pool is not None
    turned = replace(one, pool=one.pool.flip(0))
    fits = fit_stack([one, turned], [HeadSettings()] * 2)
    assert_close(*(fit.predict_logits(one.target) for fit in fits), atol=1e-5, rtol=1e-5)


def test_a_pool_of_a_few_rows_counts_for_less() -> None:
    one = problem(pool=15)
    assert one.pool is not None
    few = replace(one, pool=one.pool[:3])
    bare, part, full = fit_stack(
        [replace(one, pool=None), few, few], [HeadSettings(), HeadSettings(), HeadSettings(pool_weight=5.0)]
    )
    moved = [(fit.predict_logits(one.target) - bare.predict_logits(one.target)).abs().max() for fit in (part, full)]
    assert 0 < moved[0] < 0.5 * moved[1]


def test_held_out_rows_join_the_pool() -> None:
    one = problem()
    part = one.without(Fold([0, 1, 2, 3, 4, 5], [6, 7, 8]))
    assert part.pool is not None
    assert len(part.pool) == 43
    assert torch.equal(part.pool[-3:], one.target[6:])
    assert part.sizes == (30, 6)
    assert replace(one, pool=None).without(Fold([0, 1], [2])).pool is None


def test_a_bad_pool_ends_in_a_sentence() -> None:
    one = problem()
    with pytest.raises(ValueError, match="pool must have 5 features"):
        replace(one, pool=torch.zeros(3, 4))
    with pytest.raises(ValueError, match="pool"):
        replace(one, pool=torch.full((3, 5), torch.nan))
