"""What a fit leaves behind."""

import json
from dataclasses import replace

import pytest
import torch
from made_up_problems import problem
from safetensors.torch import load, save
from torch.testing import assert_close

from sohot.heads import StackedFit, fit_stack
from sohot.methods import HeadSettings

SHORT = HeadSettings(steps=6, method="so+zeta", streams="separate", heads="coupled", norm_bound=2.0, hidden=3)
PROBLEM = problem(dtype=torch.float32)


@pytest.fixture
def fit() -> StackedFit:
    return fit_stack([PROBLEM], [SHORT])[0]


def test_it_survives_its_state(fit):
    tensors, config = fit.state()
    again = StackedFit.from_state(load(save(tensors)), json.loads(json.dumps(config)))
    assert again.settings == fit.settings
    assert again.shape == fit.shape
    for domain in ("source", "target"):
        assert_close(again.predict_logits(PROBLEM.source, domain), fit.predict_logits(PROBLEM.source, domain))


def test_each_domain_has_its_own_network_and_classifier(fit):
    assert not torch.allclose(fit.transform(PROBLEM.source), fit.transform(PROBLEM.source, "source"))
    shared = fit_stack([PROBLEM], [replace(SHORT, streams="shared", heads="shared")])[0]
    assert_close(shared.predict_logits(PROBLEM.source), shared.predict_logits(PROBLEM.source, "source"))


def test_features_are_bounded(fit):
    assert fit.transform(1000 * PROBLEM.source).square().sum(1).max() <= 2 * (1 + 1e-5)


def test_a_temperature_divides_the_logits_and_survives_too(fit):
    warm = replace(fit, temperature=2.0)
    again = StackedFit.from_state(*warm.state())
    assert_close(again.predict_logits(PROBLEM.target), fit.predict_logits(PROBLEM.target) / 2)


def test_a_fit_does_not_keep_the_stack_alive():
    for fit in fit_stack([PROBLEM] * 2, [HeadSettings(method="so", steps=2)] * 2):
        for x in fit.parameters.values():
            assert x.untyped_storage().nbytes() == x.numel() * x.element_size()
            assert not x.requires_grad


def test_the_method_t_classifies_source_rows_with_the_network_of_the_target():
    [fit] = fit_stack([PROBLEM], [replace(SHORT, method="t")])
    assert_close(fit.predict_logits(PROBLEM.source, "source"), fit.predict_logits(PROBLEM.source))


def test_features_of_another_size_are_refused(fit):
    with pytest.raises(ValueError, match="target features had 5 columns in training, got 4"):
        fit.predict_logits(torch.zeros(2, 4))
    with pytest.raises(ValueError, match="domain must be one of 'source', 'target', got 'both'"):
        fit.transform(PROBLEM.source, "both")


def test_a_network_that_never_saw_a_source_of_another_size_says_so():
    wide = problem(1, size=7, dtype=torch.float32)
    mixed = replace(PROBLEM, source=wide.source, source_labels=wide.source_labels)
    [fit] = fit_stack([mixed], [replace(SHORT, method="t")])
    with pytest.raises(ValueError, match="was trained on the target alone"):
        fit.predict_logits(wide.source, "source")
