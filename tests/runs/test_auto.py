"""What a run chooses from: explicit options win, and what a method cannot take is not its concern."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sohot.methods import method
from sohot.runs import RunConfig
from sohot.runs.auto import candidates_of, head_of
from sohot.selection.spaces import AUTO_CANDIDATES, HEAD

AUTO = RunConfig(method="auto", shots=3)
LAYERS = {name: options for name, options in AUTO_CANDIDATES.items() if name != HEAD}
OWN = sorted({name for options in LAYERS.values() for name in options} - {"method"})


def candidate_configs(config, given=None, head=False):
    return {one.name: one.settings for one in candidates_of(config, given, head=head)}


@given(st.sets(st.sampled_from(OWN)))
def test_what_is_given_wins_over_the_candidates_own(names):
    for name, config in candidate_configs(AUTO, names).items():
        own = {key: value for key, value in AUTO_CANDIDATES[name].items() if key not in names}
        assert config == replace(AUTO, **own)


def test_every_candidate_is_an_option_of_fit():
    known = {one.name for one in fields(RunConfig)}
    assert set(OWN) <= known
    assert list(candidate_configs(AUTO)) == list(LAYERS)
    assert list(candidate_configs(AUTO, head=True)) == list(AUTO_CANDIDATES)
    assert all(method(options["method"]).uses_target for options in AUTO_CANDIDATES.values())


def test_orders_are_for_those_that_align():
    found = candidate_configs(replace(AUTO, orders=(2, 3), sigma1=(0.1, 0.2)))
    assert (found["s+t"].orders, found["so"].orders, found["so"].sigma1) == (None, (2, 3), (0.1, 0.2))
    assert {name for name, one in found.items() if one.orders is None} == {"s+t", "means"}


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="sigma1 must hold one number for each of the orders"):
        candidate_configs(replace(AUTO, sigma1=(0.1, 0.2)))
    with pytest.raises(ValueError, match="lr must be above 0"):
        candidate_configs(replace(AUTO, lr=0.0))


@pytest.mark.parametrize("asked", [AUTO, replace(AUTO, method="so"), replace(AUTO, method="so", trains="all")])
def test_the_classifier_on_frozen_features_comes_first_and_all_others_train_layers(asked):
    head, *others = candidate_configs(asked, head=True).values()
    assert (head.trains, head.method) == ("head", "s+t")
    assert {one.keep for one in others} == {"layers"}
    assert {one.trains for one in others} == {asked.trains}
    assert [replace(one, keep="better") for one in others] == list(candidate_configs(asked).values())


@pytest.mark.parametrize(
    ("asked", "expected"), [("means", "s+t"), ("auto", "s+t"), ("s", "s"), ("T", "t"), ("so+zeta", "s+t")]
)
def test_a_classifier_on_frozen_features_learns_from_the_domains_of_the_method(asked, expected):
    found = head_of(RunConfig(method=asked, lr=0.5))
    assert (found.method, found.trains, found.lr) == (expected, "head", 0.5)
    assert head_of(found) == found
