"""`TargetSplit`: scikit-learn's cross-validation tests on labelled target rows, whatever else there is."""

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from two_domains import two_domains

from sohot import SoHoTClassifier, TargetSplit

DATA = two_domains(shots=4)
X = np.concatenate([DATA.X, DATA.test])
Y = np.concatenate([DATA.y, np.full(len(DATA.test), -1)])
DOMAIN = np.concatenate([DATA.sample_domain, np.full(len(DATA.test), -2)])
KNOWN = np.flatnonzero((DOMAIN < 0) & (Y >= 0))


def test_each_labelled_target_row_tests_once_and_all_others_train() -> None:
    folds = list(TargetSplit().split(X, Y, sample_domain=DOMAIN))
    assert len(folds) == TargetSplit().get_n_splits(X, Y, DOMAIN) == 4
    assert sorted(np.concatenate([test for _, test in folds])) == KNOWN.tolist()
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(len(X)))
        assert np.bincount(Y[test]).tolist() == [1, 1, 1]
    assert [len(test) for _, test in TargetSplit(2).split(X, Y, DOMAIN)] == [6, 6]


def test_folds_depend_on_rows_not_on_their_order_or_kind() -> None:
    order = np.random.default_rng(0).permutation(len(X))
    names = np.array(["mug", "pen", "cup", -1], dtype=object)[Y]

    def folds(*rows):
        return {frozenset(test) for _, test in TargetSplit().split(*rows)}

    expected = folds(X, Y, DOMAIN)
    assert {frozenset(order[list(fold)]) for fold in folds(X[order], Y[order], DOMAIN[order])} == expected
    assert folds(csr_array(X), Y, DOMAIN) == folds(X.tolist(), Y.tolist(), DOMAIN.tolist()) == expected
    assert folds(X, names, DOMAIN) == expected
    twice = np.concatenate([X, X[KNOWN]])  # equal rows test together
    for fold in folds(twice, np.concatenate([Y, Y[KNOWN]]), np.concatenate([DOMAIN, DOMAIN[KNOWN]])):
        assert sum(row >= len(X) for row in fold) * 2 == len(fold)


def test_the_score_is_that_of_the_target() -> None:
    model = SoHoTClassifier(calibrate=False, pool_weight=0)
    expected = [
        model.fit(X[train], Y[train], sample_domain=DOMAIN[train]).score(X[test], Y[test])
        for train, test in TargetSplit().split(X, Y, DOMAIN)
    ]
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(model, X, Y, params={"sample_domain": DOMAIN}, cv=TargetSplit(), error_score="raise")
        search = GridSearchCV(model, {"head_decay": [0.01, 0.03]}, cv=TargetSplit()).fit(X, Y, sample_domain=DOMAIN)
    with sklearn.config_context(enable_metadata_routing=False):
        params = {"sample_domain": DOMAIN}
        plain = cross_val_score(model, X, Y, groups=DOMAIN, params=params, cv=TargetSplit(), error_score="raise")
        other = GridSearchCV(model, {"head_decay": [0.01, 0.03]}, cv=TargetSplit()).fit(X, Y, groups=DOMAIN, **params)
        labelled = Y >= 0
        rows = {"X": X[labelled], "y": Y[labelled], "groups": DOMAIN[labelled]}
        cross_val_score(LogisticRegression(), **rows, cv=TargetSplit(), error_score="raise")
    assert found["test_score"].tolist() == plain.tolist() == expected
    assert search.cv_results_["mean_test_score"].tolist() == other.cv_results_["mean_test_score"].tolist()


@pytest.mark.parametrize(
    ("folds", "given", "words"),
    [
        (5, (X, Y), "without metadata routing give the domains as groups"),
        (5, (X, Y, np.ones(len(X))), "no class has two labelled target rows"),
        (5, (X, Y, DOMAIN[1:]), "sample_domain must hold one integer for each of"),
        (1, (X, Y, DOMAIN), "n_splits must be"),
    ],
)
def test_wrong_calls(folds, given, words) -> None:
    with pytest.raises(ValueError, match=words):
        next(TargetSplit(folds).split(*given))
