"""Together with skada: its data, its splitters, its scorers, its pipelines."""

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.preprocessing import StandardScaler

from sohot import SoHoTClassifier, SoHoTClassifierCV
from sohot._torchvision import import_torchvision
from sohot.heads import baseline

if not os.environ.get("CI"):
    pytest.importorskip("skada", reason="skada is not installed")
import_torchvision()  # skada's data sets import it as well
with sklearn.config_context(), warnings.catch_warnings():  # skada switches metadata routing on for the whole process
    warnings.simplefilter("ignore")
    from skada import make_da_pipeline
    from skada.datasets import make_shifted_datasets
    from skada.metrics import ImportanceWeightedScorer, PredictionEntropyScorer, SupervisedScorer
    from skada.model_selection import SourceTargetShuffleSplit, StratifiedDomainShuffleSplit

QUICK = SoHoTClassifier(hidden=8, steps=40, random_state=0)
with warnings.catch_warnings():  # it calls itself in a way it calls out of date
    warnings.simplefilter("ignore")
    X, Y, DOMAIN = make_shifted_datasets(8, 8, shift="conditional_shift", random_state=0)
MASKED = np.where(DOMAIN < 0, -1, Y)


@pytest.fixture(autouse=True)
def _routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def supervised() -> SupervisedScorer:
    """The accuracy on target rows; asking for `target_labels`, skada's scorer forgets to ask for the domains too."""
    return SupervisedScorer().set_score_request(sample_domain=True, target_labels=True)


@pytest.mark.parametrize("splitter", [StratifiedDomainShuffleSplit, SourceTargetShuffleSplit])
@pytest.mark.parametrize("scorer", [supervised, PredictionEntropyScorer])
def test_splitters_and_scorers(splitter: type, scorer: Callable[[], Any]) -> None:
    params = {"sample_domain": DOMAIN}
    if scorer is supervised:
        params["target_labels"] = Y
    found = cross_validate(
        QUICK,
        X,
        Y,
        params=params,
        cv=splitter(n_splits=2, test_size=0.3, random_state=0),
        scoring=scorer(),
        error_score="raise",
    )
    assert np.isfinite(found["test_score"]).all()
    if scorer is supervised:
        assert found["test_score"].min() > 0.5


def test_importance_weights() -> None:
    fitted = clone(QUICK).set_score_request(sample_weight=True).fit(X, Y, sample_domain=DOMAIN)
    assert 0.5 < ImportanceWeightedScorer()(fitted, X, Y, sample_domain=DOMAIN) <= 1


def test_a_masked_target_is_a_pool() -> None:
    """What skada's unsupervised methods are given: no target label at all."""
    params = {"hidden": 8, "steps": 40, "random_state": 0}
    with pytest.warns(UserWarning, match="labels come from the source alone"):
        fitted = SoHoTClassifier(**params).fit(X, MASKED, sample_domain=DOMAIN)
    assert "there is no held-out label to say whether they help" in fitted.reason_
    with pytest.warns(UserWarning, match="labels come from the source alone"):
        bare = SoHoTClassifier(**params, pool_weight=0).fit(X, MASKED, sample_domain=DOMAIN)
    plain = SoHoTClassifier(**params).fit(X[DOMAIN > 0], Y[DOMAIN > 0])
    np.testing.assert_allclose(bare.predict_proba(X), plain.predict_proba(X))
    assert not np.allclose(fitted.predict_proba(X), plain.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize(
    "estimator", [QUICK, SoHoTClassifierCV(QUICK, {"method": ["s+t", "so"]}), baseline("lda-both")]
)
def test_the_last_step_of_a_pipeline_of_skada(estimator: SoHoTClassifier) -> None:
    """A pipeline of skada masks target labels, in the very array it is given, unless told not to."""
    pipeline = make_da_pipeline(StandardScaler(), clone(estimator), mask_target_labels=False)
    pipeline.fit(X, Y, sample_domain=DOMAIN)
    by_hand = clone(estimator).fit(StandardScaler().fit_transform(X), Y, sample_domain=DOMAIN)
    moved = pipeline[0].base_estimator_.transform(X[DOMAIN < 0])
    found = pipeline.predict_proba(X[DOMAIN < 0], sample_domain=DOMAIN[DOMAIN < 0])
    np.testing.assert_allclose(found, by_hand.predict_proba(moved))
