import math
import random

import numpy as np
import pytest
import standin
import torch

from sohot.methods import METHOD_NAMES, OTHER_NAMES, FitSettings
from sohot.training import Diverged, Objective, TensorInputs, evaluate, fit, predict_logits


@pytest.mark.parametrize("name", [*METHOD_NAMES, "so+fo", *OTHER_NAMES])
def test_every_method_learns(train, name):
    result = train(method=name, steps=30, lr=0.05)
    first, last = result.history[0], result.history[-1]
    assert last["loss"] < first["loss"]
    assert {"step", "loss", "cross_entropy", "head_penalty", "lr", "seconds"} <= set(last)
    assert ("accuracy_source" in last) == (name != "t")
    assert ("accuracy_target" in last) == (name != "s")
    _, _, target, labels = standin.problem()
    if name != "s":
        assert evaluate(predict_logits(result.model, TensorInputs(target), batch_size=4), labels, 3).micro > 0.8
    assert not result.model.training


def test_same_seed_same_result(train, same_weights):
    one, other = train(method="so+zeta"), train(method="so+zeta")
    assert same_weights(one.model, other.model)
    assert same_weights(one.objective, other.objective)
    assert not same_weights(one.model, train(method="so+zeta", seed=1).model)  # dropout


def test_the_callers_randomness_is_left_alone(train):
    torch.manual_seed(3), random.seed(3), np.random.seed(3)
    expected = torch.rand(1), random.random(), np.random.rand()
    torch.manual_seed(3), random.seed(3), np.random.seed(3)
    train(steps=2)
    assert (torch.rand(1), random.random(), np.random.rand()) == expected


def test_the_source_alone_trains_the_target_stream(train, same_weights):
    before = standin.SmallStreams(heads="coupled")
    after = train(standin.SmallStreams(heads="coupled"), method="s", coupling=0.0, head_decay=0.0).model
    assert same_weights(before.source_head, after.source_head)
    assert not same_weights(before.head, after.head)


@pytest.mark.parametrize("name", ["s", "t"])
def test_a_domain_that_is_not_used_may_be_none(name):
    source, source_labels, target, target_labels = standin.problem()
    settings = FitSettings(method=name, steps=2, device="cpu")
    if name == "s":
        result = fit(standin.SmallStreams(), TensorInputs(source), source_labels, None, None, settings)
    else:
        result = fit(standin.SmallStreams(), None, None, TensorInputs(target), target_labels.tolist(), settings)
    assert len(result.history) == 2


def test_batches_may_leave_out_a_domain(train):
    class OneDomainAtATime:
        def batch(self, step):
            rows = torch.arange(9)
            return (rows, rows[:0]) if step % 2 else (rows[:0].tolist(), rows)

    history = train(steps=4, batches=OneDomainAtATime()).history
    assert ["accuracy_source" in record for record in history] == [False, True, False, True]
    assert ["accuracy_target" in record for record in history] == [True, False, True, False]


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_precisions_and_clipping(train, precision):
    data = [x.double() if precision == "64-true" and x.is_floating_point() else x for x in standin.problem()]
    result = train(method="so+to+fo+zeta", precision=precision, steps=20, lr=0.05, clip_norm=50.0, data=data)
    assert result.history[-1]["loss"] < result.history[0]["loss"]
    assert all(math.isfinite(record["gradient_norm"]) for record in result.history)


def test_zeta_is_learned_and_stays_at_zero_or_above(train):
    objective = train(method="so+zeta", sigma1=5.0, sigma2=5.0, zeta_lr=0.2, steps=30).objective
    assert (objective.alignment.zeta >= 0).all()
    assert not torch.allclose(objective.alignment.zeta, torch.ones(1, 3))


def test_progress_is_reported_step_by_step(train):
    seen = []
    result = train(steps=5, on_step=seen.append)
    assert [record["step"] for record in seen] == [1, 2, 3, 4, 5]
    assert seen == result.history


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 1e30, "schedule": "constant"}, r"lower lr \(now 1e\+30\)"),
        ({"lr": 20.0, "schedule": "constant", "divergence_factor": 2.0}, "it began at"),
        ({"lr": 1e30, "sigma1": 0.3, "sigma2": 0.2}, r"lower lr \(now 1e\+30\), sigma1 or sigma2 \(now 0\.3, 0\.2\),"),
        ({"lr": 1e30, "sigma2": 0.2, "method": "means"}, r"lower lr \(now 1e\+30\) or sigma2 \(now 0\.2\), or set"),
    ],
)
def test_a_diverging_loss_stops_with_advice(train, options, message):
    with pytest.raises(Diverged, match=message):
        train(steps=60, **options)


def test_a_loss_without_a_lower_bound_is_stopped(train, monkeypatch):
    """An unbiased distance may be negative, and training can widen classes to lower it further."""
    real = Objective.forward
    fallen = {"loss": torch.tensor(-1e6)}
    monkeypatch.setattr(Objective, "forward", lambda *given, **named: real(*given, **named) | fallen)
    with pytest.raises(Diverged, match=r"the loss is -1e\+06 at step 1"):
        train(method="so", estimator="unbiased")


def test_nan_in_the_data_is_a_divergence_too(train):
    source, *rest = standin.problem()
    source[0, 0] = math.nan
    with pytest.raises(Diverged, match="the loss is nan at step 1"):
        train(data=(source, *rest))


def test_divergence_keeps_the_last_good_checkpoint(train, tmp_path):
    class GoesBad(standin.SmallStreams):
        calls = 0

        def head_penalty(self, weight_decay, coupling):
            self.calls += 1
            return super().head_penalty(weight_decay, coupling) * (math.inf if self.calls > 7 else 1.0)

    with pytest.raises(Diverged, match=r"step 8 .*the last good checkpoint is .*step-00000006"):
        train(GoesBad(), run_dir=tmp_path, steps=20, checkpoint_every=3)
    assert [path.name for path in sorted((tmp_path / "checkpoints").iterdir())] == ["step-00000003", "step-00000006"]


def test_weights_that_are_not_finite_are_never_saved(train, tmp_path):
    def poison(record):
        if record["step"] == 6:
            with torch.no_grad():
                model.head.bias[0] = math.nan

    model = standin.SmallStreams()
    with pytest.raises(Diverged, match=r"weights are not finite after step 6 .*step-00000003"):
        train(model, run_dir=tmp_path, checkpoint_every=3, on_step=poison)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({0: None}, TypeError, "source must have len"),
        ({1: torch.zeros(24)}, TypeError, "source_labels must be a list of integers"),
        ({1: torch.zeros(5, dtype=torch.int64)}, ValueError, "one label for each of 24 rows, got 5"),
        ({3: torch.full((9,), 7)}, ValueError, "target_labels must lie in 0 … 2"),
        ({2: TensorInputs(torch.zeros(0, 4)), 3: torch.zeros(0, dtype=torch.int64)}, ValueError, "target is empty"),
    ],
)
def test_bad_data_is_named(change, error, message):
    source, source_labels, target, target_labels = standin.problem()
    arguments = [TensorInputs(source), source_labels, TensorInputs(target), target_labels]
    for place, value in change.items():
        arguments[place] = value
    with pytest.raises(error, match=message):
        fit(standin.SmallStreams(), *arguments, FitSettings(steps=1, device="cpu"))


def test_a_model_of_another_kind_is_refused(train):
    with pytest.raises(TypeError, match="Linear has no num_classes and no parameter_groups"):
        train(torch.nn.Linear(2, 2))


def test_the_source_alone_needs_streams_that_take_the_same_images(train):
    model = standin.SmallStreams()
    model.inputs = {"source": "grey", "target": "colour"}
    with pytest.raises(ValueError, match="streams take other images"):
        train(model, method="s")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_device_that_is_not_there_is_named(train):
    with pytest.raises(ValueError, match="device='cuda' with precision='32-true' cannot be used here"):
        train(device="cuda")


def test_resume_needs_a_folder(train):
    with pytest.raises(ValueError, match="needs the run_dir"):
        train(resume=True)
