"""Methods to compare with, on features: the losses of `sohot.losses` in a stack, L2-SP and LP-FT."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_problems import blobs, problem
from oracle import batches
from torch.testing import assert_close

from sohot.functional.schedule import learning_rate_factor
from sohot.heads import FeatureProblem, StackedFit, fit_stack
from sohot.heads.domain_loss import make_loss
from sohot.heads.layout import lay_out
from sohot.heads.network import of_network
from sohot.heads.optimizer import EPSILON, FlatParameters, StackedOptimizer
from sohot.methods import OTHER_NAMES, FitSettings, HeadSettings, method
from sohot.methods.settings import NETWORK_PULL
from sohot.training.alignments import make_alignment

LOSSES = ("variance", "ccsa", "dsne", "dage", "supcon")
SCALED = ("variance", "ccsa", "dsne")
SHORT = HeadSettings(steps=12, lr=0.01)
UNALIGNED = {"method": "ccsa", "loss_weight": 0.0}  # trains the network, by the cross-entropy alone
EXACT = {"rtol": 1e-9, "atol": 1e-9}
each_loss = pytest.mark.parametrize("name", LOSSES)


def fit_one(data: FeatureProblem, of_fit: HeadSettings) -> StackedFit:
    return fit_stack([data], [of_fit])[0]


def moved(fit: StackedFit) -> float:
    """How far the network has gone from where it started; a linear one starts at 0."""
    return max(float(x.abs().max()) for name, x in fit.parameters.items() if of_network(name))


def assert_same(found: StackedFit, expected: StackedFit, tolerance: float = 1e-9) -> None:
    for name, x in expected.parameters.items():
        assert_close(found.parameters[name], x, rtol=tolerance, atol=tolerance)


@each_loss
@settings(deadline=None)
@given(data=st.lists(batches(), min_size=1, max_size=3), scale=st.sampled_from([1.0, 1.7]))
def test_value_and_gradient_are_those_of_the_loss_of_each_fit(name, data, scale):
    size = min(source.shape[1] for source, *_ in data)
    cut = [(source[:, :size], ys, target[:, :size], yt) for source, ys, target, yt in data]
    layout = lay_out([(ys, yt) for _, ys, _, yt in cut], 4)
    rows = layout.fill([one[0] for one in cut], [one[2] for one in cut]).requires_grad_()
    numbers = [
        {"method": name, "loss_weight": weight, "margin": margin, "temperature": temperature}
        for weight, margin, temperature in [(None, 1.0, 0.1), (0.3, 4.0, 0.5), (2.0, 0.0, 2.0)]
    ][: len(cut)]
    loss = make_loss([HeadSettings(**own) for own in numbers], layout, rows)
    found = loss(rows, torch.full((len(cut),), scale, dtype=torch.float64))
    [gradient] = torch.autograd.grad(found.sum(), [rows])
    for number, (source, ys, target, yt) in enumerate(cut):
        single = make_alignment(method(name), 4, FitSettings(**numbers[number])).double()
        single.scale.fill_(scale)
        leaves = source.clone().requires_grad_(), target.clone().requires_grad_()
        expected = single(leaves[0], ys, leaves[1], yt)
        assert_close(found[number], expected, **EXACT)
        parts = torch.autograd.grad(expected, leaves)
        for own, slots in zip(parts, (layout.source_slots, layout.target_slots), strict=True):
            assert_close(gradient[number, slots[number]], own, **EXACT)
    taken = layout.taken().bool()
    assert not gradient[~taken].any()


@settings(deadline=None)
@given(data=st.lists(batches(), min_size=1, max_size=3))
def test_the_scale_is_that_of_the_losses(data):
    size = min(source.shape[1] for source, *_ in data)
    cut = [(source[:, :size], ys, target[:, :size], yt) for source, ys, target, yt in data]
    layout = lay_out([(ys, yt) for _, ys, _, yt in cut], 4)
    rows = layout.fill([one[0] for one in cut], [one[2] for one in cut])
    spread = make_loss([HeadSettings(method="ccsa")] * len(cut), layout, rows).spread(rows)
    for found, one in zip(spread, cut, strict=True):
        single = make_alignment(method("ccsa"), 4, FitSettings()).double()
        single(*one)
        assert_close(found, single.scale, **EXACT)


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


@each_loss
def test_a_loss_moves_the_network_and_falls(name):
    data, _, _ = blobs(0)
    found = fit_one(data, replace(SHORT, method=name, loss_weight=3.0, steps=60))
    plain = fit_one(data, replace(SHORT, method="s+t", steps=60))
    assert not torch.allclose(found.parameters["target.map"], plain.parameters["target.map"], atol=1e-4)
    assert found.history["alignment"][-1] < found.history["alignment"][0]


def test_variance_does_not_see_how_the_domains_lie_to_each_other():
    data = problem(0)
    rows, labels = data.source[:9], data.source_labels[:9]
    twins = [FeatureProblem(rows, labels, rows + shift, labels, 3) for shift in (0.0, 5.0)]
    of_fit = replace(SHORT, method="variance", feature_scale="none", components=None)
    layouts = [lay_out([(labels, labels)], 3) for _ in twins]
    values = [
        make_loss([of_fit], layout, twin.source)(layout.fill([twin.source], [twin.target]), torch.ones(1))
        for layout, twin in zip(layouts, twins, strict=True)
    ]
    assert_close(*values)


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("scale", ["initial", "unit"])
def test_the_size_of_features_does_not_matter_after_scaling(name, scale):
    found = fit_one(problem(0), replace(SHORT, method=name, feature_scale=scale))
    assert float(found.scale) != 1
    bare = fit_one(problem(0), replace(SHORT, method=name, feature_scale="none"))
    assert float(bare.scale) == 1
    assert not torch.allclose(found.parameters["target.map"], bare.parameters["target.map"])


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_classes_of_one_row_and_classes_of_one_domain_give_numbers(name):
    sizes = [((1, 1, 1), (1, 1, 1)), ((1, 9, 0), (2, 0, 1)), ((4, 0, 0), (0, 1, 1))]
    problems = [problem(seed, *one) for seed, one in enumerate(sizes)]
    for fit in fit_stack(problems, [replace(SHORT, method=name)] * len(problems)):
        assert not fit.diverged


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_coinciding_rows_give_numbers(name):
    rows, labels = torch.eye(4, 5, dtype=torch.float64), torch.arange(4)
    assert not fit_one(FeatureProblem(rows, labels, rows.clone(), labels, 4), replace(SHORT, method=name)).diverged


@pytest.mark.parametrize("name", LOSSES)
def test_a_fit_that_diverges_leaves_the_others_alone(name):
    problems = [problem(0), problem(1)]
    wild = replace(SHORT, method=name, lr=1e30, optimizer="sgd", feature_scale="none", loss_weight=1.0)
    calm = replace(wild, lr=1e-3)
    found = fit_stack(problems, [wild, calm])
    assert [fit.diverged for fit in found] == [True, False]
    assert_same(found[1], fit_one(problems[1], calm))


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


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_lp_ft_trains_the_classifier_and_then_all_as_torch_would(optimizer):
    of_fit = HeadSettings(method="lp-ft", steps=9, optimizer=optimizer, lr=0.01)
    names = ("target.map", "target.classifier")
    start = {name: torch.randn(3, 2, dtype=torch.float64) for name in names}
    parameters = FlatParameters([start], torch.zeros(1, dtype=torch.float64))
    stacked = StackedOptimizer(parameters, [of_fit])
    single = {name: torch.nn.Parameter(x.clone()) for name, x in start.items()}
    rates = dict(zip(names, (0.01, 0.1), strict=True))
    options = {"weight_decay": 0.0, "eps": EPSILON} if optimizer == "adamw" else {"momentum": 0.9}
    build = torch.optim.AdamW if optimizer == "adamw" else torch.optim.SGD
    torchs = build([{"params": [x], "lr": rates[name]} for name, x in single.items()], **options)
    assert of_fit.steps_of_head() == 4
    for number in range(9):
        stacked.step(parameters.gradient(sum(((x - 1) ** 4).sum() for x in parameters.named.values())), number)
        torchs.zero_grad()
        sum(((x - 1) ** 4).sum() for x in single.values()).backward()
        place, length = (number, 4) if number < 4 else (number - 4, 5)
        if number < 4:
            single["target.map"].grad = None
        for group, rate in zip(torchs.param_groups, rates.values(), strict=True):
            group["lr"] = rate * learning_rate_factor(place, length, "one-cycle", 0.3)
        torchs.step()
        for name, x in single.items():
            assert_close(parameters.named[name][0], x, rtol=1e-12, atol=1e-12)


def test_numbers_of_a_fit_do_not_keep_it_out_of_a_stack():
    told = []
    of_fits = [replace(SHORT, method="ccsa", loss_weight=w, margin=m) for w, m in [(0.1, 1.0), (1.0, 3.0)]]
    of_fits += [replace(SHORT, method="lp-ft", head_first=0.0), replace(SHORT, method="l2-sp", l2_sp=0.5)]
    fit_stack([problem(0)] * 4, of_fits, on_progress=lambda done, _: told.append(done))
    assert told == [2, 4]


@each_loss
def test_float32_follows_float64(name):
    # At the usual rate: Adam's first steps from a minimum are as long as the rate, and rounding directs some of them.
    of_fit, data = replace(SHORT, method=name, lr=1e-3), problem(0)
    short = replace(data, source=data.source.float(), target=data.target.float())
    wide, narrow = fit_one(data, of_fit), fit_one(short, of_fit)
    assert narrow.parameters["target.map"].dtype == torch.float32
    assert_close(narrow.history["loss"].double(), wide.history["loss"], rtol=1e-3, atol=1e-3)


def test_bad_numbers_are_named():
    for name in ("loss_weight", "margin", "l2_sp"):
        with pytest.raises(ValueError, match=f"{name} must be a finite number of at least 0"):
            HeadSettings(**{name: -1.0})
        with pytest.raises(TypeError, match=f"{name} must be a number"):
            HeadSettings(**{name: "much"})
    with pytest.raises(ValueError, match="temperature must be above 0"):
        HeadSettings(temperature=0.0)
    with pytest.raises(ValueError, match="head_first must be between 0 and 1"):
        HeadSettings(head_first=1.5)
    with pytest.raises(ValueError, match="needs a method that aligns scatters"):
        HeadSettings(method="ccsa", orders=(2, 3))
    with pytest.raises(TypeError, match="margin must be a number"):
        HeadSettings(margin=None)
