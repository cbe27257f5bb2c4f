import pytest
import standin
import torch
from torch.optim.lr_scheduler import OneCycleLR

from sohot.functional.schedule import learning_rate_factor
from sohot.methods import FitSettings
from sohot.training import Objective
from sohot.training.optimizer import build_optimizer, set_learning_rate


def test_one_cycle_is_that_of_torch():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = OneCycleLR(optimizer, max_lr=1.0, total_steps=40, pct_start=0.3, cycle_momentum=False)
    for step in range(40):
        assert learning_rate_factor(step, 40, "one-cycle", 0.3) == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step < 39:
            schedule.step()


@pytest.mark.parametrize("schedule", ["one-cycle", "cosine", "constant"])
@pytest.mark.parametrize("warmup", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 50])
def test_the_rate_rises_then_falls_within_its_bounds(schedule, warmup, steps):
    factors = [learning_rate_factor(step, steps, schedule, warmup) for step in range(steps)]
    assert all(0 <= factor <= 1 + 1e-12 for factor in factors)
    top = factors.index(max(factors))
    assert factors[: top + 1] == sorted(factors[: top + 1])
    assert factors[top:] == sorted(factors[top:], reverse=True)
    if steps > 1:
        assert max(factors) > 0.9


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_groups_have_their_own_rates(optimizer):
    settings = FitSettings(method="so+zeta", optimizer=optimizer, lr=0.1, zeta_lr=0.03, schedule="constant")
    model, objective = standin.SmallStreams(), Objective(settings.resolved_method(), 3, settings)
    built = build_optimizer(model, objective, settings)
    set_learning_rate(built, 0, settings)
    groups = {group["name"]: (group["lr"], group["weight_decay"]) for group in built.param_groups}
    assert groups == {"tail": (0.1, 5e-4), "head": (1.0, 0.0), "zeta": (0.03, 0.0)}
    assert type(built).__name__.lower() == optimizer
    if optimizer == "sgd":
        assert all(group["momentum"] == 0.9 for group in built.param_groups)


def test_frozen_parameters_are_left_out():
    model = standin.SmallStreams()
    model.tail.requires_grad_(False)
    settings = FitSettings(method="s+t")
    built = build_optimizer(model, Objective(settings.resolved_method(), 3, settings), settings)
    assert [group["name"] for group in built.param_groups] == ["head"]
    with pytest.raises(ValueError, match="no parameters to train"):
        build_optimizer(model.requires_grad_(False), torch.nn.Identity(), settings)
