"""`--method paper`: the method as in its paper, with the origin of each value.

"Published" values are those in the CVPR 2017 paper. We chose those it leaves open. What is not listed here (learning
rates, their schedule, momentum, steps, batches, λ) is not in the paper either, and is as for every other method.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from ..methods.options import flag
from .config import LAYERS, RunConfig

PAPER = "paper"
"""The method name that stands for the values below."""

NORM = 40
"""Approximate norm of raw fc7 features, which the published σ1 and σ2 suit: they multiply its 4th and 2nd power."""

_FC7 = ("alexnet", "vgg16")
_WITH_RELU = (*_FC7, "small-cnn")


@dataclass(frozen=True)
class PaperValue:
    """The value of an option in the paper.

    Attributes:
        name: The option.
        value: Returns its value, which may depend on the network.
        published: Whether the paper gives it.
        why: What the paper says, or why we chose it.
    """

    name: str
    value: Callable[[RunConfig], Any]
    published: bool
    why: str


PAPER_VALUES = (
    PaperValue("method", lambda _: "so", True, "Eq. 5: scatters of order 2 and means of each class are aligned"),
    PaperValue("streams", lambda _: "separate", True, "one network per domain, fused at the classifier"),
    PaperValue(
        "heads",
        lambda config: "coupled" if config.backbone == "vgg16" else "shared",
        True,
        "one universal classifier; for VGG streams a coupled pair, by a footnote to Eq. 5 (β' is not published)",
    ),
    PaperValue(
        "trains",
        lambda _: None,  # meaning `paper` for a network with trained weights
        True,
        "the fully connected and the last two convolutional layers learn; from scratch the whole network trains",
    ),
    PaperValue("keep", lambda _: LAYERS, True, "the results are those of trained layers, whatever held-out labels say"),
    PaperValue("augment", lambda _: False, True, "the paper's results use no data augmentation"),
    PaperValue("estimator", lambda _: "plugin", True, "Eq. 1: scatters are plain averages"),
    PaperValue("feature_scale", lambda _: "none", True, "features are aligned unscaled"),
    PaperValue("target_weight", lambda _: None, True, "one loss over the union of both domains' images"),
    PaperValue(
        "sigma1",
        lambda _: 1.6e-8,
        False,
        "the value used is not published; this is the logarithmic midpoint of 5e-9 to 5e-8, where the paper found "
        "stable results",
    ),
    PaperValue(
        "sigma2",
        lambda _: 7e-6,
        False,
        "the value used is not published; this is the logarithmic midpoint of 1e-6 to 5e-5, where the paper found "
        "stable results",
    ),
    PaperValue(
        "tap",
        lambda config: "after-relu" if config.backbone in _WITH_RELU else None,
        False,
        "not stated explicitly; Eq. 5 classifies the same features it aligns, and those follow the ReLU",
    ),
    PaperValue(
        "dropout",
        lambda _: "everywhere",
        False,
        "not published; the networks are used as pre-trained, with dropout after fc6 and fc7",
    ),
    PaperValue("norm_bound", lambda _: None, False, "τ and its enforcement are not published; needed if λ is low"),
    PaperValue("optimizer", lambda _: "sgd", False, "published as gradient descent, without momentum and rates"),
)
"""What `--method paper` stands for."""


def is_paper(config: RunConfig) -> bool:
    """Tell whether a configuration asks for the paper's values.

    >>> is_paper(RunConfig(method="Paper")), is_paper(RunConfig())
    (True, False)
    """
    return config.method.strip().lower() == PAPER


def resolve_paper(config: RunConfig, given: Collection[str] | None = None) -> RunConfig:
    """Fill in the paper's values for options not given; other configurations are returned unchanged.

    Args:
        config: The configuration.
        given: Names of the options that were given and take precedence; None for those that differ from the defaults.

    Example:
        >>> found = resolve_paper(RunConfig(method="paper", sigma2=1e-5))
        >>> found.method, found.streams, found.sigma1, found.sigma2
        ('so', 'separate', 1.6e-08, 1e-05)
    """
    if not is_paper(config):
        return config
    kept = set(config.changed() if given is None else given) - {"method"}
    return replace(config, **{one.name: one.value(config) for one in PAPER_VALUES if one.name not in kept})


def explain_paper(config: RunConfig) -> str:
    """Say in one line what the method `paper` resolved to.

    Args:
        config: The configuration that `resolve_paper` returned.

    Example:
        >>> explain_paper(resolve_paper(RunConfig(method="paper", backbone="alexnet")))
        'method paper stands for --method so --streams separate --heads shared --keep layers --estimator plugin
        --feature-scale none --sigma1 1.6e-08 --sigma2 7e-06 --tap after-relu --dropout everywhere --optimizer sgd'
    """
    values = {one.name: getattr(config, one.name) for one in PAPER_VALUES}
    words = [f"{flag(name)} {_text(value)}" for name, value in values.items() if value not in (None, False, True)]
    words += [flag(name) for name, value in values.items() if value is True]
    as_published = resolve_paper(replace(config, method=PAPER), ())
    fits = config.backbone in _FC7 or (config.sigma1 != as_published.sigma1 and config.sigma2 != as_published.sigma2)
    caution = (
        ""
        if fits
        else f"; the paper's σ1 and σ2 suit raw features of norm about {NORM}, such as fc7 of AlexNet; "
        f"{config.backbone} may need others"
    )
    return f"method {PAPER} stands for {' '.join(words)}{caution}"


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
