"""One record per method: its name, the domains it learns from, its loss and the options it uses.

A new loss between the domains needs a file in `sohot.losses`, its import there, a record here, and a line in
docs/methods.md, and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .pool_recipes import PUBLISHED_RECIPES, USUAL

SCATTERS = ("orders", "sigma1", "sigma2", "estimator", "feature_scale")
ZETA = ("alpha1", "alpha2", "zeta_lr")
TWO_DOMAINS = ("target_weight",)
TWO_STREAMS = ("streams", "heads", "coupling")
_STRENGTHS = (0.01, 0.1, 1.0)


@dataclass(frozen=True)
class Method:
    """What a method trains on and what it aligns.

    Attributes:
        name: Its normalized name: lower case, orders ascending, zeta last.
        label: What it does, in the few words that fit in a table.
        sentence: What it does, for a report: completes "It was …".
        uses_source: Whether the classifier learns from the source.
        uses_target: Whether the classifier learns from the target.
        orders: Orders of the aligned scatters; empty if it aligns none.
        scope: Which means (and scatters) it aligns: "class" for each class, "marginal" for whole domains, None for
            neither.
        class_weights: "learned" if ζ is learned, else None.
        loss: Another loss between the domains, as "module:Class" in `sohot.losses`; None without one.
        loss_weight: Weight of that loss, from its paper if the paper gives one.
        pairs: Which pairs of rows that loss compares: "cross" (a source row and a target row), "all" or "none".
        looks_at: The options of alignment and losses that it uses.
        start_pull: How strongly weights are pulled toward their initial values, unless `l2_sp` overrides it.
        head_first: Share of the steps that train only the classifier, unless the option `head_first` overrides it.
        search: Values of its own options to choose from; None stands for the usual value.
        pool: How it learns from unlabelled target images, if there are any: a name in `pool_recipes.RECIPES`.
        needs_pool: Whether it makes no sense without them.
    """

    name: str
    label: str
    sentence: str
    uses_source: bool = True
    uses_target: bool = True
    orders: tuple[int, ...] = ()
    scope: str | None = None
    class_weights: str | None = None
    loss: str | None = None
    loss_weight: float = 0.0
    pairs: str = "none"
    looks_at: tuple[str, ...] = ()
    start_pull: float = 0.0
    head_first: float = 0.0
    search: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    pool: str = USUAL
    needs_pool: bool = False

    @property
    def aligns(self) -> bool:
        """Whether scatters are aligned."""
        return bool(self.orders)

    @property
    def uses_both(self) -> bool:
        """Whether the classifier learns from both domains."""
        return self.uses_source and self.uses_target

    @property
    def is_plain(self) -> bool:
        """Whether it only trains a classifier."""
        return self.scope is None and self.loss is None and not (self.start_pull or self.head_first)

    def ignored(self, *, on_features: bool = False) -> tuple[str, ...]:
        """Name the method options that this one ignores.

        Args:
            on_features: Whether it trains on features, where streams and heads are method options too.
        """
        of_domains = (*TWO_STREAMS, *TWO_DOMAINS) if on_features else TWO_DOMAINS
        return (
            *(name for name in METHOD_OPTIONS if name not in self.looks_at),
            *(() if self.uses_both else of_domains),
        )


def _other_loss(
    name: str, home: str, weight: float, options: tuple[str, ...], label: str, sentence: str, pairs: str = "cross"
) -> Method:
    """Build the record of a loss from another paper, with a search over its weight."""
    return Method(
        name,
        label,
        f"trained on both domains, {sentence}",
        loss=f"{name}:{home}",
        loss_weight=weight,
        pairs=pairs,
        looks_at=("loss_weight", *options),
        search={"loss_weight": (weight / 10, None, weight * 10)},
    )


PAPER_RECORDS = (
    Method("s", "source only", "trained on the source only", uses_target=False),
    Method("t", "target only", "trained on the few target labels only", uses_source=False),
    Method("s+t", "both, no alignment", "trained on both domains without alignment"),
    Method(
        "m",
        "both, whole domains aligned",
        "trained on both domains, with whole domains aligned",
        orders=(2,),
        scope="marginal",
        looks_at=SCATTERS,
    ),
)
"""The methods of the paper's tables, except those that `scatter_method` builds."""

OTHER_RECORDS = (
    Method(
        "means",
        "both, class means aligned",
        "trained on both domains, with only class means aligned",
        scope="class",
        looks_at=("sigma2", "estimator", "feature_scale"),
        search={"sigma2": _STRENGTHS},
    ),
    _other_loss(
        "variance",
        "VariancePenalty",
        0.1,
        ("feature_scale",),
        "both, class spread penalised",
        "with the spread of each class penalised and no alignment",
        pairs="none",
    ),
    _other_loss(
        "ccsa",
        "ContrastiveSemanticAlignment",
        1 / 3,
        ("margin", "feature_scale"),
        "both, pairs pulled and pushed",
        "with the contrastive loss of CCSA",
    ),
    _other_loss(
        "dsne",
        "StochasticNeighborhoodAlignment",
        0.1,
        ("margin", "feature_scale"),
        "both, nearest and farthest",
        "with the loss of d-SNE",
    ),
    _other_loss("dage", "GraphEmbeddingAlignment", 1.0, (), "both, graph embedding", "with the loss of DAGE-LDA"),
    _other_loss(
        "supcon",
        "SupervisedContrastive",
        1.0,
        ("temperature",),
        "both, supervised contrastive",
        "with the supervised contrastive loss",
        pairs="all",
    ),
    Method(
        "l2-sp",
        "both, near initial weights",
        "trained on both domains, with weights kept near their initial values (L2-SP)",
        start_pull=0.01,
        search={"l2_sp": (1e-3, None, 0.1)},
    ),
    Method(
        "lp-ft",
        "both, classifier first",
        "trained on both domains, first the classifier alone, then all layers (LP-FT)",
        head_first=0.5,
        search={"head_first": (0.25, None, 0.75)},
    ),
)
"""Other methods: parts of the alignment, losses from other papers, and careful fine-tuning."""

POOL_RECORDS = tuple(
    Method(
        recipe.name,
        f"both, {recipe.label}",
        f"trained on both domains without alignment, with {recipe.label} on unlabelled target images",
        search={"pool_weight": (0.3, 1.0, 3.0)},
        pool=recipe.name,
        needs_pool=True,
    )
    for recipe in PUBLISHED_RECIPES
)
"""Methods from other papers that learn from unlabelled target images: `s+t` with the recipe of the same name."""

RECORDS = {record.name: record for record in (*PAPER_RECORDS, *OTHER_RECORDS, *POOL_RECORDS)}

ORDER_NAMES = {"so": 2, "to": 3, "fo": 4}
"""Second, third and fourth order."""


def scatter_method(names: list[str], zeta: bool) -> Method:
    """Build the record of a sum of orders.

    Args:
        names: `so`, `to`, `fo`, in ascending order.
        zeta: Whether a weight for each class is learned.

    Example:
        >>> scatter_method(["so", "to"], zeta=True).sentence
        'trained on both domains, class scatters of orders 2 and 3 aligned, with a learned weight for each class'
    """
    orders = tuple(ORDER_NAMES[name] for name in names)
    digits = list(map(str, orders))
    named = f"order {digits[0]}" if len(digits) == 1 else f"orders {', '.join(digits[:-1])} and {digits[-1]}"
    weights = ", with a learned weight for each class" if zeta else ""
    return Method(
        "+".join([*names, "zeta"] if zeta else names),
        f"both, {'class scatters aligned' if orders == (2,) else f'scatters of {named}'}" + (" + ζ" if zeta else ""),
        f"trained on both domains, class scatters of {named} aligned{weights}",
        orders=orders,
        scope="class",
        class_weights="learned" if zeta else None,
        looks_at=(*SCATTERS, *ZETA) if zeta else SCATTERS,
    )


METHOD_OPTIONS = tuple(
    dict.fromkeys([*SCATTERS, *(name for record in OTHER_RECORDS for name in record.looks_at), *ZETA])
)
"""Options that only some methods use."""
