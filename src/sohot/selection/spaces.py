"""The default search spaces for images and for features: plain data, without torch."""

from collections.abc import Mapping
from typing import Any

from ..methods.registry import method as find_method
from ..methods.settings import FitSettings

HEAD = "head"
"""Name of the candidate that trains no layers: a classifier on the features of a pre-trained network."""

AUTO_CANDIDATES: dict[str, dict[str, Any]] = {
    HEAD: {"trains": "head", "method": "s+t"},
    "s+t": {"method": "s+t"},
    "means": {"method": "means", "lr": 0.01, "steps": 200},
    "m": {"method": "m", "lr": 0.01, "steps": 200},
    "so": {"method": "so", "lr": 0.01, "steps": 200},
}
"""Candidates of `--method auto` by name, with options of `sohot fit`. The first is taken where labels cannot tell: it
trains least. Networks without pre-trained weights start with the second."""


CLASSIFIER_GRIDS: list[dict[str, list[Any]]] = [
    {"method": ["s+t"], "head_decay": [0.03, 0.01, 0.1], "target_weight": [0.5, 0.7, 0.85]}
]
"""Candidates of `SoHoTClassifierCV`: nine settings of the classifier. Alignments on frozen features are not among them:
on development data none did better than the classifier they start from (docs/results/choosing.md)."""

_IMAGE_SIGMAS, _FEATURE_SIGMAS = [0.01, 0.03, 0.1, 0.3, 1.0], [0.01, 0.1, 1.0]
_IMAGE_RATES: dict[str, list[Any]] = {"lr": [3e-4, 1e-3, 3e-3, 1e-2]}
_FEATURE_RATES: dict[str, list[Any]] = {"lr": [1e-3, 3e-3]}
_SHARES: dict[str, list[Any]] = {"target_weight": [0.5, 0.7]}


def image_space(name: str, settings: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the default search space of `--select` for a method on images.

    Without alignment the training length matters as much as the learning rate, because nothing else keeps the network
    from overfitting; it never exceeds what the grid allows. The orders stay those in the method's name. Other methods
    search the one number specific to them, as on features.

    >>> image_space("s+t", {"steps": 100})["steps"], list(image_space("so", {}))
    ([100, 50, 25], ['sigma1', 'sigma2', 'lr'])
    >>> list(image_space("means", {})), image_space("supcon", {})["loss_weight"]
    (['sigma2', 'lr'], [0.1, None, 10.0])
    """
    method = find_method(name)
    if method.aligns:
        return {"sigma1": _IMAGE_SIGMAS, "sigma2": _IMAGE_SIGMAS, **_IMAGE_RATES}
    if method.search:
        return {**{option: list(values) for option, values in method.search.items()}, **_IMAGE_RATES}
    length = "epochs" if "epochs" in settings else "steps"
    most = settings.get(length, FitSettings().steps)
    return {**_IMAGE_RATES, length: list(dict.fromkeys(max(1, most // share) for share in (1, 2, 4)))}


def feature_space(name: str) -> dict[str, list[Any]]:
    """Return the default search space of `--select` on features: twelve settings if the method uses both domains.

    >>> feature_space("ccsa")["lr"], feature_space("lp-ft")["head_first"]
    ([0.001, 0.003], [0.25, None, 0.75])
    """
    method = find_method(name)
    if method.search:
        return {**{option: list(values) for option, values in method.search.items()}, **_FEATURE_RATES, **_SHARES}
    if method.aligns:
        return {"sigma1": _FEATURE_SIGMAS, "sigma2": [0.1, 1.0], **_SHARES}
    return {"head_decay": [0.01, 0.03, 0.1], "target_weight": [0.5, 0.7, 0.85]}
