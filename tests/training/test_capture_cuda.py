"""Training steps as real CUDA graphs end in the weights of steps launched one by one. Skipped without a GPU."""

import warnings

import pytest
import standin
import torch
from torch import nn

from sohot.training import TensorInputs, capture
from sohot.training.pool_rows import PoolInputs

from .test_cuda import difference

pytestmark = [pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]


@pytest.fixture(autouse=True)
def quiet():
    """Allow kernels to say that they have no deterministic form; nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*deterministic.*")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield


@pytest.fixture
def replays(monkeypatch):
    """Count the replays of graphs."""
    done = []
    replay = capture.CudaGraph.replay
    monkeypatch.setattr(capture.CudaGraph, "replay", lambda graph: done.append(graph) or replay(graph))
    return done


def resident(data):
    """Move the inputs of a problem to the GPU."""
    source, source_labels, target, target_labels = data
    return source.cuda(), source_labels, target.cuda(), target_labels


CASES = [
    {"method": "s+t"},
    {"method": "so+to+fo+zeta"},
    {"method": "so", "estimator": "unbiased", "feature_scale": "unit"},
    {"method": "lp-ft", "steps": 20},
    {"method": "so+to", "precision": "bf16-mixed", "clip_norm": 1.0},
    {"method": "so", "optimizer": "adamw", "schedule": "cosine"},
    {"method": "ccsa"},
    {"method": "dsne"},
    {"method": "s"},
    {"method": "t"},
]


@pytest.mark.parametrize("options", CASES, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("place", ["processor", "gpu"])
def test_captured_steps_are_the_same_steps(train, replays, options, place):
    options = {"steps": 12, **options, "device": "cuda", "batches": standin.RandomRows(24, 9)}
    data = resident(standin.problem()) if place == "gpu" else standin.problem()
    plain = train(data=data, capture=False, **options)
    assert not replays
    result = train(data=data, **options)
    assert len(replays) >= options["steps"] - 2
    if "optimizer" not in options:  # AdamW moves a weight without a gradient (a bias before a norm) by rounding errors
        assert difference(plain.model, result.model) < (1e-3 if "precision" in options else 2e-5)
    assert [row["lr"] for row in result.history] == [row["lr"] for row in plain.history]
    for one, other in zip(plain.history, result.history, strict=True):
        assert one.keys() == other.keys()
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-2 if "precision" in options else 1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "s+t", "ramp_up": 0.5, "neighbours": 2},
        {"method": "so+zeta"},
        {"method": "s+t", "pool_loss": "im"},
        {"method": "s+t", "pool_loss": "mcc"},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_a_pool_is_captured_too(train, replays, options):
    rows = standin.problem((24, 400))[2].cuda()
    pool = PoolInputs(TensorInputs(rows), TensorInputs(rows + 0.1))
    options = {**options, "pool": pool, "pool_rows": 24, "steps": 34, "device": "cuda"}
    options["batches"] = standin.RandomRows(24, 9)
    data = resident(standin.problem())
    plain = train(data=data, capture=False, **options)
    result = train(data=data, **options)
    assert len(replays) == 32
    assert difference(plain.model, result.model) < 1e-4
    assert result.pool["prior"] == pytest.approx(plain.pool["prior"], abs=1e-4)


def test_what_cannot_be_captured_says_so_and_trains(train, replays):
    class Curious(standin.SmallStreams):
        """Looks at its input from the host, which a graph cannot."""

        def forward(self, source, target, **options):
            assert float(target.sum()) == float(target.sum())
            return super().forward(source, target, **options)

    options = {"device": "cuda", "steps": 6, "batches": standin.RandomRows(24, 9)}
    with pytest.warns(UserWarning, match="capture: a step cannot be recorded .*, so the steps are launched kernel by"):
        result = train(Curious(), **options)
    assert not replays
    assert difference(result.model, train(Curious(), capture=False, **options).model) < 1e-5
    with pytest.warns(UserWarning, match="capture: with precision 16-mixed"):
        train(precision="16-mixed", **options)


def test_dropout_differs_from_step_to_step(train):
    class Seen(standin.SmallStreams):
        def __init__(self):
            super().__init__()
            self.tail[3] = nn.Dropout(0.5)

    losses = [row["loss"] for row in train(Seen(), device="cuda", lr=1e-12, steps=8).history]
    assert len(set(losses[2:])) == 6
