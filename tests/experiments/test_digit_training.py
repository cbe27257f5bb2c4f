import torch

from sohot.demo import METHODS
from sohot.experiments.digit_splits import draw_split
from sohot.experiments.digit_training import fit_digits, new_model, settings_for
from sohot.methods import OTHER_NAMES


def test_all_methods_have_one_budget() -> None:
    same = ("steps", "optimizer", "schedule", "warmup", "head_factor", "momentum", "clip_norm", "seed")
    assert len({tuple(getattr(settings_for(name), one) for one in same) for name in (*METHODS, *OTHER_NAMES)}) == 1


def test_a_network_depends_on_its_seed_alone_and_leaves_the_generator() -> None:
    before = torch.get_rng_state()
    first, again, other = new_model(3), new_model(3), new_model(4)
    assert torch.get_rng_state().equal(before)
    weights = [torch.cat([p.flatten() for p in model.parameters()]) for model in (first, again, other)]
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])


def test_a_network_learns() -> None:
    trained = fit_digits(draw_split(0, half="development"), settings_for("so", steps=25))
    assert trained.accuracy > 30  # chance is 10
    assert trained.result.history[-1]["cross_entropy"] < trained.result.history[0]["cross_entropy"] - 0.2
