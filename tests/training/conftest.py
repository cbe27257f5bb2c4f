from typing import Any

import pytest
import standin
import torch

from sohot.methods import FitSettings
from sohot.training import FitResult, TensorInputs, fit
from sohot.training.pool_rows import PoolInputs


@pytest.fixture
def train():
    """Train the small model on the small problem, with `so` and any setting or argument of `fit`."""

    def run(model: Any = None, data: Any = None, **options: Any) -> FitResult:
        arguments = {
            name: options.pop(name)
            for name in ("batches", "pool", "run_dir", "resume", "config", "on_step")
            if name in options
        }
        source, source_labels, target, target_labels = standin.problem() if data is None else data
        settings = FitSettings(
            **{"method": "so", "steps": 12, "lr": 0.02, "device": "cpu", "loggers": "none", **options}
        )
        inputs = TensorInputs(source), source_labels, TensorInputs(target), target_labels
        return fit(standin.SmallStreams() if model is None else model, *inputs, settings, **arguments)

    return run


@pytest.fixture
def pool() -> PoolInputs:
    """Forty rows of the target, in two views."""
    rows = standin.problem((24, 40))[2]
    noise = 0.2 * torch.randn(rows.shape, generator=torch.Generator().manual_seed(5))
    return PoolInputs(TensorInputs(rows), TensorInputs(rows + noise))


@pytest.fixture
def same_weights():
    def compare(one: Any, other: Any) -> bool:
        first, second = one.state_dict(), other.state_dict()
        return list(first) == list(second) and all(first[name].equal(second[name]) for name in first)

    return compare
