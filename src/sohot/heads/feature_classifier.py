"""How a fitted classifier of features handles new rows, however it was fitted."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import log_softmax, softmax  # type: ignore[import-untyped]
from sklearn.base import (  # type: ignore[import-untyped]
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.metrics import accuracy_score  # type: ignore[import-untyped]
from sklearn.utils.metadata_routing import UNUSED  # type: ignore[import-untyped]
from sklearn.utils.validation import _num_samples, check_is_fitted  # type: ignore[import-untyped]

from .domains import (
    UNLABELLED,
    DomainRows,
    Features,
    Labels,
    TargetStream,
    divide,
    pair,
    read_domains,
    read_labelled,
    read_table,
    read_target_labels,
)
from .result import StackedFit

Routed = dict[str, Any]


class FeatureClassifier(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of features with a stream for each domain.

    With scikit-learn's metadata routing enabled, `sample_domain` reaches all methods without an explicit request.
    """

    __metadata_request__fit: ClassVar[Routed] = {"sample_domain": True, "X_target": UNUSED, "y_target": UNUSED}
    __metadata_request__predict: ClassVar[Routed] = {"sample_domain": True}
    __metadata_request__predict_proba: ClassVar[Routed] = {"sample_domain": True}
    __metadata_request__predict_log_proba: ClassVar[Routed] = {"sample_domain": True}
    __metadata_request__decision_function: ClassVar[Routed] = {"sample_domain": True}
    __metadata_request__transform: ClassVar[Routed] = {"sample_domain": True}
    __metadata_request__score: ClassVar[Routed] = {"sample_domain": True, "allow_source": UNUSED}

    classes_: Labels
    fit_: StackedFit
    target_stream_: TargetStream | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _read(self, X: Any, y: Any, sample_domain: Any, X_target: Any, y_target: Any) -> DomainRows:  # noqa: N803
        """Check the arguments of `fit` and learn the columns."""
        x, labels = read_labelled(self, X, y)
        self.target_stream_ = None
        if X_target is None:
            if y_target is not None:
                raise ValueError("y_target was given without X_target")
            return divide(x, labels, sample_domain)
        if sample_domain is not None:
            raise ValueError("pass either sample_domain, or X_target and y_target, not both")
        stream = TargetStream()
        target = read_table(stream, X_target, reset=True)
        if target.shape[1] != x.shape[1]:
            self.target_stream_ = stream
        else:
            read_table(self, X_target, reset=False)  # the same columns, by name too
        return pair(x, labels, target, read_target_labels(y_target, target))

    def fit_transform(self, X: Any, y: Any, sample_domain: Any = None) -> Features:  # noqa: N803
        """Fit, and transform the same rows, each through the stream of its domain."""
        moved: Features = self.fit(X, y, sample_domain=sample_domain).transform(X, sample_domain=sample_domain)
        return moved

    def predict(self, X: Any, sample_domain: Any = None) -> Labels:  # noqa: N803
        """Return the class of each row.

        Args:
            X: Features (rows, features).
            sample_domain: Positive for source rows, negative for target rows; None if all are target rows.
        """
        numbers = self._logits(X, sample_domain).argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    def predict_proba(self, X: Any, sample_domain: Any = None) -> Features:  # noqa: N803
        """Return the probability of each class for each row, in the order of `classes_`; see `predict`."""
        shares: Features = softmax(self._logits(X, sample_domain), axis=1)
        return shares

    def predict_log_proba(self, X: Any, sample_domain: Any = None) -> Features:  # noqa: N803
        """Return the logarithm of `predict_proba`."""
        shares: Features = log_softmax(self._logits(X, sample_domain), axis=1)
        return shares

    def decision_function(self, X: Any, sample_domain: Any = None) -> Features:  # noqa: N803
        """Return the logit of each class; for two classes, of the second against the first. See `predict`."""
        logits = self._logits(X, sample_domain)
        return logits if len(self.classes_) > 2 else logits[:, 1] - logits[:, 0]

    def transform(self, X: Any, sample_domain: Any = None) -> Features:  # noqa: N803
        """Return the aligned features: the output of each row's stream. See `predict`."""
        return self._run(X, sample_domain, StackedFit.transform)

    def score(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any = None,
        sample_domain: Any = None,
        *,
        allow_source: bool = True,  # noqa: ARG002
    ) -> float:
        """Return the share of rows classified correctly.

        Args:
            X: Features (rows, features).
            y: Their labels.
            sample_weight: Weight of each row.
            sample_domain: As in `predict`.
            allow_source: Passed by skada's scorers; source rows are always allowed here.
        """
        return float(accuracy_score(y, self.predict(X, sample_domain), sample_weight=sample_weight))

    def _logits(self, X: Any, sample_domain: Any) -> Features:  # noqa: N803
        return self._run(X, sample_domain, StackedFit.predict_logits)

    def _run(self, X: Any, sample_domain: Any, what: Callable[..., torch.Tensor]) -> Features:  # noqa: N803
        """Check rows and send each through the stream of its domain."""
        check_is_fitted(self, "fit_")
        return self._send(*self._rows(X, sample_domain), what)

    def _transduce(self, rows: DomainRows) -> Labels:
        """Return the label of every row that was given: its own, or for a row of the pool the predicted one."""
        numbers = rows.given.copy()
        if len(rows.pool):
            logits = self._send(rows.pool, np.zeros(len(rows.pool), dtype=bool), StackedFit.predict_logits)
            numbers[numbers == UNLABELLED] = logits.argmax(axis=1)
        return np.asarray(rows.classes[numbers])

    def _send(self, x: Features, is_source: npt.NDArray[np.bool_], what: Callable[..., torch.Tensor]) -> Features:
        """Send each row through the stream of its domain."""
        wide = torch.from_numpy(x.astype(np.float64))  # a copy: torch would warn about read-only memory
        if "source" not in self.fit_.preparations:  # trained on one domain, whose stream serves all rows
            is_source = np.zeros(len(x), dtype=bool)
        parts = {"source": np.flatnonzero(is_source), "target": np.flatnonzero(~is_source)}
        found = {domain: what(self.fit_, wide[rows], domain).numpy() for domain, rows in parts.items() if len(rows)}
        together = np.empty((len(x), next(iter(found.values())).shape[1]))
        for domain, own in found.items():
            together[parts[domain]] = own
        return together.astype(x.dtype, copy=False)

    def _rows(self, X: Any, sample_domain: Any) -> tuple[Features, npt.NDArray[np.bool_]]:  # noqa: N803
        """Check rows; if the domains have different features, against those of the rows' domain."""
        if self.target_stream_ is None:
            x = read_table(self, X, reset=False)
            domains = read_domains(sample_domain, len(x))
        else:
            domains = None if sample_domain is None else read_domains(sample_domain, _num_samples(X))
            all_source = domains is not None and bool((domains > 0).all())
            if domains is not None and not all_source and (domains > 0).any():
                raise ValueError("the domains have different features: pass rows of one domain at a time")
            x = read_table(self if all_source else self.target_stream_, X, reset=False)
        return x, np.zeros(len(x), dtype=bool) if domains is None else domains > 0

    @property
    def _n_features_out(self) -> int:
        return self.fit_.shape.size
