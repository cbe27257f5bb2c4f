"""One record per way to learn from unlabelled target images (the pool), named by the option `pool_loss`.

A new one needs a record here and, for a new term, a function in `sohot.functional.unlabelled` and a line in
`sohot.training.pool_terms`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

PRIORS = ("estimated", "uniform", "none")
"""Class shares that the pool's labels are moved toward: estimated from the predictions, equal, or not moved."""

PSEUDO, INFORMATION = "pseudo_labels", "information"
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
        teacher: Weight of the past in the running average of the weights that gives the pseudo-labels and is tested.
        ramp_up: Share of the steps over which the weight of the terms rises from 0.
        cosine: Temperature of the classifier of directions that it needs, see `sohot.networks.cosine`; None for a
            linear classifier.
    """

    name: str
    label: str
    terms: Mapping[str, float] = field(default_factory=dict)
    view: str = "strong"
    threshold: float = 0.9
    fixed: bool = False
    prior: str = "estimated"
    teacher: float = 0.99
    ramp_up: float = 0.5
    cosine: float | None = None


_USUAL = PoolRecipe("pseudo+im", "pseudo-labels and information", {PSEUDO: 1.0, INFORMATION: 0.3})

RECIPES = {
    recipe.name: recipe
    for recipe in (
        _USUAL,
        PoolRecipe("pseudo", "pseudo-labels", {PSEUDO: 1.0}),
        PoolRecipe("im", "information maximisation", {INFORMATION: 0.3}, view="weak"),
        PoolRecipe("none", "alignment only"),
    )
}
"""All recipes by name, the usual one first."""

USUAL = _USUAL.name
