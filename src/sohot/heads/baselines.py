"""Baselines: plain scikit-learn classifiers on the source, the target or both, with the same `fit`."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax  # type: ignore[import-untyped]
from sklearn.base import BaseEstimator, ClassifierMixin, clone  # type: ignore[import-untyped]
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
from sklearn.metrics.pairwise import euclidean_distances  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]
from sklearn.utils.metaestimators import available_if  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from ..functional.plain_checks import check_choice
from .domains import DomainRows, Features, Labels, divide

TRAINS_ON = ("source", "target", "both")

_HEADS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "class-mean": lambda: ClassMean(),
    "lda": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
}


def baseline_names() -> list[str]:
    """Name the baselines.

    >>> baseline_names()[:4]
    ['logistic-source', 'logistic-target', 'logistic-both', 'class-mean-source']
    """
    return [f"{head}-{domain}" for head in _HEADS for domain in TRAINS_ON]


def baseline(name: str) -> "Baseline":
    """Create a baseline classifier.

    Args:
        name: The classifier and the domain it learns from, one of `baseline_names()`: `logistic` (logistic regression
            on standardised features), `class-mean` (the nearest class mean) or `lda` (linear discriminants with a
            shrunk covariance, which works with few rows per class), each with `-source`, `-target` or `-both`.

    Example:
        >>> x, y, domain = [[0.0], [1.0], [5.0], [6.0]], ["low", "high", "low", "high"], [1, 1, -1, -1]
        >>> baseline("class-mean-target").fit(x, y, sample_domain=domain).predict([[5.1]])
        array(['low'], dtype='<U4')
    """
    check_choice(name, baseline_names(), "the name of a baseline")
    head, _, domain = name.rpartition("-")
    return Baseline(_HEADS[head](), trains_on=domain)


class ClassMean(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predict the class of the nearest mean. Unlike scikit-learn's NearestCentroid, one row per class is enough."""

    def fit(self, X: Any, y: Any) -> "ClassMean":  # noqa: N803
        """Compute the mean of each class, and the spread around it for probabilities."""
        x, labels = validate_data(self, X, y)
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        self.means_ = np.stack([x[numbers == c].mean(axis=0) for c in range(len(self.classes_))])
        spread = float(np.mean((x - self.means_[numbers]) ** 2))
        self.variance_ = spread if spread > 0 else 1.0
        return self

    def predict_proba(self, X: Any) -> Features:  # noqa: N803
        """Return the probability of each class, assuming that all are round and equally wide."""
        check_is_fitted(self)
        distances = euclidean_distances(validate_data(self, X, reset=False), self.means_, squared=True)
        shares: Features = softmax(-distances / (2 * self.variance_), axis=1)
        return shares

    def predict(self, X: Any) -> Labels:  # noqa: N803
        """Return the class of the nearest mean."""
        nearest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[nearest])


class Baseline(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier that learns from one domain, or from both as if they were one.

    Args:
        estimator: The classifier.
        trains_on: "source", "target" or "both".

    Attributes:
        estimator_: The classifier, fitted.
        classes_: The classes it knows.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sample_domain": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"sample_domain": True}

    def __init__(self, estimator: Any, trains_on: str = "both") -> None:
        self.estimator = estimator
        self.trains_on = trains_on

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> "Baseline":  # noqa: N803
        """Learn from the labelled rows of the chosen domain; without `sample_domain` from all rows.

        Args:
            X: Features (rows, features).
            y: Labels; −1 for a target row without one.
            sample_domain: Positive for source rows, negative for target rows.
        """
        check_choice(self.trains_on, TRAINS_ON, "trains_on")
        x, labels = validate_data(self, X, y)
        features, numbers, classes = self._chosen(divide(x, labels, sample_domain))
        with warnings.catch_warnings():  # a class of one row has no covariance of its own, as expected
            warnings.filterwarnings("ignore", "Only one sample available")
            self.estimator_ = clone(self.estimator).fit(features, classes[numbers])
        self.classes_ = self.estimator_.classes_
        return self

    def _chosen(self, rows: DomainRows) -> tuple[Features, Labels, Labels]:
        if self.trains_on == "both" or (not rows.has_target and not rows.source_ids):
            return (
                np.concatenate([rows.source, rows.target]),
                np.concatenate([rows.source_labels, rows.target_labels]),
                rows.classes,
            )
        source = self.trains_on == "source"
        features = rows.source if source else rows.target
        if not len(features):
            raise ValueError(f"trains_on={self.trains_on!r}, but there is no labelled {self.trains_on} row")
        return features, rows.source_labels if source else rows.target_labels, rows.classes

    def predict(self, X: Any, sample_domain: Any = None) -> Labels:  # noqa: ARG002, N803
        """Return the class of each row; `sample_domain` has no effect, as one classifier serves all domains."""
        check_is_fitted(self)
        labels: Labels = self.estimator_.predict(validate_data(self, X, reset=False))
        return labels

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, sample_domain: Any = None) -> Features:  # noqa: ARG002, N803
        """Return the probability of each class for each row; `sample_domain` has no effect."""
        check_is_fitted(self)
        shares: Features = self.estimator_.predict_proba(validate_data(self, X, reset=False))
        return shares
