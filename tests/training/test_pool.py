"""Training with unlabelled rows: what the teacher and its answers must and must not do."""

import pytest
import standin
import torch
from standin import plain_streams

from sohot.training import TensorInputs
from sohot.training.collapse import Collapse, PoolHealth
from sohot.training.pool_rows import PoolBatches, PoolInputs
from sohot.training.teacher import Teacher

from .test_resume import Stop, stop_at

POOL = {"pool_rows": 12, "steps": 14}


def close(one, other, tolerance=1e-6):
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.allclose(a, b, atol=tolerance) for a, b in pairs)


def test_a_pool_that_weighs_nothing_changes_nothing(train, pool):
    without = train(plain_streams(), method="s+t")
    nothing = {"pool_loss": "im", "pool_weight": 0.0}
    with_pool = train(plain_streams(), method="s+t", pool=pool, teacher=0.0, pool_rows=12, **nothing)
    assert close(without.model, with_pool.model)


@pytest.mark.parametrize("method", ["so+zeta", "m", "ccsa"])
def test_only_labelled_rows_are_aligned(train, pool, method):
    without = train(plain_streams(), method=method)
    with_pool = train(
        plain_streams(), method=method, pool=pool, pool_loss="im", pool_weight=0.0, teacher=0.0, pool_rows=12
    )
    assert close(without.model, with_pool.model)


def test_the_kept_model_is_the_running_average(train, pool):
    nothing = {"pool_loss": "im", "pool_weight": 0.0, "pool_rows": 12}
    kept = train(plain_streams(), method="s+t", pool=pool, teacher=0.9, **nothing).model
    average, states = Teacher(plain_streams(), 0.9), []
    for steps in range(1, 13):  # a constant rate, so that each run is the beginning of the next
        options = {"steps": steps, "schedule": "constant", "warmup": 0.0}
        states.append(train(plain_streams(), method="s+t", **options).model)
    for state in states:
        average.follow(state)
    constant = train(
        plain_streams(), method="s+t", pool=pool, teacher=0.9, schedule="constant", warmup=0.0, **nothing
    ).model
    assert close(average.model, constant)
    assert not close(kept, states[-1])


@pytest.mark.parametrize(
    "options",
    [
        {"method": "so+zeta"},
        {"method": "m", "precision": "bf16-mixed"},
        {"method": "s+t", "pool_loss": "im", "prior": "uniform"},
        {"method": "ccsa", "neighbours": 3},
        {"method": "s"},
        {"method": "t"},
        {"method": "fixmatch"},
    ],
)
def test_a_resumed_run_ends_in_the_same_bits(train, pool, same_weights, tmp_path, options):
    options = {**options, **POOL, "checkpoint_every": 4, "batches": standin.RandomRows(24, 9), "pool": pool}
    whole = train(run_dir=tmp_path / "whole", **options)
    for step in (3, 9):
        with pytest.raises(Stop):
            train(run_dir=tmp_path / "cut", resume=True, on_step=stop_at(step), **options)
    rest = train(run_dir=tmp_path / "cut", resume=True, **options)
    assert rest.resumed_from == 8
    assert same_weights(whole.model, rest.model)
    assert rest.pool == whole.pool
    again = train(standin.SmallStreams(seed=5), run_dir=tmp_path / "cut", resume=True, **options)
    assert same_weights(whole.model, again.model)


def test_a_collapse_is_undone(train, pool, monkeypatch):
    monkeypatch.setattr(PoolHealth, "check", lambda *_: Collapse.SWALLOWED)
    result = train(plain_streams(), method="s+t", pool=pool, pool_rows=12, steps=25, pool_weight=50.0)
    assert "swallowed" in result.pool["collapse"]
    assert "by step 10" in result.pool["collapse"]
    assert "mask_rate" in result.history[9]
    assert "mask_rate" not in result.history[10]
    first = train(plain_streams(), method="s+t", steps=1, lr=1e-9).model  # practically the start
    with torch.no_grad():
        x = pool.weak.tensor
        moved = (result.model(None, x).target_logits - first(None, x).target_logits).abs().mean()
    assert moved < 1.0  # a weight of 50 would have taken it far away


def test_a_collapse_is_seen_though_class_shares_are_evened_out(train, pool, monkeypatch):
    """Pseudo-labels with equal shares name every class, whatever the teacher says."""
    seen, biased = [], plain_streams()
    with torch.no_grad():
        biased.head.bias.copy_(torch.tensor([5.0, 0.0, 0.0]))
    monkeypatch.setattr(PoolHealth, "check", lambda _, labels, _spread: seen.append(labels.clone()))
    result = train(biased, method="s+t", pool=pool, prior="uniform", pool_rows=12, steps=10, lr=1e-6)
    assert result.history[-1]["pool_largest"] < 1
    assert all(labels.eq(0).all() for labels in seen)
    assert len(seen) == 2  # after ten steps, and of what the run keeps


@pytest.mark.parametrize("steps", [12, 20])
def test_a_collapse_at_the_end_leaves_the_start(train, pool, monkeypatch, steps, same_weights):
    monkeypatch.setattr(PoolHealth, "check", lambda *_: found.pop())
    found = [Collapse.SHRUNK, *[None] * (steps // 10)]
    result = train(plain_streams(), method="s+t", pool=pool, pool_rows=12, steps=steps)
    assert result.pool["collapse"] == (
        "the features of the unlabelled images had shrunk to a point by the last step, so the run keeps the model from "
        "which training started"
    )
    assert same_weights(result.model, plain_streams())


def test_neighbours_have_a_say_in_pseudo_labels(train, pool):
    """With all rows as neighbours all have one label; with none, or with copies of a row, each has its own."""

    def seen(pool, count, **changed):
        options = {"pool_rows": 12, "steps": 1, "threshold": 0.0, "prior": "none"}
        return train(plain_streams(), method="s+t", pool=pool, neighbours=count, **options, **changed).history[0]

    assert seen(pool, 39)["pool_largest"] == 1.0
    alone = seen(pool, 0)
    assert alone["pool_largest"] < 1.0
    rows = pool.weak.tensor
    twice = PoolInputs(*(TensorInputs(torch.cat([rows, rows])) for _ in range(2)))
    for name in ("pool_largest", "pool_confidence"):
        assert seen(twice, 1)[name] == pytest.approx(alone[name], abs=1e-6)


def test_pool_batches_show_every_row_equally_often():
    batches = PoolBatches(10, 4, seed=3)
    counts = torch.cat([batches.batch(step) for step in range(5)]).bincount(minlength=10)
    assert counts.tolist() == [2] * 10


def test_views_must_match(train, pool):
    with pytest.raises(ValueError, match="same rows"):
        train(pool=PoolInputs(pool.weak, TensorInputs(pool.strong.tensor[:5])))
