"""`TargetSplit`: cross-validation on the target, for scikit-learn."""

# ruff: noqa: N803, N806 - scikit-learn calls a table X
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse  # type: ignore[import-untyped]
from sklearn.model_selection import BaseCrossValidator  # type: ignore[import-untyped]
from sklearn.utils import _safe_indexing, indexable  # type: ignore[import-untyped]

from ..functional.plain_checks import check_count
from ..selection.folds import MOST_FOLDS, Fold, deal
from .domains import read_domains, unlabelled

Indices = npt.NDArray[np.intp]


class TargetSplit(BaseCrossValidator):  # type: ignore[misc]
    """Splits rows into folds that test on labelled target rows alone; source rows and unlabelled rows always train.

    For `cv` of scikit-learn's `cross_validate`, `cross_val_score` and `GridSearchCV`. Each labelled target row tests
    once, but for classes that have a single one, which always train. Equal rows share a fold, and folds do not depend
    on the order of the rows.

    With metadata routing switched on, `sample_domain` reaches it as it reaches the classifier. Otherwise give it as
    `groups`, too: `cross_validate(model, X, y, groups=d, params={"sample_domain": d}, cv=TargetSplit())`.

    Args:
        n_splits: Most folds; there are fewer if no class has so many labelled target rows.

    Example:
        >>> X, y = np.arange(8.0).reshape(8, 1), [0, 1, 0, 1, 0, 1, 0, -1]
        >>> for train, test in TargetSplit().split(X, y, sample_domain=[1, 1, -1, -1, -1, -1, -1, -1]):
        ...     print(test, y[test[0]], len(train))
        [2 3] 0 6
        [4 5] 0 6
        [6] 0 7
    """

    __metadata_request__split: ClassVar[dict[str, Any]] = {"sample_domain": True}

    def __init__(self, n_splits: int = MOST_FOLDS) -> None:
        self.n_splits = n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None, sample_domain: Any = None
    ) -> Iterator[tuple[Indices, Indices]]:
        """Yield the rows that train and the rows that test, fold by fold.

        Args:
            X: Rows of both domains.
            y: Their labels; −1 marks a target row without one.
            groups: Another name for `sample_domain`: the only one that scikit-learn passes without metadata routing.
            sample_domain: Positive for a source row, negative for a target row.

        Raises:
            ValueError: Domains or labels are missing, or no class has two labelled target rows.
        """
        known, folds = self._folds(X, y, groups if sample_domain is None else sample_domain)
        for fold in folds:
            test = known[fold.held]
            yield np.setdiff1d(np.arange(len(y)), test), test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, sample_domain: Any = None) -> int:
        """Return the number of folds; the most there may be, if the rows are not given."""
        domains = groups if sample_domain is None else sample_domain
        return self.n_splits if X is None else len(self._folds(X, y, domains)[1])

    def _folds(self, X: Any, y: Any, sample_domain: Any) -> tuple[Indices, list[Fold]]:
        """Return the labelled target rows, and folds of these."""
        check_count(self.n_splits, "n_splits", 2)
        if y is None or sample_domain is None:
            raise ValueError(
                "TargetSplit needs y and sample_domain; without metadata routing give the domains as groups, too: "
                "groups=sample_domain"
            )
        X, y = indexable(X, y)
        labels, domains = np.asarray(y), read_domains(sample_domain, len(y))
        assert domains is not None
        known = np.flatnonzero((domains < 0) & ~unlabelled(labels))
        _, numbers = np.unique(labels[known], return_inverse=True)
        chosen = _safe_indexing(X, known)
        rows = chosen.toarray() if issparse(chosen) else np.asarray(chosen)
        keys = [repr(row.tolist()) for row in rows]
        return known, deal(numbers.tolist(), keys, folds=self.n_splits, order=lambda shot: keys[shot[0]])
