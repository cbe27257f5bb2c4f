"""Steps as graphs: what a recording must not change. A stand-in for CUDA graphs runs the recorded Python code again."""

import pytest
import standin
import torch

import sohot.training.trainer as trainer_module
from sohot.training import capture
from sohot.training.capture import MOST_KINDS, StepGraphs
from sohot.training.collapse import Collapse, PoolHealth

from .test_resume import Stop, stop_at

CPU = torch.device("cpu")


class Rerun:
    """Runs the code of the recorded step again, on the recorded tensors: as blind to new arguments as a graph."""

    runs = 0

    def __init__(self, _device):
        pass

    def prepare(self, step, batch):
        return step(batch)

    def record(self, step, batch):
        self.batch, self._step = batch, step

    def replay(self):
        Rerun.runs += 1
        return self._step(self.batch)


@pytest.fixture
def recorded(monkeypatch):
    """Record steps on the CPU."""
    Rerun.runs = 0
    monkeypatch.setattr(capture, "CudaGraph", Rerun)
    monkeypatch.setattr(trainer_module, "step_graphs", lambda fabric, *_: StepGraphs(fabric.device))
    build = trainer_module.build_optimizer
    # `fused` is for GPUs here, but the learning rates are tensors, as in graphs.
    monkeypatch.setattr(trainer_module, "build_optimizer", lambda *args, **_: _with_tensors(build(*args)))
    return Rerun


def _with_tensors(optimizer):
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(group["lr"], dtype=torch.float64)
    return optimizer


CASES = [
    {"method": "so+zeta"},
    {"method": "lp-ft"},
    {"method": "so+to", "clip_norm": 1.0, "schedule": "cosine", "warmup": 0.2},
    {"method": "s"},
    {"method": "t", "optimizer": "adamw"},
]


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("whole", [False, True])
def test_recorded_steps_are_the_same_steps(train, same_weights, request, options, whole):
    options = {**options, **({} if whole else {"batches": standin.RandomRows(24, 9)})}
    plain = train(**options)
    graphs = request.getfixturevalue("recorded")
    result = train(**options)
    assert same_weights(plain.model, result.model)
    assert [row["loss"] for row in result.history] == [row["loss"] for row in plain.history]
    assert [row["lr"] for row in result.history] == [row["lr"] for row in plain.history]
    assert graphs.runs == (10 if options["method"] == "lp-ft" else 11)  # the first step of a kind runs as it is


@pytest.mark.parametrize(
    "options",
    [
        {"method": "s+t", "ramp_up": 0.5, "neighbours": 2},
        {"method": "so+zeta"},
        {"method": "s+t", "pool_loss": "im"},
    ],
)
def test_a_pool_is_recorded_too(train, same_weights, pool, request, options):
    options = {**options, "pool": pool, "pool_rows": 12, "steps": 34, "batches": standin.RandomRows(24, 9)}
    plain = train(**options)
    graphs = request.getfixturevalue("recorded")
    result = train(**options)
    assert same_weights(plain.model, result.model)
    assert result.history[-1].keys() == plain.history[-1].keys()
    assert result.pool == plain.pool
    assert graphs.runs == 32  # those that estimate class shares are of their own kind


def test_a_collapse_starts_a_new_recording(train, same_weights, pool, request, monkeypatch):
    monkeypatch.setattr(PoolHealth, "check", lambda *_: Collapse.SWALLOWED)
    options = {"method": "s+t", "pool": pool, "pool_rows": 12, "steps": 25, "batches": standin.RandomRows(24, 9)}
    plain = train(**options)
    request.getfixturevalue("recorded")
    result = train(**options)
    assert "swallowed" in result.pool["collapse"]
    assert same_weights(plain.model, result.model)


def test_a_resumed_run_records_again(train, same_weights, request, tmp_path):
    options = {"method": "so+zeta", "steps": 14, "checkpoint_every": 4, "batches": standin.RandomRows(24, 9)}
    plain = train(run_dir=tmp_path / "plain", **options)
    with pytest.raises(Stop):  # begun without graphs, continued with them
        train(run_dir=tmp_path / "cut", on_step=stop_at(6), **options)
    request.getfixturevalue("recorded")
    rest = train(run_dir=tmp_path / "cut", resume=True, **options)
    assert rest.resumed_from == 4
    assert same_weights(plain.model, rest.model)


def test_ever_new_shapes_run_as_they_are(train, same_weights, request):
    class Growing:
        def batch(self, step):
            return torch.arange(4 + step), torch.arange(9)

    options = {"steps": MOST_KINDS + 3, "batches": Growing()}
    plain = train(**options)
    graphs = request.getfixturevalue("recorded")
    with pytest.warns(UserWarning, match="ever new shapes, so the steps are launched kernel by kernel"):
        result = train(**options)
    assert same_weights(plain.model, result.model)
    assert not graphs.runs


def test_a_step_that_cannot_be_recorded_runs_as_it_is(train, same_weights, request, monkeypatch):
    def unable(*_):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    plain = train()
    monkeypatch.setattr(request.getfixturevalue("recorded"), "record", unable)
    with pytest.warns(UserWarning, match=r"cannot be recorded \(operation not permitted when stream is capturing\)"):
        result = train()
    assert same_weights(plain.model, result.model)
