"""fit_stack: a stack gives what each fit gives alone."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_problems import blobs, problem
from torch.testing import assert_close

from sohot.heads import FeatureProblem, StackedFit, fit_stack
from sohot.methods import METHOD_NAMES, OTHER_NAMES, HeadSettings

SHORT = HeadSettings(method="so", steps=12, lr=0.01)
SIZES = {
    "equal": ((5, 5, 5), (3, 3, 3)),
    "unequal": ((5, 1, 17), (3, 1, 2)),
    "absent from the target": ((5, 4, 6), (3, 0, 3)),
    "absent from the source": ((5, 0, 6), (3, 2, 3)),
    "nothing shared": ((5, 0, 0), (0, 2, 3)),
}


def assert_same(found: StackedFit, expected: StackedFit, tolerance: float) -> None:
    for name, x in expected.state()[0].items():
        assert_close(found.state()[0][name], x, rtol=tolerance, atol=tolerance, msg=lambda text, n=name: f"{n}: {text}")


def assert_stack_equals_singles(problems, of_fits, tolerance=1e-9, **options) -> None:
    stacked = fit_stack(problems, of_fits, **options)
    for one, of_fit, found in zip(problems, of_fits, stacked, strict=True):
        assert found.settings == of_fit
        assert_same(found, fit_stack([one], [of_fit])[0], tolerance)


@pytest.mark.parametrize("name", [*METHOD_NAMES, *OTHER_NAMES])
@pytest.mark.parametrize("streams", ["shared", "separate"])
def test_a_stack_equals_its_fits_one_by_one(name, streams):
    problems = [problem(seed, *sizes) for seed, sizes in enumerate(SIZES.values())]
    of_fit = replace(SHORT, method=name, streams=streams, heads="coupled" if streams == "separate" else "shared")
    assert_stack_equals_singles(problems, [of_fit] * len(problems))


@pytest.mark.parametrize(
    "options",
    [
        {"hidden": 7},
        {"hidden": 4, "streams": "separate"},
        {"components": 3},
        {"components": None, "norm_bound": 2.0},
        {"estimator": "unbiased", "norm_bound": 4.0, "orders": (3, 2)},
        {"feature_scale": "none"},
        {"feature_scale": "unit"},
        {"target_weight": 0.5},
        {"optimizer": "sgd", "schedule": "cosine"},
        {"weight_decay": 0.1, "schedule": "constant"},
    ],
    ids=str,
)
def test_so_it_does_with_every_option(options):
    problems = [problem(seed, *sizes) for seed, sizes in enumerate(SIZES.values())]
    assert_stack_equals_singles(problems, [replace(SHORT, method="so+to+zeta", **options)] * len(problems))


NUMBERS = st.sampled_from([0.0, 0.03, 0.4])
any_settings = st.builds(
    HeadSettings,
    method=st.sampled_from(["s", "t", "s+t", "m", "so", "so+to", "so+zeta", *OTHER_NAMES]),
    loss_weight=st.sampled_from([None, 0.0, 0.7]),
    margin=st.sampled_from([0.5, 2.0]),
    l2_sp=st.sampled_from([None, 0.0, 0.3]),
    head_first=st.sampled_from([None, 0.0, 0.5, 1.0]),
    sigma1=NUMBERS,
    sigma2=NUMBERS,
    alpha1=NUMBERS,
    head_decay=NUMBERS,
    lr=st.sampled_from([1e-3, 1e-2]),
    hidden=st.sampled_from([None, 3]),
    streams=st.sampled_from(["shared", "separate"]),
    heads=st.sampled_from(["shared", "coupled"]),
    norm_bound=st.sampled_from([None, 1.0, 3.0]),
    steps=st.sampled_from([3, 4]),
    seed=st.integers(0, 3),
)


@settings(max_examples=15)
@given(of_fits=st.lists(any_settings, min_size=1, max_size=6), memory=st.sampled_from([1, 40_000, 2**30]))
def test_settings_of_any_kind_may_be_mixed_and_cut_into_chunks(of_fits, memory):
    shared = [problem(seed, *sizes) for seed, sizes in enumerate(list(SIZES.values())[:2])]
    problems = [shared[number % 2] for number in range(len(of_fits))]
    assert_stack_equals_singles(problems, of_fits, memory=memory)


def test_in_float32_too():
    problems = [problem(seed, *sizes, dtype=torch.float32) for seed, sizes in enumerate(SIZES.values())]
    of_fits = [replace(SHORT, method="so+to+zeta")] * len(problems)
    assert_stack_equals_singles(problems, of_fits, tolerance=1e-3)
    assert fit_stack(problems[:1], of_fits[:1])[0].parameters["target.map"].dtype == torch.float32


def test_a_fit_that_diverges_leaves_the_others_alone():
    problems = [problem(0), problem(1)]
    wild = replace(SHORT, lr=1e30, optimizer="sgd", feature_scale="none")
    calm = replace(SHORT, optimizer="sgd", feature_scale="none")
    found = fit_stack(problems, [wild, calm])
    assert [fit.diverged for fit in found] == [True, False]
    assert_same(found[1], fit_stack(problems[1:], [calm])[0], 1e-9)


def test_feature_sizes_may_differ_with_separate_streams():
    narrow, wide = problem(0, size=4), problem(1, size=6)
    mixed = FeatureProblem(narrow.source, narrow.source_labels, wide.target, wide.target_labels, 3)
    of_fit = replace(SHORT, streams="separate", steps=50)
    assert_stack_equals_singles([mixed, mixed], [of_fit, replace(of_fit, sigma1=1.0)])
    [found] = fit_stack([mixed], [of_fit])
    assert found.predict_logits(wide.target).shape == (9, 3)
    assert found.transform(narrow.source, "source").shape == (15, 4)


def test_rows_of_a_shared_tensor_are_the_same_problem():
    plain = problem(0)
    features, labels = torch.cat([plain.source, plain.target]), torch.cat([plain.source_labels, plain.target_labels])
    rows = torch.arange(len(features))
    shared = FeatureProblem.from_rows(features, labels, rows[:15], rows[15:], 3)
    assert shared.sizes == plain.sizes
    found, expected = fit_stack([shared, plain], [SHORT, SHORT])
    assert_same(found, expected, 1e-12)


@pytest.mark.parametrize(("name", "unused"), [("t", "source"), ("s", "target")])
def test_a_method_does_not_look_at_the_domain_it_leaves_out(name, unused):
    plain = problem(0)
    other = replace(plain, **{unused: 1000 * torch.randn_like(getattr(plain, unused))})
    found, expected = fit_stack([plain, other], [replace(SHORT, method=name)] * 2)
    assert_same(found, expected, 1e-12)


def test_the_alignment_helps_where_the_target_has_moved():
    names = ("s", "t", "s+t", "so")
    data = [blobs(seed) for seed in range(4)]
    of_fits = [HeadSettings(method=name, sigma1=1.0, sigma2=1.0, lr=3e-3, steps=100) for name in names]
    fits = fit_stack([one for one, _, _ in data for _ in names], of_fits * len(data))
    hits = [
        float((fits[number * len(names) + k].predict_logits(test).argmax(1) == labels).double().mean())
        for k in range(len(names))
        for number, (_, test, labels) in enumerate(data)
    ]
    source, target, both, aligned = torch.tensor(hits).view(len(names), -1).mean(1).tolist()
    assert source < target < both < aligned - 0.02  # on both, a logistic regression is as good as it can be


def test_progress_is_told():
    told = []
    fit_stack([problem(0)] * 3, [SHORT] * 3, memory=1, on_progress=lambda done, of_all: told.append((done, of_all)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_an_empty_stack_is_empty():
    assert fit_stack([], []) == []


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        (([problem()], []), ValueError, r"settings must have one entry per problem \(1\), got 0"),
        (([1], [SHORT]), TypeError, "problems must hold FeatureProblem objects, got int"),
        (([problem()], [{}]), TypeError, "settings must hold HeadSettings objects, got dict"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        fit_stack(*arguments)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"device": "mps"}, "device must be 'cpu' or 'cuda', got 'mps'"),
        ({"memory": 0}, "memory must be a number of bytes, at least 1, got 0"),
        ({"memory": "1 GB"}, "memory must be a number of bytes"),
    ],
)
def test_bad_options_get_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit_stack([problem()], [SHORT], **options)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("name", ["so+to+zeta", *OTHER_NAMES])
def test_a_gpu_gives_what_a_cpu_gives(name):
    problems = [problem(seed, *sizes) for seed, sizes in enumerate(SIZES.values())]
    of_fits = [replace(SHORT, method=name, components=3)] * len(problems)
    for found, expected in zip(fit_stack(problems, of_fits, device="cuda"), fit_stack(problems, of_fits), strict=True):
        assert_same(found, expected, 1e-6)


def test_feature_sizes_that_differ_need_separate_streams():
    mixed = FeatureProblem(torch.randn(3, 4), torch.arange(3), torch.randn(3, 5), torch.arange(3), 3)
    with pytest.raises(ValueError, match="4 and 5 features: use streams='separate'"):
        fit_stack([mixed], [SHORT])
    with pytest.raises(ValueError, match="trains the target's network on source rows, but their feature sizes differ"):
        fit_stack([mixed], [replace(SHORT, method="s", streams="separate")])
