"""Tables of features of two domains: which rows are source, which are target, and which of them have a label."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse  # type: ignore[import-untyped]
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils import column_or_1d  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import check_consistent_length, validate_data  # type: ignore[import-untyped]

Features = npt.NDArray[np.floating[Any]]
Labels = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

UNLABELLED = -1
"""The label that marks an unlabelled target row."""

DENSE_LIMIT = 2**28
"""Most numbers in a sparse table that is made dense: 2 GB."""

_FORM: dict[str, Any] = {"accept_sparse": ("csr", "csc", "coo"), "dtype": (np.float64, np.float32)}


class TargetStream(BaseEstimator):  # type: ignore[misc]
    """Remembers the columns of a separate target table, as an estimator remembers those of X."""


def read_table(estimator: BaseEstimator, table: Any, *, reset: bool) -> Features:
    """Check a table of features and make it dense; `reset` learns its columns, else they must match."""
    _refuse_complex(table, "X")
    return _dense(validate_data(estimator, table, reset=reset, **_FORM))


def read_labelled(estimator: BaseEstimator, table: Any, labels: Any) -> tuple[Features, Labels]:
    """Check a table of features and its labels, and learn its columns."""
    _refuse_complex(table, "X")
    _refuse_complex(labels, "y")
    x, y = validate_data(estimator, table, labels, **_FORM)
    return _dense(x), np.asarray(y)


def read_target_labels(labels: Any, table: Features) -> Labels:
    """Check the labels of a separate target table; None if it has no labels."""
    if labels is None:
        return np.full(len(table), UNLABELLED)
    _refuse_complex(labels, "y_target")
    y: Labels = np.asarray(column_or_1d(labels))
    check_consistent_length(table, y)
    return y


def _refuse_complex(table: Any, name: str) -> None:
    """Say it in one sentence; scikit-learn would print the whole table, or fail to convert a list."""
    if np.iscomplexobj(table if hasattr(table, "dtype") else np.asarray(table)):
        raise ValueError(f"Complex data not supported: {name} holds complex numbers, real ones are needed")


def _dense(x: Any) -> Features:
    if not issparse(x):
        table: Features = x
        return table
    if x.shape[0] * x.shape[1] > DENSE_LIMIT:
        raise ValueError(
            f"X is a sparse matrix of {x.shape[0]} × {x.shape[1]} numbers, too large to make dense: "
            "reduce its features first, for example with sklearn.decomposition.TruncatedSVD"
        )
    dense: Features = x.toarray()
    return dense


@dataclass(frozen=True)
class DomainRows:
    """The training rows of an estimator: labelled rows of each domain, with classes as numbers, and the pool.

    If no domains are given, all rows are source rows and the target is empty.

    Attributes:
        source: Source rows (n, d); none if only a target was given.
        source_labels: Their classes, as indices into `classes`.
        target: Labelled target rows (m, d'); none if there is no target or it has no labels.
        target_labels: Their classes.
        classes: The classes of the labelled rows, sorted.
        source_ids: Ids of the source domains, which are pooled.
        pool: Target rows without a label.
        given: The class of each row that was given, in its place, −1 for the pool; two tables one below the other.
        has_target: Whether target rows were given, with labels or without.
    """

    source: Features
    source_labels: npt.NDArray[np.int64]
    target: Features
    target_labels: npt.NDArray[np.int64]
    classes: Labels
    source_ids: tuple[int, ...]
    pool: Features
    given: npt.NDArray[np.int64]
    has_target: bool

    @property
    def one_domain(self) -> bool:
        """Whether all training rows belong to one domain."""
        return not len(self.source) or not len(self.target)


def read_domains(sample_domain: Any, rows: int) -> npt.NDArray[np.int64] | None:
    """Check `sample_domain`: one non-zero integer per row, or one for all rows.

    >>> read_domains([1, 1, -2], rows=3)
    array([ 1,  1, -2])
    >>> read_domains(-1, rows=2)
    array([-1, -1])
    """
    if sample_domain is None:
        return None
    if np.ndim(sample_domain) == 0:
        sample_domain = np.full(rows, sample_domain)
    _refuse_complex(sample_domain, "sample_domain")
    values: npt.NDArray[Any] = np.asarray(column_or_1d(sample_domain))
    if (
        not np.issubdtype(values.dtype, np.number)
        or not np.isfinite(values).all()
        or np.any(values != np.round(values))
    ):
        raise ValueError("sample_domain must hold integers: positive for a source, negative for a target")
    if len(values) != rows:
        raise ValueError(f"sample_domain must hold one integer for each of {rows} rows, got {len(values)}")
    if not np.all(values):
        raise ValueError("sample_domain must be positive for a source and negative for a target, got 0")
    return values.astype(np.int64)


def divide(x: Features, y: Labels, sample_domain: Any) -> DomainRows:
    """Split the rows of one table by domain."""
    domains = read_domains(sample_domain, len(x))
    if domains is None:
        return _number(x, y, x[:0], y[:0], (), has_target=False)
    is_source: Mask = domains > 0
    ids = tuple(int(one) for one in np.unique(domains[is_source]))
    found = _number(x[is_source], y[is_source], x[~is_source], y[~is_source], ids, has_target=not is_source.all())
    given = np.empty(len(x), dtype=np.int64)
    given[is_source], given[~is_source] = np.split(found.given, [len(found.source)])
    return replace(found, given=given)


def pair(source: Features, source_labels: Labels, target: Features, target_labels: Labels) -> DomainRows:
    """Combine two tables, one for each domain."""
    return _number(source, source_labels, target, target_labels, (1,), has_target=True)


def _number(
    source: Features,
    source_labels: Labels,
    target: Features,
    target_labels: Labels,
    ids: tuple[int, ...],
    *,
    has_target: bool,
) -> DomainRows:
    """Set unlabelled target rows apart and turn classes into numbers."""
    if has_target and unlabelled(source_labels).any():
        raise ValueError(
            f"y holds {UNLABELLED} for source rows, but {UNLABELLED} marks a target row without a label: "
            "rename that class"
        )
    known = ~unlabelled(target_labels) if has_target else np.ones(len(target), dtype=bool)
    together = _join(source_labels, target_labels[known])
    if not len(together):
        raise ValueError("y has no labels: every row is an unlabelled target row")
    check_classification_targets(together)
    classes, numbers = np.unique(together, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds only one class ({classes[0]!r}): a classifier needs more than 1 class")
    numbers = numbers.astype(np.int64)
    given = np.full(len(source) + len(target), UNLABELLED, dtype=np.int64)
    given[np.concatenate([np.ones(len(source), dtype=bool), known])] = numbers
    return DomainRows(
        source=source,
        source_labels=numbers[: len(source)],
        target=target[known],
        target_labels=numbers[len(source) :],
        classes=classes,
        source_ids=ids,
        pool=target[~known],
        given=given,
        has_target=has_target,
    )


def unlabelled(y: Labels) -> Mask:
    """Find the labels that mean "unlabelled": −1, None, and "-1", to which numpy converts −1 among strings.

    >>> unlabelled(np.array(["mug", -1]))
    array([False,  True])
    """
    if np.issubdtype(y.dtype, np.number):
        return np.asarray(y == UNLABELLED)
    return np.array([one is None or one == UNLABELLED or one == str(UNLABELLED) for one in y.tolist()], dtype=bool)


def _join(source: Labels, target: Labels) -> Labels:
    """Join the labels of both domains into one array of one type."""
    if not len(source) or not len(target):
        return source if len(source) else target
    if np.issubdtype(source.dtype, np.number) != np.issubdtype(target.dtype, np.number):
        raise ValueError(f"source and target labels have different types: {source[0]!r} and {target[0]!r}")
    return np.concatenate([source, target])
