"""One record per way to learn from unlabelled target images (the pool), named by the option `pool_loss`.

A new one needs a record here and, for a new term, a function in `sohot.functional.unlabelled` and a line in
`sohot.training.pool_terms`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

PRIORS = ("estimated", "uniform", "none")
"""Class shares that the pool's labels are moved toward: estimated from the predictions, equal, or not moved."""

PSEUDO, INFORMATION, ENTROPY = "pseudo_labels", "information", "entropy"
CONFUSION = "class_confusion"
"""Names of the terms, as logged."""


@dataclass(frozen=True)
class PoolRecipe:
    """How a training learns from unlabelled target images.

    Attributes:
        name: Its name.
        label: What it does, in the few words that fit in a table.
        terms: Its losses, by name, with their weights.
        view: The view of the pool images that the model learns from: "strong" or "weak".
        threshold: Least confidence of a pseudo-label: a multiple of the mean confidence on source rows, or if `fixed`
            a probability.
        fixed: Whether the threshold is a probability.
        prior: What the shares of the pseudo-labels are moved toward.
        neighbours: How many of the most similar pool images have a say in a pseudo-label.
        teacher: Weight of the past in the running average of the weights that gives the pseudo-labels: 0 for the
            weights themselves.
        tested: Weight of the past in the running average that is tested; None for the teacher.
        ramp_up: Share of the steps over which the weight of the terms rises from 0.
    """

    name: str
    label: str
    terms: Mapping[str, float] = field(default_factory=dict)
    view: str = "strong"
    threshold: float = 0.9
    fixed: bool = False
    prior: str = "estimated"
    neighbours: int = 0
    teacher: float = 0.99
    tested: float | None = None
    ramp_up: float = 0.5


_LONG = 0.99  # FixMatch and AdaMatch test an average with 0.999 after 10⁵ steps and more; hundreds would not reach it
# AdaMatch's way, with neighbours: docs/results/unlabelled.md says how it was chosen.
_USUAL = PoolRecipe(
    *("pseudo", "pseudo-labels", {PSEUDO: 1.0}),
    threshold=0.8,
    prior="uniform",
    neighbours=5,
    teacher=0.0,
    tested=_LONG,
)

OWN_RECIPES = (
    _USUAL,
    replace(
        _USUAL,
        name="pseudo+im",
        label="pseudo-labels and information",
        terms={PSEUDO: 1.0, INFORMATION: 0.3},
    ),
)
"""Recipes that are no method of their own."""

PUBLISHED_RECIPES = (
    # Krause et al., NIPS 2010; Liang et al. (SHOT), ICML 2020. Weight, prior and ramp-up are ours.
    PoolRecipe("im", "information maximisation", {INFORMATION: 0.3}, view="weak"),
    # Grandvalet and Bengio, NIPS 2004; weight of Saito et al., ICCV 2019, who call it ENT.
    PoolRecipe("entropy", "entropy minimisation", {ENTROPY: 0.1}, view="weak", teacher=0.0, ramp_up=0.0),
    # Jin et al., ECCV 2020: weight 1; T is `functional.unlabelled.CONFUSION_TEMPERATURE`.
    PoolRecipe("mcc", "minimum class confusion", {CONFUSION: 1.0}, view="weak", teacher=0.0, ramp_up=0.0),
    # Sohn et al., NeurIPS 2020: threshold and weight.
    PoolRecipe(
        *("fixmatch", "FixMatch", {PSEUDO: 1.0}),
        threshold=0.95,
        fixed=True,
        prior="none",
        teacher=0.0,
        tested=_LONG,
        ramp_up=0.0,
    ),
    # Berthelot et al., ICLR 2022: threshold, weight and ramp-up. Its prior is the mean prediction for source rows; in
    # batches with as many rows of each class this is the uniform one.
    PoolRecipe("adamatch", "AdaMatch", {PSEUDO: 1.0}, prior="uniform", teacher=0.0, tested=_LONG),
)
"""Recipes from other papers; each is also a method: `s+t` with it."""

RECIPES = {recipe.name: recipe for recipe in (*OWN_RECIPES, *PUBLISHED_RECIPES)}
"""All recipes by name, the usual one first."""

USUAL = _USUAL.name

ON_FEATURES = ("im", "entropy", "mcc")
"""Recipes whose loss depends on predictions alone, so that a classifier on features can have it, too."""


def values_of(name: str) -> str:
    """Name the values of a setting over all recipes, the usual one first, for the help.

    >>> values_of("threshold")
    '0.8; im, entropy, mcc, adamatch: 0.9; fixmatch: 0.95'
    """
    by_value: dict[str, list[str]] = {}
    for recipe in RECIPES.values():
        value = getattr(recipe, name)
        by_value.setdefault(value if isinstance(value, str) else f"{value:g}", []).append(recipe.name)
    usual, *others = by_value
    return "; ".join([usual, *(f"{', '.join(by_value[value])}: {value}" for value in others)])
