"""Tables of features as scikit-learn's users bring them: arrays, frames, sparse matrices."""

from typing import Any

import numpy as np
from scipy.sparse import issparse  # type: ignore[import-untyped]
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils import column_or_1d  # type: ignore[import-untyped]
from sklearn.utils.validation import check_consistent_length, validate_data  # type: ignore[import-untyped]

from .domains import UNLABELLED, Features, Labels

DENSE_LIMIT = 2**28
"""Most numbers that a sparse table may have when it is made dense: 2 GB of them."""

_FORM: dict[str, Any] = {"accept_sparse": ("csr", "csc", "coo"), "dtype": (np.float64, np.float32)}


class TargetStream(BaseEstimator):  # type: ignore[misc]
    """Remembers the columns of a target's own table, as an estimator remembers those of X."""


def read_table(estimator: BaseEstimator, table: Any, *, reset: bool) -> Features:
    """Check a table of features and make it dense; `reset` to learn its columns, else they must be the known ones."""
    return _dense(validate_data(estimator, table, reset=reset, **_FORM))


def read_labelled(estimator: BaseEstimator, table: Any, labels: Any) -> tuple[Features, Labels]:
    """Check a table of features and its labels, and learn its columns."""
    x, y = validate_data(estimator, table, labels, **_FORM)
    return _dense(x), np.asarray(y)


def read_target_labels(labels: Any, table: Features) -> Labels:
    """Check the labels of a target's own table; None where it has none at all."""
    if labels is None:
        return np.full(len(table), UNLABELLED)
    y: Labels = np.asarray(column_or_1d(labels))
    check_consistent_length(table, y)
    return y


def _dense(x: Any) -> Features:
    if not issparse(x):
        table: Features = x
        return table
    if x.shape[0] * x.shape[1] > DENSE_LIMIT:
        raise ValueError(
            f"X is sparse and has {x.shape[0]} × {x.shape[1]} numbers, too many to make dense: "
            "bring it to fewer features first, by sklearn.decomposition.TruncatedSVD for example"
        )
    dense: Features = x.toarray()
    return dense
