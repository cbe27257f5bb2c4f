"""SoHoTClassifierCV: every shot is held back once, nothing else is looked at, classifiers are averaged."""

from pathlib import Path
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
from sohot.heads.shots import shot_folds
from sohot.methods import OTHER_NAMES
from sohot.selection import Fold
from sohot.selection.calibration import fit_temperature
from sohot.selection.choice import FoldScore
from sohot.selection.held_out import HeldOut

DATA = two_domains()
SOURCE = DATA.sample_domain > 0
QUICK = SoHoTClassifier("so", steps=20, random_state=0)


def searched(candidates: Any = None, **params: Any) -> SoHoTClassifierCV:
    return SoHoTClassifierCV(QUICK, candidates, **params).fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)


def test_equal_rows_are_not_divided() -> None:
    rows = np.array([[0.0], [1.0], [0.0], [2.0], [3.0], [9.0]])
    folds = shot_folds(divide(rows, np.array([0, 0, 0, 1, 1, 0]), np.array([-1, -1, -1, -1, -1, 1])))
    assert [fold.held for fold in folds] == [[0, 2, 3], [1, 4]]


def test_bad_folds_end_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="folds must be an integer of at least 2"):
        searched(folds=1)


def folds_of_data() -> list[Fold]:
    return shot_folds(divide(DATA.X, DATA.y, DATA.sample_domain))


def without_held(fold: Fold, **params: Any) -> SoHoTClassifier:
    """Train one setting without the held-out rows of a fold."""
    rows = np.r_[np.flatnonzero(SOURCE), np.flatnonzero(~SOURCE)[fold.train]]
    one = clone(QUICK).set_params(**params, calibrate=False)
    return one.fit(DATA.X[rows], DATA.y[rows], DATA.sample_domain[rows])


def held_rows(fold: Fold) -> Any:
    return np.flatnonzero(~SOURCE)[fold.held]


def held_out(**params: Any) -> HeldOut:
    """What single fits of one setting say about the rows of each fold."""
    return HeldOut.join(
        [
            HeldOut(without_held(fold, **params).decision_function(DATA.X[held_rows(fold)]), DATA.y[held_rows(fold)])
            for fold in folds_of_data()
        ]
    )


def test_the_scores_are_those_of_single_fits() -> None:
    results = searched({"method": ["s+t", "so+zeta"], "sigma1": [0.1, 1.0]}).cv_results_
    assert len(results["params"]) == 3
    for place, params in enumerate(results["params"]):
        for number, fold in enumerate(folds_of_data()):
            rows = held_rows(fold)
            score = without_held(fold, **params).score(DATA.X[rows], DATA.y[rows])
            assert results[f"split{number}_test_score"][place] == score
        said = held_out(**params)
        expected = said.log_likelihoods(fit_temperature(said)).mean()
        assert results["mean_log_likelihood"][place] == pytest.approx(expected, abs=1e-4)


def test_ranks_follow_the_likelihood() -> None:
    results = searched({"sigma1": [0.1, 1.0, 10.0]}).cv_results_
    frame = pd.DataFrame(results)
    assert {"param_sigma1", "mean_test_score", "standard_error", "rank_test_score"} <= set(frame.columns)
    assert (frame["held_out_rows"] == 9).all()
    best = np.argsort(-results["mean_log_likelihood"], kind="stable")
    assert results["rank_test_score"][best].tolist() == [1, 2, 3]


def test_the_usual_candidates_become_one_linear_classifier() -> None:
    search = SoHoTClassifierCV().fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    assert len(search.weights_) == 9
    assert sum(search.weights_) == pytest.approx(1)
    assert min(search.weights_) >= 0
    singles = [
        clone(QUICK).set_params(**params, calibrate=False).fit(DATA.X, DATA.y, DATA.sample_domain)
        for params in search.cv_results_["params"]
    ]
    temperatures = [fit_temperature(held_out(**params)) for params in search.cv_results_["params"]]
    shares = zip(search.weights_, temperatures, singles, strict=True)
    mean = sum(weight * one.decision_function(DATA.test) / temperature for weight, temperature, one in shares)
    np.testing.assert_allclose(search.decision_function(DATA.test), mean / search.temperature_, atol=1e-3)
    assert search.best_params_ == search.cv_results_["params"][int(np.argmax(search.weights_))]
    assert search.best_estimator_.settings().head_decay == search.fit_.settings.head_decay
    assert search.reason_.startswith("the average of 9 candidates")
    assert set(search.history_) == {"loss", "cross_entropy", "alignment"}


def test_a_saved_average_comes_back(tmp_path: Path) -> None:
    search = SoHoTClassifierCV().fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    search.best_estimator_.save(tmp_path / "model.safetensors")
    loaded = SoHoTClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(DATA.test), search.predict_proba(DATA.test))
    assert loaded.temperature_ == search.temperature_ != 1


def test_the_order_of_rows_does_not_matter() -> None:
    order = np.random.default_rng(1).permutation(len(DATA.y))
    one = SoHoTClassifierCV().fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    other = SoHoTClassifierCV().fit(DATA.X[order], DATA.y[order], sample_domain=DATA.sample_domain[order])
    np.testing.assert_allclose(one.predict_proba(DATA.test), other.predict_proba(DATA.test), atol=1e-5)
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-4)


def test_the_chosen_one_is_trained_on_all_rows() -> None:
    search = searched({"sigma1": [0.01, 1.0]})
    assert sorted(search.weights_) == [0, 1]
    again = clone(QUICK).set_params(**search.best_params_).fit(DATA.X, DATA.y, DATA.sample_domain)
    np.testing.assert_allclose(search.predict_proba(DATA.test), again.predict_proba(DATA.test), atol=1e-6)
    np.testing.assert_array_equal(search.predict(DATA.test), search.best_estimator_.predict(DATA.test))
    assert search.score(DATA.test, DATA.test_labels) == again.score(DATA.test, DATA.test_labels)


def test_without_calibration_the_temperature_is_one() -> None:
    search = SoHoTClassifierCV(clone(QUICK).set_params(calibrate=False), {"sigma1": [0.01, 1.0]})
    search.fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    assert search.temperature_ == search.fit_.temperature == 1


GRID = {"method": ["so+zeta", "so", "s+t", "m"], "sigma1": [1.0, 0.1]}


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (SoHoTClassifier("t"), {"method": "s+t"}),  # not among them: the simplest
        (SoHoTClassifier("so", sigma1=0.1), {"method": "so", "sigma1": 0.1}),
        (SoHoTClassifier("s+t", sigma1=7.0), {"method": "s+t"}),  # which ignores sigma1
    ],
    ids=str,
)
def test_where_labels_cannot_tell_the_default_stays(
    base: SoHoTClassifier, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cv, "score_fold", lambda *_: FoldScore.of(HeldOut([[1.0, 0.0, 0.0]] * 3, [0, 1, 0])))
    search = SoHoTClassifierCV(clone(base).set_params(steps=2), GRID)
    search.fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    assert search.best_params_ == expected
    assert "no other candidate makes their true classes more likely" in search.reason_
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
    base = SoHoTClassifier("means", steps=40, optimizer="sgd")
    search = SoHoTClassifierCV(base, {"lr": [1e-3, 1e12]})
    search.fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    assert search.best_params_["lr"] == 1e-3
    assert np.isnan(search.cv_results_["mean_test_score"]).sum() == 1
    search.set_params(candidates={"lr": [1e12, 1e13]})
    with pytest.raises(ValueError, match="every candidate diverged"):
        search.fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)


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
    with pytest.warns(UserWarning, match="labels come from the source alone"):
        SoHoTClassifierCV(QUICK).fit(DATA.X, np.where(DATA.sample_domain > 0, DATA.y, -1), DATA.sample_domain)


def test_domains_with_features_of_their_own() -> None:
    source = DATA.sample_domain > 0
    search = SoHoTClassifierCV(SoHoTClassifier("so", streams="separate", steps=20), {"sigma1": [0.1, 1.0]})
    search.fit(DATA.X[source], DATA.y[source], X_target=DATA.X[~source][:, :4], y_target=DATA.y[~source])
    assert search.predict(DATA.test[:, :4]).shape == DATA.test_labels.shape
    search.set_params(base=QUICK, candidates=None)  # the usual ones, with a network for each domain
    search.fit(DATA.X[source], DATA.y[source], X_target=DATA.X[~source][:, :4], y_target=DATA.y[~source])
    assert len(search.cv_results_["params"]) == 9
    assert search.best_params_["streams"] == "separate"
    with pytest.raises(ValueError, match="no candidate has streams='separate'"):
        search.set_params(candidates={"sigma1": [1.0]}).fit(DATA.X, DATA.y, X_target=DATA.X[:, :4], y_target=DATA.y)


@pytest.mark.parametrize(
    ("candidates", "sentence"),
    [
        ({"sigma": [1]}, "candidates name 'sigma'"),
        ({"device": ["cpu"]}, "candidates name 'device'"),
        ({"calibrate": [False]}, "candidates name 'calibrate'"),
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
