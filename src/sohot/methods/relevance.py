"""Which settings a method looks at when it trains on features; without torch."""

from .registry import method as find_method
from .settings import RIVAL_NUMBERS, RIVALS_LOOK_AT

_ALIGNS = ("orders", "sigma1", "sigma2", "estimator", "feature_scale")
_ZETA = ("alpha1", "alpha2", "zeta_learning_rate")
_TWO_DOMAINS = ("streams", "heads", "coupling", "target_weight")


def ignored_by(name: str) -> tuple[str, ...]:
    """Name the settings that a method does not look at.

    >>> "sigma1" in ignored_by("s+t"), "alpha1" in ignored_by("so"), "streams" in ignored_by("so")
    (True, True, False)
    >>> "margin" in ignored_by("ccsa"), "margin" in ignored_by("so"), "sigma2" in ignored_by("means")
    (False, True, False)
    """
    method = find_method(name)
    of_rival = RIVALS_LOOK_AT.get(method.rival or "", ())
    return (
        *(one for one in _ALIGNS if not method.aligns and one not in of_rival),
        *(one for one in RIVAL_NUMBERS if one not in of_rival),
        *(() if method.class_weights else _ZETA),
        *(() if method.uses_source and method.uses_target else _TWO_DOMAINS),
    )
