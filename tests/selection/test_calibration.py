"""The temperature of held-out rows: what it keeps, what it improves, and how a handful of rows bounds it."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sohot.selection.answers import Answers
from sohot.selection.calibration import HIGHEST, LOWEST, WIDTH, Calibration, fit_temperature
from sohot.selection.held_out import HeldOut


def drawn(rows, classes=5, scale=2.0, seed=0):
    """Draw rows whose labels come from the softmax of their logits, which is therefore perfectly calibrated."""
    random = np.random.default_rng(seed)
    logits = scale * random.normal(size=(rows, classes))
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return HeldOut(logits, (random.random((rows, 1)) > shares.cumsum(1)).sum(1).clip(0, classes - 1))


few = st.builds(
    drawn, st.integers(1, 40), st.integers(2, 6), st.sampled_from([0.1, 1.0, 3.0, 10.0]), st.integers(0, 99)
)


@pytest.mark.parametrize("width", [WIDTH, math.inf])
def test_calibrated_logits_keep_a_temperature_of_1(width):
    assert fit_temperature(drawn(5000), width) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("factor", [0.2, 0.5, 3.0, 10.0])
def test_the_temperature_follows_the_scale_of_the_logits(factor):
    rows = drawn(60)
    scaled = HeldOut(factor * rows.logits, rows.labels)
    free = fit_temperature(rows, math.inf)
    assert fit_temperature(scaled, math.inf) == pytest.approx(factor * free, rel=1e-4)
    np.testing.assert_allclose(
        Answers.of(scaled, factor * free).confidence, Answers.of(rows, free).confidence, rtol=1e-9
    )


@given(few)
@settings(deadline=None, max_examples=30)
def test_held_out_rows_become_no_less_likely_and_no_answer_changes(rows):
    found = Calibration.of(rows)
    assert LOWEST <= found.temperature <= HIGHEST
    assert found.after.log_likelihood >= found.before.log_likelihood
    assert (found.answers.right == Answers.of(rows).right).all()
    assert found.rows == len(rows)
    free = fit_temperature(rows, math.inf)
    assert abs(math.log(found.temperature)) <= abs(math.log(free)) + 1e-6  # the prior only draws towards 1


def test_the_fewer_the_rows_the_closer_to_1():
    one, many = HeldOut([[3.0, 0.0]] * 2, [0, 1]), HeldOut([[3.0, 0.0]] * 200, [0, 1] * 100)
    assert 1 < fit_temperature(one) < fit_temperature(many)
    assert fit_temperature(many) > 3  # logits that tell nothing deserve even chances


@pytest.mark.parametrize(("labels", "end"), [([0], LOWEST), ([1], HIGHEST)])
def test_without_a_prior_rows_without_or_with_only_mistakes_lead_to_the_ends(labels, end):
    assert fit_temperature(HeldOut([[1.0, 0.0]], labels), math.inf) == pytest.approx(end, rel=0.05)


def test_over_confident_answers_become_honest():
    rows = HeldOut(np.tile([[8.0, 0.0, 0.0]], (60, 1)), [0] * 45 + [1] * 15)
    found = Calibration.of(rows)
    assert found.before.calibration_error == pytest.approx(0.25, abs=0.01)
    assert found.after.calibration_error < 0.12
    assert found.answers.confidence[0] == pytest.approx(0.75, abs=0.12)


def test_nothing_held_out_calibrates_nothing():
    none = Calibration.of(HeldOut(np.zeros((0, 3)), []))
    assert (none.temperature, none.rows, none.before, none.after) == (1.0, 0, None, None)
    assert Calibration.from_json(none.as_json()).rows == 0


def test_logits_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="must be finite"):
        fit_temperature(HeldOut([[np.nan, 0.0]], [0]))


def test_what_is_stored_is_what_is_read():
    found = Calibration.of(drawn(30))
    again = Calibration.from_json(json.loads(json.dumps(found.as_json())))
    assert again.as_json() == found.as_json()


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": None},
        {"temperature": 0.0},
        {"temperature": "1e9"},
        {"before": {"log_likelihood": 1}},
        {"before": 3},
        {"right": [True]},
        {"confidence": [2.0] * 30},
        {"confidence": {}},
    ],
)
def test_a_damaged_record_is_refused(change):
    with pytest.raises(ValueError, match=r"damaged|temperature|confidence"):
        Calibration.from_json({**Calibration.of(drawn(30)).as_json(), **change})
