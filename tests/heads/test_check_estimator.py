"""scikit-learn's own checks, all of them."""

from estimator_checks import every_check

from sohot import SoHoTClassifier


@every_check(SoHoTClassifier(steps=30))
def test_scikit_learn_is_content(estimator: SoHoTClassifier, check: object) -> None:
    check(estimator)  # type: ignore[operator]
