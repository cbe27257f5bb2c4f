"""Methods from other papers that learn from unlabelled rows: what each is, and what a training needs for it."""

import pytest
import torch
from standin import plain_streams
from torch import nn

from sohot.functional.unlabelled import mean_entropy
from sohot.methods import POOL_NAMES, FitSettings, method
from sohot.methods.pool_recipes import RECIPES
from sohot.training import Objective
from sohot.training.pool_rows import PoolBatch
from sohot.training.pool_terms import TERMS
from sohot.training.step import TrainingStep
from sohot.training.teacher import Teacher

from .test_pool import close


def test_every_recipe_is_made_of_known_terms():
    assert {term for recipe in RECIPES.values() for term in recipe.terms} == set(TERMS)


@pytest.mark.parametrize("name", POOL_NAMES)
def test_a_method_is_both_domains_with_its_recipe(train, pool, same_weights, name):
    given = {"pool": pool, "pool_rows": 12, "steps": 4, "lr": 0.002}
    as_method = train(plain_streams(), method=name, **given)
    as_recipe = train(plain_streams(), method="s+t", pool_loss=name, **given)
    plain = train(plain_streams(), method=name, pool_weight=0.0, **given)
    assert same_weights(as_method.model, as_recipe.model)
    if name != "fixmatch":  # whose threshold no row may reach at first
        assert not same_weights(as_method.model, plain.model)
    (term,) = RECIPES[name].terms
    assert all(term in record for record in as_method.history)


@pytest.mark.parametrize("name", ["so+zeta", "m", "means"])
def test_any_alignment_combines_with_any_recipe(train, pool, name):
    result = train(plain_streams(), method=name, pool_loss="entropy", pool=pool, pool_rows=12, steps=3)
    assert {"alignment", "entropy"} <= result.history[-1].keys()


@pytest.mark.parametrize("name", ["fixmatch", "adamatch"])
def test_labels_come_from_the_weights_themselves_and_an_average_is_tested(train, pool, name):
    """With a weight of 0 the student is that of s+t, so that its path is known."""
    constant = {"schedule": "constant", "warmup": 0.0}
    kept = train(plain_streams(), method=name, pool=pool, pool_weight=0.0, pool_rows=12, steps=4, **constant)
    average = Teacher(plain_streams(), decay=0.99)
    for steps in range(1, 5):
        student = train(plain_streams(), method="s+t", steps=steps, **constant).model
        average.follow(student)
    assert close(kept.model, average.model)
    # Which labels the rows of the fourth step:
    student = train(plain_streams(), method="s+t", steps=3, **constant).model.eval()
    with torch.no_grad():
        confidence = student(None, pool.weak.tensor).target_logits.softmax(1).max(1).values
    if name == "fixmatch":  # all rows are labelled anew in each step of a batch of 40
        kept = train(plain_streams(), method=name, pool=pool, pool_weight=0.0, pool_rows=40, steps=4, **constant)
        assert kept.history[-1]["mask_rate"] == pytest.approx((confidence >= 0.95).float().mean().item())


def step_of(name: str, model: nn.Module, weight: float) -> TrainingStep:
    settings = FitSettings(method="s+t", pool_loss=name, pool_weight=weight, head_decay=0.0)
    return TrainingStep(model, Objective(method("s+t"), 3, settings, with_pool=True), settings)


def test_entropy_is_lowered_by_classifier_and_features():
    model, x, y = plain_streams(), torch.randn(9, 4, generator=torch.Generator().manual_seed(0)), torch.arange(9) % 3
    of_pool = torch.randn(20, 4, generator=torch.Generator().manual_seed(1))
    labels, prior = torch.zeros(20, dtype=torch.int64), torch.full((3,), 1 / 3)
    batch = PoolBatch(of_pool, labels, torch.ones(20), prior, torch.ones(()), None)
    losses = [step_of("entropy", model, weight)(x, y, x, y, pool=batch)["loss"] for weight in (1.0, 0.0)]
    parameters = [model.head.weight, model.tail[0].weight]
    entropy = mean_entropy(model(None, of_pool).target_logits)
    expected = torch.autograd.grad(0.1 * entropy, parameters)
    torch.testing.assert_close(torch.autograd.grad(losses[0] - losses[1], parameters), expected)


@pytest.mark.parametrize("name", POOL_NAMES)
def test_without_a_pool_there_is_nothing_to_learn_from(train, name):
    with pytest.raises(ValueError, match=f"method '{name}' learns from unlabelled target images: pass a pool"):
        train(plain_streams(), method=name)
