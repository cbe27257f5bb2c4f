"""The stacked optimiser: torch's own, for every fit."""

import pytest
import torch
from torch.testing import assert_close

from sohot.functional.schedule import learning_rate_factor
from sohot.heads.optimizer import EPSILON, FlatParameters, StackedOptimizer
from sohot.methods import HeadSettings

NAMES = ("target.map", "target.classifier", "zeta")


def start(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(3, 2, generator=generator, dtype=torch.float64) for name in NAMES}


def loss_of(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
    return sum(((x - 1) ** 4).sum() for x in parameters.values())


@pytest.mark.parametrize("kind", ["adamw", "sgd"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize(("schedule", "head_first"), [("one-cycle", None), ("constant", None), ("one-cycle", 0.5)])
def test_each_fit_is_trained_as_torch_would(kind, decay, schedule, head_first):
    common = {"optimizer": kind, "schedule": schedule, "steps": 8, "weight_decay": decay, "head_first": head_first}
    of_fits = [HeadSettings(lr=lr, zeta_lr=lr / 3, **common) for lr in (0.01, 0.001)]
    parameters = FlatParameters([start(0), start(1)], torch.zeros(1, dtype=torch.float64))
    stacked = StackedOptimizer(parameters, of_fits)
    for number in range(8):
        stacked.step(parameters.gradient(loss_of(parameters.named)), number)

    for place, of_fit in enumerate(of_fits):
        single = {name: torch.nn.Parameter(x) for name, x in start(place).items()}
        rates = dict(zip(NAMES, (of_fit.lr, 10 * of_fit.lr, of_fit.zeta_lr), strict=True))
        build = torch.optim.AdamW if kind == "adamw" else torch.optim.SGD
        options = {"weight_decay": 0.0} | ({"momentum": 0.9} if kind == "sgd" else {"eps": EPSILON})
        optimizer = build([{"params": [x], "lr": rates[name]} for name, x in single.items()], **options)
        for number in range(8):
            optimizer.zero_grad()
            loss_of(single).backward()
            waits, done, length = of_fit.stage(number)
            factor = learning_rate_factor(done, length, schedule, of_fit.warmup)
            if waits:
                single["target.map"].grad = None
            for group, rate in zip(optimizer.param_groups, rates.values(), strict=True):
                group["lr"] = rate * factor
            with torch.no_grad():  # torch's SGD knows no decoupled decay, so it is spelt out here for both
                single["target.map"].mul_(1 - (0 if waits else rates["target.map"] * factor * decay))
            optimizer.step()
        for name, x in single.items():
            assert_close(parameters.named[name][place], x, rtol=1e-12, atol=1e-12)
