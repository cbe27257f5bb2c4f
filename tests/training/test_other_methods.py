"""Methods to compare with, trained by the same loop."""

import pytest
import standin
import torch

from sohot import ScatterAlignment
from sohot.methods import OTHER_NAMES, FitSettings, method
from sohot.training.alignments import make_alignment


@pytest.mark.parametrize("name", [name for name in OTHER_NAMES if name not in ("l2-sp", "lp-ft")])
def test_every_loss_moves_the_result(train, same_weights, name):
    assert not same_weights(train(method=name).model, train(method="s+t").model)


def test_the_means_alone_are_the_alignment_without_scatters():
    alignment = make_alignment(method("means"), 3, FitSettings(method="means", sigma1=7.0, sigma2=0.2))
    assert isinstance(alignment, ScatterAlignment)
    assert (alignment.sigma1, alignment.sigma2) == ((0.0,), 0.2)


def test_settings_reach_the_loss():
    ccsa = make_alignment(method("ccsa"), 3, FitSettings(loss_weight=0.5, margin=2.0, feature_scale="none"))
    assert (ccsa.weight, ccsa.margin, ccsa.feature_scale) == (0.5, 2.0, "none")
    assert make_alignment(method("supcon"), 3, FitSettings(temperature=0.3)).temperature == 0.3
    assert make_alignment(method("dage"), 3, FitSettings()).weight == 1.0  # its paper's


def test_the_head_learns_alone_first(train):
    start = standin.SmallStreams()
    seen = []

    def watch(_):
        seen.append([p.detach().clone() for p in model.tail.parameters()])

    model = standin.SmallStreams()
    train(model=model, method="lp-ft", steps=10, on_step=watch)
    assert all(torch.equal(a, b) for step in seen[:5] for a, b in zip(step, start.tail.parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(seen[-1][:1], start.tail.parameters(), strict=False))


def test_the_first_part_is_a_linear_probe_by_itself(train):
    probed = standin.SmallStreams()
    train(model=probed, method="lp-ft", steps=8, head_first=1.0, schedule="constant")
    both = standin.SmallStreams()
    steps = []
    train(
        model=both,
        method="lp-ft",
        steps=16,
        schedule="constant",
        on_step=lambda _: steps.append({k: v.clone() for k, v in both.state_dict().items()}),
    )
    assert all(torch.equal(steps[7][name], value) for name, value in probed.state_dict().items())


def test_weights_stay_nearer_to_their_start_the_stronger_the_pull(train):
    def moved(**options):
        model, start = standin.SmallStreams(), standin.SmallStreams()
        train(model=model, steps=30, method="l2-sp", **options)
        pairs = zip(model.tail.parameters(), start.tail.parameters(), strict=True)
        return sum(float((a - b).detach().square().sum()) for a, b in pairs)

    assert moved(l2_sp=10.0) < moved(l2_sp=1.0) < moved(l2_sp=0.0)
