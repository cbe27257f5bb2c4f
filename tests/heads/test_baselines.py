"""Baselines learn from the rows that their name says, and from no others."""

import numpy as np
import pytest
from estimator_checks import every_check
from sklearn.base import clone

from sohot.heads import Baseline, baseline, baseline_names
from sohot.heads.baselines import ClassMean

RANDOM = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0, 4], [0, 4, 0], [4, 0, 0]])
Y = np.tile([0, 1, 2], 12)
DOMAIN = np.repeat([1, -2], 18)
X = RANDOM.normal(size=(36, 3)) + CENTRES[Y] + 3 * (DOMAIN < 0)[:, None]


@pytest.mark.parametrize("name", baseline_names())
def test_other_rows_change_nothing(name: str) -> None:
    trains_on = name.rpartition("-")[2]
    used = {"source": DOMAIN > 0, "target": DOMAIN < 0, "both": DOMAIN != 0}[trains_on]
    whole = baseline(name).fit(X, Y, sample_domain=DOMAIN)
    part = clone(whole).fit(X[used], Y[used], sample_domain=DOMAIN[used])
    np.testing.assert_allclose(whole.predict_proba(X), part.predict_proba(X), rtol=1e-6, atol=1e-12)
    assert whole.score(X[used], Y[used]) > 0.8


def test_unlabelled_target_rows_are_left_out() -> None:
    masked = np.where(np.arange(36) >= 27, -1, Y)
    labelled = masked != -1
    whole = baseline("lda-both").fit(X, masked, sample_domain=DOMAIN)
    part = baseline("lda-both").fit(X[labelled], Y[labelled], sample_domain=DOMAIN[labelled])
    assert whole.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(whole.predict(X), part.predict(X))


def test_a_class_of_one_row_is_no_trouble() -> None:
    rows = np.r_[0:18, 18:23]  # two target rows of two classes, one of the third
    for name in baseline_names():
        baseline(name).fit(X[rows], Y[rows], sample_domain=DOMAIN[rows])


@every_check(baseline("logistic-both"))
def test_scikit_learn_is_content(estimator: Baseline, check: object) -> None:
    check(estimator)  # type: ignore[operator]


@every_check(ClassMean())
def test_scikit_learn_is_content_with_class_means(estimator: ClassMean, check: object) -> None:
    check(estimator)  # type: ignore[operator]


def test_one_shot_per_class_is_enough_for_class_means() -> None:
    shares = baseline("class-mean-target").fit(X[18:21], Y[18:21], sample_domain=-1).predict_proba(X)
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_bad_names_and_missing_rows_end_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="name of a baseline"):
        baseline("svm-both")
    with pytest.raises(ValueError, match="no labelled target row"):
        baseline("lda-target").fit(X, Y, sample_domain=1)
