"""Methods to compare with, on features: the losses of `sohot.losses` in a stack, L2-SP and LP-FT."""

from dataclasses import replace

import pytest
import torch
from made_up_problems import blobs, problem
from torch.testing import assert_close

from sohot.heads import FeatureProblem, StackedFit, fit_stack
from sohot.heads.network import of_network
from sohot.methods import OTHER_NAMES, FitSettings, HeadSettings
from sohot.methods.settings import NETWORK_PULL

LOSSES = ("variance", "ccsa", "dsne", "dage", "supcon")
SHORT = HeadSettings(steps=12, lr=0.01)
UNALIGNED = {"method": "ccsa", "loss_weight": 0.0}  # trains the network, by the cross-entropy alone
each_loss = pytest.mark.parametrize("name", LOSSES)


def fit_one(data: FeatureProblem, of_fit: HeadSettings) -> StackedFit:
    return fit_stack([data], [of_fit])[0]


def moved(fit: StackedFit) -> float:
    """How far the network has gone from where it started; a linear one starts at 0."""
    return max(float(x.abs().max()) for name, x in fit.parameters.items() if of_network(name))


def assert_same(found: StackedFit, expected: StackedFit, tolerance: float = 1e-9) -> None:
    for name, x in expected.parameters.items():
        assert_close(found.parameters[name], x, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("estimator", ["plugin", "unbiased"])
@pytest.mark.parametrize("streams", ["shared", "separate"])
def test_means_are_second_order_without_its_scatters(estimator, streams):
    for sizes in (((5, 4, 6), (3, 3, 3)), ((5, 1, 17), (3, 1, 0))):
        common = replace(SHORT, sigma2=0.3, estimator=estimator, streams=streams)
        data = problem(0, *sizes)
        found = fit_one(data, replace(common, method="means", sigma1=7.0))
        assert_same(found, fit_one(data, replace(common, method="so", sigma1=0.0)))


@each_loss
def test_a_loss_that_weighs_nothing_leaves_the_network_to_the_usual_pull(name):
    assert_same(
        fit_one(problem(0), replace(SHORT, method=name, loss_weight=0.0)),
        fit_one(problem(0), replace(SHORT, method="l2-sp", l2_sp=NETWORK_PULL)),
    )


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_small_classes_classes_of_one_domain_and_coinciding_rows_give_numbers(name):
    sizes = [((1, 1, 1), (1, 1, 1)), ((1, 9, 0), (2, 0, 1)), ((4, 0, 0), (0, 1, 1))]
    problems = [problem(seed, *one) for seed, one in enumerate(sizes)]
    rows, labels = torch.eye(4, 5, dtype=torch.float64), torch.arange(4)
    problems.append(FeatureProblem(rows, labels, rows.clone(), labels, 4))
    for fit in fit_stack(problems, [replace(SHORT, method=name)] * len(problems)):
        assert not fit.diverged


@pytest.mark.parametrize("hidden", [None, 4])
def test_the_stronger_the_pull_the_nearer_the_network_stays_to_its_start(hidden):
    data, _, _ = blobs(0)
    fits = {
        pull: fit_one(data, replace(SHORT, method="l2-sp", l2_sp=pull, hidden=hidden, steps=60))
        for pull in (0.0, 0.1, 1e6)
    }
    start = fit_one(data, replace(SHORT, method="lp-ft", head_first=1.0, hidden=hidden, steps=1)).parameters

    def distance(fit: StackedFit) -> float:
        return sum(float((x - start[name]).square().sum()) for name, x in fit.parameters.items() if of_network(name))

    assert distance(fits[1e6]) < 1e-2 * distance(fits[0.1]) < 1e-2 * distance(fits[0.0])
    plain = fit_one(data, replace(SHORT, **UNALIGNED, l2_sp=0.0, hidden=hidden, steps=60))
    assert_same(fits[0.0], plain, 1e-6)


def test_the_pull_stands_in_place_of_the_decay_of_the_map():
    found = fit_one(problem(0), replace(SHORT, method="l2-sp", weight_decay=5.0))
    assert_same(found, fit_one(problem(0), replace(SHORT, **UNALIGNED, l2_sp=0.01)))
    assert HeadSettings(method="l2-sp").start_pull() == FitSettings(method="l2-sp").start_pull() == 0.01
    assert HeadSettings(method="so").start_pull() == NETWORK_PULL
    assert (
        HeadSettings(method="so", weight_decay=0.1).start_pull() == HeadSettings(method="so", l2_sp=0).start_pull() == 0
    )


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("name", ["lp-ft", "so+zeta"])
def test_a_network_that_only_waits_never_moves(optimizer, name):
    found = fit_one(problem(0), replace(SHORT, method=name, head_first=1.0, optimizer=optimizer, weight_decay=0.5))
    assert moved(found) == 0
    of_classifier = found.history["loss"] - found.history["alignment"]
    assert (of_classifier >= of_classifier[0] - 1e-9).all()  # it starts at its minimum


def test_numbers_of_a_fit_do_not_keep_it_out_of_a_stack():
    told = []
    of_fits = [replace(SHORT, method="ccsa", loss_weight=w, margin=m) for w, m in [(0.1, 1.0), (1.0, 3.0)]]
    of_fits += [replace(SHORT, method="lp-ft", head_first=0.0), replace(SHORT, method="l2-sp", l2_sp=0.5)]
    fit_stack([problem(0)] * 4, of_fits, on_progress=lambda done, _: told.append(done))
    assert told == [2, 4]
