"""scikit-learn's own checks of an estimator, one test each."""

from functools import partial
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator


def every_check(estimator: Any) -> Any:
    """Give a parametrize mark with all checks; scikit-learn's own hands pytest a generator, which pytest warns of."""
    checks = list(estimator_checks_generator(estimator))
    return pytest.mark.parametrize(("estimator", "check"), checks, ids=[_name(check) for _, check in checks])


def _name(check: Any) -> str:
    words = dict(check.keywords) if isinstance(check, partial) else {}
    while isinstance(check, partial):
        check = check.func
    return "-".join([check.__name__, *(f"{name}={value}" for name, value in words.items())])
