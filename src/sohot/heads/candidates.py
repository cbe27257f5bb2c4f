"""Settings to choose among: their product, without what a method does not look at, the simplest first."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sklearn.base import clone  # type: ignore[import-untyped]
from sklearn.model_selection import ParameterGrid  # type: ignore[import-untyped]

from ..methods.registry import method as find_method
from ..methods.settings import HeadSettings
from .classifier import SoHoTClassifier

Grid = Mapping[str, Sequence[Any]]

_PAIRS = [(0.01, 0.01), (0.1, 0.01), (0.01, 0.1), (0.1, 0.1), (1.0, 0.1), (0.1, 1.0), (1.0, 1.0)]


def _sigmas(pairs: Iterable[tuple[float, float]], **others: Any) -> list[dict[str, list[Any]]]:
    return [{"sigma1": [one], "sigma2": [two], **{name: [x] for name, x in others.items()}} for one, two in pairs]


_STRONG = 5e-2  # ten times the default: a plain baseline that alignment has to beat
_EQUAL = [(0.01, 0.01), (0.1, 0.1), (1.0, 1.0)]

DEFAULT: list[dict[str, list[Any]]] = [
    {"method": ["s+t"], "streams": ["shared", "separate"]},
    {"method": ["s+t"], "head_decay": [_STRONG]},
    *_sigmas(_EQUAL, method="m"),
    *_sigmas(_PAIRS, method="so"),
    *_sigmas([(0.1, 0.1), (1.0, 0.1)], method="so", head_decay=_STRONG),
    *_sigmas(_EQUAL, method="so", streams="separate"),
    *_sigmas(_EQUAL, method="so", estimator="unbiased"),
    *_sigmas(_EQUAL, method="so+zeta"),
    *_sigmas(_EQUAL, method="so+to+fo+zeta"),
]
"""What is chosen among where nothing is said: 27 settings of 5 methods."""

_DEFAULTS = SoHoTClassifier().get_params()


class Candidate(NamedTuple):
    """One setting: the parameters that were named and matter, and the whole."""

    params: dict[str, Any]
    settings: HeadSettings
    estimator: SoHoTClassifier

    @property
    def separate(self) -> bool:
        """Whether domains with features of their own can be given."""
        return self.settings.streams == "separate" or not self.settings.resolved_method().uses_source

    @property
    def simplicity(self) -> tuple[float, ...]:
        """Order in which equals are preferred: nothing aligned, other methods, whole domains, fewer orders, …."""
        method = self.settings.resolved_method()
        return (
            method.aligns,
            not (method.aligns or method.is_plain),
            method.aligns and method.scope == "class",
            len(method.orders),
            method.class_weights is not None,
            self.settings.streams == "separate",
            self.settings.hidden or 0,
            self.settings.estimator != "plugin",
            (sum(self.settings.sigmas()) + self.settings.sigma2) if method.aligns else 0,
        )


def make_candidates(base: SoHoTClassifier, grid: Grid | Sequence[Grid] | None) -> list[Candidate]:
    """Spell the candidates out.

    Args:
        base: Gives the parameters that the grid does not name.
        grid: Lists of values by parameter, or several such dicts; None for `DEFAULT`.

    Returns:
        Each setting once, the simplest first. What a method does not look at is left at its default.

    Example:
        >>> grid = {"method": ["s+t", "so"], "sigma1": [0.1, 1.0]}
        >>> [candidate.params for candidate in make_candidates(SoHoTClassifier(), grid)]
        [{'method': 's+t'}, {'method': 'so', 'sigma1': 0.1}, {'method': 'so', 'sigma1': 1.0}]
    """
    known = base.get_params(deep=False)
    given: Grid | Sequence[Grid] = DEFAULT if grid is None else grid
    grids = [given] if isinstance(given, Mapping) else list(given)
    for name in (name for one in grids for name in one):
        if name not in known or name in ("device", "random_state"):
            raise ValueError(f"candidates name {name!r}, which is no parameter of SoHoTClassifier to choose")
    seed = base.settings().seed  # drawn once, so that candidates differ in what was named alone
    found: dict[HeadSettings, Candidate] = {}
    for params in ParameterGrid(grids):
        name = params.get("method", base.method)
        ignored = find_method(name).ignored(on_features=True)
        kept = {key: value for key, value in params.items() if key not in ignored}
        estimator = clone(base).set_params(**{key: _DEFAULTS[key] for key in ignored}, **kept, random_state=seed)
        settings = estimator.settings()
        found.setdefault(settings, Candidate(kept, settings, estimator))
    if not found:
        raise ValueError("candidates are empty: there is nothing to choose among")
    return sorted(found.values(), key=lambda one: one.simplicity)
