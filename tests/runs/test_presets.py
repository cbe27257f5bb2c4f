"""`--method paper`: explicit options win, and what it comes to is an ordinary configuration."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sohot.methods import FitSettings
from sohot.methods.options import flag
from sohot.runs import RunConfig
from sohot.runs.presets import PAPER_VALUES, explain_paper, resolve_paper

NAMES = [one.name for one in PAPER_VALUES if one.name != "method"]


@given(st.sets(st.sampled_from(NAMES)))
def test_what_is_given_wins_and_the_rest_is_the_papers(names):
    default, paper = RunConfig(method="paper"), resolve_paper(RunConfig(method="paper"))
    found = resolve_paper(default, names)
    for one in fields(RunConfig):
        expected = default if one.name in names else paper
        assert getattr(found, one.name) == getattr(expected, one.name)


def test_the_weights_lie_where_the_paper_found_results_stable():
    found = resolve_paper(RunConfig(method="paper"))
    assert 5e-9 <= found.sigma1 <= 5e-8
    assert 1e-6 <= found.sigma2 <= 5e-5
    assert (found.estimator, found.feature_scale, found.streams) == ("plugin", "none", "separate")


@pytest.mark.parametrize(
    ("backbone", "heads", "tap"),
    [("alexnet", "shared", "after-relu"), ("vgg16", "coupled", "after-relu"), ("lite0", "shared", None)],
)
def test_networks_differ_in_heads_and_tap(backbone, heads, tap):
    found = resolve_paper(RunConfig(method="paper", backbone=backbone))
    assert (found.heads, found.tap) == (heads, tap)


@pytest.mark.parametrize(("backbone", "cautious"), [("alexnet", False), ("lite0", True)])
def test_a_network_without_fc7_is_told_that_the_weights_may_not_fit(backbone, cautious):
    sentence = explain_paper(resolve_paper(RunConfig(method="paper", backbone=backbone)))
    assert ("norm about 40" in sentence) == cautious
    assert all(f"{flag(name)} " in sentence for name in ("method", "sigma1", "sigma2", "streams"))
    own = resolve_paper(RunConfig(method="paper", backbone=backbone, sigma1=0.2, sigma2=0.2))
    assert "norm about 40" not in explain_paper(own)


@pytest.mark.parametrize("name", ["paper", "auto"])
def test_training_itself_knows_neither_stand_in(name):
    with pytest.raises(ValueError, match=f"method must be one of .* got '{name}'"):
        FitSettings(method=name)
