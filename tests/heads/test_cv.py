"""SoHoTClassifierCV: every shot is held back once, nothing else is looked at, equals go to the simpler."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimator_checks import every_check
from sklearn.base import clone
from two_domains import two_domains

from sohot import SoHoTClassifier, SoHoTClassifierCV
from sohot.heads import cv
from sohot.heads.cv import make_candidates
from sohot.heads.domains import divide
from sohot.methods import OTHER_NAMES
from sohot.selection.choice import FoldScore

DATA = two_domains()
QUICK = SoHoTClassifier(steps=20, random_state=0)


def searched(candidates: Any = None, **params: Any) -> SoHoTClassifierCV:
    return SoHoTClassifierCV(QUICK, candidates, **params).fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)


def test_equal_rows_are_not_divided() -> None:
    rows = np.array([[0.0], [1.0], [0.0], [2.0], [3.0], [9.0]])
    folds = cv.shot_folds(divide(rows, np.array([0, 0, 0, 1, 1, 0]), np.array([-1, -1, -1, -1, -1, 1])))
    assert [fold.held for fold in folds] == [[0, 2, 3], [1, 4]]


def test_bad_folds_end_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="folds must be an integer of at least 2"):
        searched(folds=1)


def test_the_scores_are_those_of_single_fits() -> None:
    search = searched({"method": ["s+t", "so", "so+zeta"], "sigma1": [0.1, 1.0]})
    source, target = np.flatnonzero(DATA.sample_domain > 0), np.flatnonzero(DATA.sample_domain < 0)
    results = search.cv_results_
    for place, params in enumerate(results["params"]):
        for number, fold in enumerate(cv.shot_folds(divide(DATA.X, DATA.y, DATA.sample_domain))):
            rows = np.r_[source, target[fold.train]]
            one = clone(QUICK).set_params(**params).fit(DATA.X[rows], DATA.y[rows], DATA.sample_domain[rows])
            held = target[fold.held]
            assert results[f"split{number}_test_score"][place] == one.score(DATA.X[held], DATA.y[held])
    assert len(results["params"]) == 5
    assert results["mean_test_score"].max() == search.best_score_
    assert results["params"][int(np.argmin(results["rank_test_score"]))] == search.best_params_


def test_the_winner_is_trained_on_all_rows() -> None:
    search = searched({"sigma1": [0.01, 1.0]})
    again = clone(QUICK).set_params(**search.best_params_).fit(DATA.X, DATA.y, DATA.sample_domain)
    np.testing.assert_allclose(search.predict_proba(DATA.test), again.predict_proba(DATA.test), atol=1e-6)
    np.testing.assert_array_equal(search.predict(DATA.test), search.best_estimator_.predict(DATA.test))
    assert search.score(DATA.test, DATA.test_labels) == again.score(DATA.test, DATA.test_labels)


def test_equals_go_to_the_simpler_and_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cv, "_score", lambda *_: FoldScore(3, 3))
    search = searched({"method": ["so+zeta", "so", "s+t", "m"], "sigma1": [1.0, 0.1]})
    assert search.best_params_ == {"method": "s+t"}
    assert "the simplest of 7 candidates" in search.reason_
    assert search.cv_results_["rank_test_score"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    methods = [params["method"] for params in search.cv_results_["params"]]
    assert methods == ["s+t", "m", "m", "so", "so", "so+zeta", "so+zeta"]


def test_progress_counts_the_trainings_from_none_to_all() -> None:
    told: list[tuple[int, int]] = []
    search = SoHoTClassifierCV(SoHoTClassifier(steps=2), {"method": ["s+t", "so"]})
    rows = {"sample_domain": DATA.sample_domain, "on_progress": lambda done, of: told.append((done, of))}
    search.fit(DATA.X, DATA.y, **rows)
    assert told[0] == (0, 6)
    assert told[-1] == (6, 6)
    assert told == sorted(told)


def test_a_candidate_that_diverges_does_not_win() -> None:
    base = SoHoTClassifier(steps=40, optimizer="sgd")
    search = SoHoTClassifierCV(base, {"method": ["s+t"], "lr": [1e-3, 1e12]})
    search.fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    assert search.best_params_["lr"] == 1e-3
    assert np.isnan(search.cv_results_["mean_test_score"]).sum() == 1
    search.set_params(candidates={"lr": [1e12, 1e13]})
    with pytest.raises(ValueError, match="every candidate diverged"):
        search.fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)


def test_the_default_candidates_differ_and_s_plus_t_is_the_first() -> None:
    found = make_candidates(SoHoTClassifier(), None)
    assert len(found) == 27  # as the pages say
    assert len({one.settings for one in found}) == len(found)
    assert found[0].options == {"method": "s+t", "streams": "shared"}
    assert {one.settings.estimator for one in found} == {"plugin", "unbiased"}


def test_what_a_method_ignores_is_dropped() -> None:
    grid = {"method": ["s", "s+t", "so"], "orders": [(2,), (2, 3)], "alpha1": [0.1, 1.0], "streams": ["separate"]}
    found = [one.options for one in make_candidates(SoHoTClassifier(orders=(3,), sigma1=0.5), grid)]
    assert found == [
        {"method": "s"},
        {"method": "s+t", "streams": "separate"},
        {"method": "so", "orders": (2,), "streams": "separate"},
        {"method": "so", "orders": (2, 3), "streams": "separate"},
    ]


def test_other_methods_can_be_chosen_and_come_after_training_on_both() -> None:
    grid = {"method": ["so", *OTHER_NAMES, "s+t"], "loss_weight": [0.1, 1.0], "sigma1": [0.1, 1.0]}
    found = make_candidates(SoHoTClassifier(), grid)
    names = [candidate.options["method"] for candidate in found]
    assert names[0] == "s+t"
    assert names[-2:] == ["so", "so"]
    assert {name: names.count(name) for name in ("ccsa", "supcon", "means", "lp-ft")} == {
        "ccsa": 2,
        "supcon": 2,
        "means": 1,
        "lp-ft": 1,
    }
    search = SoHoTClassifierCV(SoHoTClassifier(steps=10), {"method": ["ccsa"], "loss_weight": [0.1, 1.0]})
    search.fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    assert search.best_params_["method"] == "ccsa"
    assert len(search.cv_results_["params"]) == 2


def test_one_domain_leaves_nothing_to_choose() -> None:
    search = SoHoTClassifierCV(QUICK).fit(DATA.X, DATA.y)
    assert search.best_params_ == {}
    assert np.isnan(search.best_score_)
    assert "there is nothing to align or select on" in search.reason_
    with pytest.warns(UserWarning, match="trained on the source alone"):
        SoHoTClassifierCV(QUICK).fit(DATA.X, np.where(DATA.sample_domain > 0, DATA.y, -1), DATA.sample_domain)


def test_results_make_a_table() -> None:
    frame = pd.DataFrame(searched({"sigma1": [0.1, 1.0], "method": ["s+t", "so"]}).cv_results_)
    assert {"param_sigma1", "mean_test_score", "standard_error", "rank_test_score"} <= set(frame.columns)
    assert (frame["held_out_rows"] == 9).all()
    assert (frame["standard_error"] > 0).all()


def test_domains_with_features_of_their_own() -> None:
    source = DATA.sample_domain > 0
    search = SoHoTClassifierCV(SoHoTClassifier(streams="separate", steps=20), {"sigma1": [0.1, 1.0]})
    search.fit(DATA.X[source], DATA.y[source], X_target=DATA.X[~source][:, :4], y_target=DATA.y[~source])
    assert search.predict(DATA.test[:, :4]).shape == DATA.test_labels.shape
    search.set_params(base=QUICK, candidates=None)  # of the default ones, those that can be
    search.fit(DATA.X[source], DATA.y[source], X_target=DATA.X[~source][:, :4], y_target=DATA.y[~source])
    assert len(search.cv_results_["params"]) == 4
    with pytest.raises(ValueError, match="no candidate has streams='separate'"):
        search.set_params(candidates={"sigma1": [1.0]}).fit(DATA.X, DATA.y, X_target=DATA.X[:, :4], y_target=DATA.y)


@pytest.mark.parametrize(
    ("candidates", "sentence"),
    [
        ({"sigma": [1]}, "candidates name 'sigma'"),
        ({"device": ["cpu"]}, "candidates name 'device'"),
        ([], "candidates is empty"),
        ({"sigma1": [-1]}, "sigma1 must be"),
    ],
)
def test_bad_candidates_end_in_a_sentence(candidates: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        searched(candidates)


@every_check(SoHoTClassifierCV(SoHoTClassifier(steps=30)))
def test_scikit_learn_is_content(estimator: SoHoTClassifierCV, check: object) -> None:
    check(estimator)  # type: ignore[operator]
