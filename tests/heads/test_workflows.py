"""Inside scikit-learn's pipelines and searches, with domains passed along."""

from collections.abc import Iterator

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from two_domains import two_domains

from sohot import SoHoTClassifier, SoHoTClassifierCV

DATA = two_domains(shots=6)
QUICK = SoHoTClassifier(steps=20, random_state=0)


@pytest.fixture
def _routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("_routing")
def test_a_pipeline_passes_domains_on() -> None:
    pipeline = make_pipeline(StandardScaler(), clone(QUICK)).fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    by_hand = clone(QUICK).fit(StandardScaler().fit_transform(DATA.X), DATA.y, sample_domain=DATA.sample_domain)
    moved = pipeline[0].transform(DATA.test)
    np.testing.assert_allclose(pipeline.predict_proba(DATA.test), by_hand.predict_proba(moved))
    as_source = pipeline.predict_proba(DATA.test, sample_domain=np.ones(len(DATA.test), dtype=int))
    np.testing.assert_allclose(as_source, by_hand.predict_proba(moved, sample_domain=1))


def test_a_pipeline_passes_domains_on_by_name() -> None:
    with sklearn.config_context(enable_metadata_routing=False):  # skada, once imported, turns it on for the process
        pipeline = make_pipeline(StandardScaler(), clone(QUICK))
        pipeline.fit(DATA.X, DATA.y, sohotclassifier__sample_domain=DATA.sample_domain)
        assert pipeline.score(DATA.test, DATA.test_labels) > 0.5


@pytest.mark.usefixtures("_routing")
def test_a_search_slices_domains_with_the_rows() -> None:
    strata = 10 * DATA.y + (DATA.sample_domain > 0)
    folds = list(StratifiedKFold(3).split(DATA.X, strata))
    search = GridSearchCV(QUICK, {"sigma1": np.array([0.01, 1.0]), "hidden": [None, np.int64(4)]}, cv=folds)
    search.fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    assert search.best_score_ > 0.5
    train, test = folds[0]
    one = clone(QUICK).set_params(**search.cv_results_["params"][2])
    one.fit(DATA.X[train], DATA.y[train], sample_domain=DATA.sample_domain[train])
    score = one.score(DATA.X[test], DATA.y[test], sample_domain=DATA.sample_domain[test])
    assert search.cv_results_["split0_test_score"][2] == score


@pytest.mark.usefixtures("_routing")
def test_two_processes_find_the_same() -> None:
    results = [
        cross_validate(QUICK, DATA.X, DATA.y, params={"sample_domain": DATA.sample_domain}, cv=2, n_jobs=jobs)
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(results[0]["test_score"], results[1]["test_score"])


@pytest.mark.usefixtures("_routing")
def test_a_search_within_a_cross_validation() -> None:
    search = SoHoTClassifierCV(QUICK, {"method": ["s+t", "so"]})
    predicted = cross_val_predict(search, DATA.X, DATA.y, params={"sample_domain": DATA.sample_domain}, cv=2)
    assert np.mean(predicted == DATA.y) > 0.5
