"""All settings of training on images and on features, as frozen objects that convert to JSON.

The classes here and `sohot.runs.RunConfig` are the single table of options: each field is declared once.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

from ..functional.plain_checks import ESTIMATORS
from .choices import FEATURE_SCALES, HEADS, STREAMS
from .options import (
    ABOVE_ZERO,
    MACHINE,
    METHOD,
    NETWORK,
    NOT_NEGATIVE,
    ORDERS,
    POOL,
    SEED,
    SHARE,
    STEPS,
    SWITCH,
    TRAINING,
    WIDTH,
    above_zero,
    at_least,
    check_ranges,
    one_of,
    option,
    redeclared,
)
from .pool_recipes import ON_FEATURES, PRIORS, RECIPES, PoolRecipe, values_of
from .registry import Method, method, methods_help

OPTIMIZERS = ("sgd", "adamw")
SCHEDULES = ("one-cycle", "cosine", "constant")
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "64-true")
DEVICES = ("auto", "cpu", "cuda", "mps")
LOGGERS = ("tensorboard", "none")
_SHORT = {"32": "32-true", "64": "64-true"}
_LISTS = ("orders", "sigma1")
NETWORK_PULL = 0.3
"""α of α/2 ‖w − w⁰‖² on a network on features. Without it training costs digits two points that alignment does not win
back (docs/results/choosing.md)."""
NETWORK_COMPONENTS = 128
"""Principal axes that a network on features keeps: its matrix has the square of this size."""
POOL_COMPONENTS = 256
"""Most principal axes that a classifier with unlabelled rows keeps. More cost time and gain nothing
(docs/results/unlabelled-features.md)."""
POOL_STRENGTH = 0.3
"""β of the loss on unlabelled rows, whichever it is, with a `pool_weight` of 1."""

Kind = TypeVar("Kind", bound="Settings")


@dataclass(frozen=True)
class MethodOptions:
    """Method and training options shared by images and features."""

    method: str = option("means", METHOD, methods_help())
    orders: tuple[int, ...] | None = option(
        None, METHOD, "Orders to align instead of the method's own, e.g. 2,3.", ORDERS
    )
    sigma1: float | tuple[float, ...] = option(0.1, METHOD, "Weight of the scatters, or one per order.", NOT_NEGATIVE)
    sigma2: float = option(0.1, METHOD, "Weight of the means.", NOT_NEGATIVE)
    alpha1: float = option(0.1, METHOD, "How strongly ζ of the scatters is pulled to 1.", NOT_NEGATIVE)
    alpha2: float = option(0.1, METHOD, "How strongly ζ̄ of the means is pulled to 1.", NOT_NEGATIVE)
    estimator: str = option("plugin", METHOD, "plugin (the paper) or unbiased.", one_of(*ESTIMATORS))
    feature_scale: str = option("initial", METHOD, "initial, none (the paper) or unit.", one_of(*FEATURE_SCALES))
    loss_weight: float | None = option(
        None, METHOD, "Loss weight of a method from another paper.", NOT_NEGATIVE, shown="its paper's"
    )
    margin: float = option(1.0, METHOD, "Margin of losses that push classes apart.", NOT_NEGATIVE)
    temperature: float = option(0.1, METHOD, "Temperature of contrastive losses.", ABOVE_ZERO)
    l2_sp: float | None = option(
        None,
        METHOD,
        "Pull the weights below the classifier toward their initial values, this strongly, instead of weight decay.",
        NOT_NEGATIVE,
        shown="l2-sp: 0.01",
    )
    head_first: float | None = option(
        None, METHOD, "Share of initial steps that train only the classifier.", SHARE, shown="lp-ft: 0.5"
    )
    target_weight: float | None = option(
        None, METHOD, "Share of the target in the cross-entropy.", SHARE, shown="by number of rows"
    )
    head_decay: float = option(2.5e-4, METHOD, "λ of λ‖W‖² on the classifier.", NOT_NEGATIVE)
    coupling: float = option(1e-3, METHOD, "β' of β'‖W−W*‖² for coupled classifiers.", NOT_NEGATIVE)

    optimizer: str = option("sgd", TRAINING, "sgd or adamw.", one_of(*OPTIMIZERS))
    lr: float = option(0.003, TRAINING, "Peak learning rate of the layers below the classifier.", ABOVE_ZERO)
    head_factor: float = option(
        10.0, TRAINING, "Learning rate of the classifier, as a multiple of --lr.", above_zero(1e6)
    )
    zeta_lr: float = option(0.01, TRAINING, "Peak learning rate of ζ.", NOT_NEGATIVE)
    momentum: float = option(0.9, TRAINING, "Momentum of sgd.", SHARE)
    weight_decay: float = option(5e-4, TRAINING, "Weight decay of the layers below the classifier.", NOT_NEGATIVE)
    schedule: str = option("one-cycle", TRAINING, "one-cycle, cosine or constant.", one_of(*SCHEDULES))
    warmup: float = option(0.3, TRAINING, "Share of the steps over which the learning rate rises.", SHARE)
    seed: int = option(0, TRAINING, "Random seed, also for the choice of shots.", SEED)


@dataclass(frozen=True)
class PoolOptions:
    """Options of training with unlabelled target images (the pool); without any they do nothing."""

    pool_loss: str | None = option(
        None,
        POOL,
        f"What to learn from them: {'; '.join(f'{one.name}: {one.label}' for one in RECIPES.values())}.",
        one_of(*RECIPES),
        shown="the method's own",
    )
    pool_weight: float = option(
        1.0, POOL, "Factor of the losses on unlabelled images; 0 trains as if there were none.", NOT_NEGATIVE
    )
    threshold: float | None = option(
        None,
        POOL,
        "Least confidence of a pseudo-label, as a multiple of the mean confidence on source images; of fixmatch, a "
        "probability.",
        NOT_NEGATIVE,
        shown=values_of("threshold"),
    )
    prior: str | None = option(
        None,
        POOL,
        "Class shares that pseudo-labels are moved toward: estimated from the images, uniform, or none.",
        one_of(*PRIORS),
        shown=values_of("prior"),
    )
    neighbours: int | None = option(
        None,
        POOL,
        "How many of the most similar unlabelled images have a say in a pseudo-label.",
        at_least(0),
        shown=values_of("neighbours"),
    )
    teacher: float | None = option(
        None,
        POOL,
        "Weight of the past in the running average of the weights, the teacher, which labels the images; 0 for the "
        "weights as they are. Methods with pseudo-labels keep an average of 0.99, the others the teacher.",
        SHARE,
        shown=values_of("teacher"),
    )
    ramp_up: float | None = option(
        None,
        POOL,
        "Share of the steps over which the losses on unlabelled images rise from 0.",
        SHARE,
        shown=values_of("ramp_up"),
    )
    pool_rows: int = option(128, POOL, "Unlabelled images in a batch.", at_least(1))

    def used_recipe(self, usual: str) -> PoolRecipe:
        """Return how to learn from the pool: the named recipe, or the usual one of a method, with the given changes.

        >>> PoolOptions(threshold=0.8).used_recipe("pseudo").threshold
        0.8
        """
        recipe = RECIPES[usual if self.pool_loss is None else self.pool_loss]
        asked = {name: getattr(self, name) for name in ("threshold", "prior", "neighbours", "teacher", "ramp_up")}
        terms = {name: weight * self.pool_weight for name, weight in recipe.terms.items()}
        return replace(recipe, terms=terms, **{name: value for name, value in asked.items() if value is not None})


@dataclass(frozen=True)
class ImageOptions(PoolOptions, MethodOptions):
    """Options of training on images."""

    clip_norm: float | None = option(None, TRAINING, "Largest gradient norm; longer gradients are clipped.", ABOVE_ZERO)
    divergence_factor: float = option(100.0, TRAINING, "Stop above this many times the first loss (or 1).", ABOVE_ZERO)
    device: str = option("auto", MACHINE, "auto, cpu, cuda or mps.", one_of(*DEVICES))
    devices: int = option(
        1,
        MACHINE,
        "Devices of this machine that share each batch; the result is the same as on one.",
        at_least(1),
        decides=False,
    )
    precision: str = option(
        "32-true",
        MACHINE,
        "32-true, bf16-mixed, 16-mixed or 64-true; losses use float32 or better.",
        one_of(*PRECISIONS),
    )
    compile: bool = option(
        False, MACHINE, "Compile the network: slower to start, faster to train on a GPU.", SWITCH, decides=False
    )
    capture: bool = option(
        True,
        MACHINE,
        "On an NVIDIA GPU, record training steps as CUDA graphs: same results, no waiting for Python.",
        SWITCH,
        decides=False,
    )
    checkpoint_every: int = option(50, MACHINE, "Steps between checkpoints.", at_least(1), decides=False)
    keep_checkpoints: int = option(2, MACHINE, "Number of checkpoints to keep.", at_least(1), decides=False)
    loggers: str | None = option(
        None,
        MACHINE,
        "Log for TensorBoard besides log.csv: tensorboard or none.",
        one_of(*LOGGERS),
        shown="tensorboard, if installed",
        decides=False,
    )


@dataclass(frozen=True)
class HeadOptions:
    """Network options shared by images and features."""

    heads: str = option("shared", NETWORK, "One classifier (shared) or one per domain (coupled).", one_of(*HEADS))
    norm_bound: float | None = option(None, NETWORK, "Bound τ on the squared norm of the features.", ABOVE_ZERO)


class Stage(NamedTuple):
    """Position of a step. If the classifier trains alone first, each of the two parts has its own schedule."""

    head_alone: bool
    place: int  # within the part, from 0
    length: int


@dataclass(frozen=True)
class Settings(MethodOptions):
    """What `FitSettings` and `HeadSettings` share: checks, JSON, and the meaning of None."""

    steps: int = option(100, TRAINING, "Number of training steps.", STEPS)

    def __post_init__(self) -> None:
        for name in _LISTS:  # JSON and TOML give lists
            if isinstance(value := getattr(self, name, None), list):
                object.__setattr__(self, name, tuple(value))
        orders = self.resolved_method().orders
        check_ranges(self)
        if isinstance(self.sigma1, tuple) and len(self.sigma1) != len(orders):
            raise ValueError(
                f"sigma1 must hold one number for each of the orders {orders} of method {self.method!r}, "
                f"got {len(self.sigma1)}"
            )

    def resolved_method(self) -> Method:
        """Look up the method; `orders`, if given, replaces its own."""
        return method(self.method, self.orders)

    def sigmas(self) -> tuple[float, ...]:
        """σ1 of each order."""
        count = len(self.resolved_method().orders)
        return self.sigma1 if isinstance(self.sigma1, tuple) else (float(self.sigma1),) * count

    def used_loss_weight(self) -> float:
        """Weight of a loss from another paper; 0 for a method without one."""
        usual = self.resolved_method().loss_weight
        return self.loss_weight if usual and self.loss_weight is not None else usual

    def start_pull(self) -> float:
        """How strongly the weights below the classifier are pulled toward their initial values."""
        return self.resolved_method().start_pull if self.l2_sp is None else self.l2_sp

    def share_of_head(self) -> float:
        """Share of the steps that train only the classifier."""
        return self.resolved_method().head_first if self.head_first is None else self.head_first

    def steps_of_head(self) -> int:
        """How many of the first steps train only the classifier.

        >>> FitSettings(method="lp-ft", steps=100).steps_of_head()
        50
        """
        return round(self.share_of_head() * self.steps)

    def stage(self, step: int) -> Stage:
        """Locate a step, counted from 0.

        >>> FitSettings(method="lp-ft", steps=100).stage(60)
        Stage(head_alone=False, place=10, length=50)
        """
        first = self.steps_of_head()
        return Stage(True, step, first) if step < first else Stage(False, step - first, self.steps - first)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as plain numbers, strings and lists."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls: type[Kind], values: Mapping[str, Any]) -> Kind:
        """Build settings from the output of `as_json`, or from part of it.

        >>> FitSettings.from_json({"method": "so", "orders": [2, 3]}).orders
        (2, 3)
        """
        known = [declared.name for declared in fields(cls)]
        if unknown := sorted(set(values) - set(known)):
            listed = ", ".join(sorted(known))
            raise ValueError(f"unknown settings: {', '.join(map(repr, unknown))}; known settings: {listed}")
        return cls(**values)


@dataclass(frozen=True)
class FitSettings(ImageOptions, Settings):
    """Settings of one training on images: the `sohot fit` options of the same names, and `from_trunk`.

    Attributes:
        from_trunk: The inputs are outputs of the frozen trunk, not images.

    Example:
        >>> FitSettings(method="so+zeta", steps=50).as_json()["method"]
        'so+zeta'
        >>> FitSettings().method, FitSettings().steps
        ('means', 100)
    """

    from_trunk: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "precision", _SHORT.get(str(self.precision), self.precision))
        SWITCH.check(self.from_trunk, "from_trunk")
        super().__post_init__()

    def decisive(self) -> dict[str, Any]:
        """Return the settings that affect the result: all but checkpointing, logging and the number of devices."""
        values = self.as_json()
        return {one.name: values[one.name] for one in fields(self) if one.metadata.get("decides", True)}

    def pool_recipe(self) -> PoolRecipe:
        """Return how to learn from unlabelled images."""
        return self.used_recipe(self.resolved_method().pool)


@dataclass(frozen=True)
class HeadSettings(HeadOptions, Settings):
    """Settings of one training on features: the `sohot fit-features` options of the same names.

    Features are centred, projected on their first principal axes and divided by one constant, the root mean square of
    a feature over the training rows; σ, λ and τ are in this unit. The classifier starts at the minimum of its own
    objective, a logistic regression; `s`, `t` and `s+t` end there.

    Example:
        >>> HeadSettings(method="so+zeta", sigma1=0.3).as_json()["sigma1"]
        0.3
    """

    method: str = redeclared(MethodOptions, "method", "s+t")
    streams: str = option(
        "shared", NETWORK, "One network for both domains (shared) or one each (separate).", one_of(*STREAMS)
    )
    hidden: int | None = option(None, NETWORK, "Size of a hidden layer; without it the network is linear.", WIDTH)
    components: int | None = option(
        None,
        NETWORK,
        "Number of principal axes of the training rows to keep.",
        at_least(1),
        shown=f"all for a classifier, {NETWORK_COMPONENTS} for a network",
    )
    l2_sp: float | None = redeclared(MethodOptions, "l2_sp", None, shown=f"l2-sp: 0.01, others: {NETWORK_PULL:g}")
    target_weight: float | None = redeclared(MethodOptions, "target_weight", 0.5, shown="0.5")
    head_decay: float = redeclared(MethodOptions, "head_decay", 0.03)
    optimizer: str = redeclared(MethodOptions, "optimizer", "adamw")
    lr: float = redeclared(MethodOptions, "lr", 1e-3, "Peak learning rate of the network.")
    weight_decay: float = redeclared(
        MethodOptions, "weight_decay", 0.0, "Weight decay of the network, instead of its pull to the input features."
    )
    pool_loss: str | None = redeclared(
        PoolOptions,
        "pool_loss",
        None,
        f"What to ask of unlabelled rows: {'; '.join(f'{name}: {RECIPES[name].label}' for name in ON_FEATURES)}.",
        shown=ON_FEATURES[0],
    )
    pool_weight: float = redeclared(
        PoolOptions, "pool_weight", 1.0, "Factor of the loss on unlabelled rows; 0 to leave them aside."
    )
    prior: str | None = redeclared(
        PoolOptions,
        "prior",
        None,
        "Class shares of unlabelled rows: estimated, or uniform (all classes alike).",
        shown=RECIPES[ON_FEATURES[0]].prior,
    )
    steps: int = redeclared(Settings, "steps", 200, "Number of full-batch training steps.")
    seed: int = redeclared(MethodOptions, "seed", 0, "Seed of the hidden layer's initial weights and of the shots.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if (method := self.resolved_method()).needs_pool:
            here = f"method 's+t' with pool_loss={method.pool!r}" if method.pool in ON_FEATURES else "another method"
            raise ValueError(
                f"method {method.name!r} trains layers on unlabelled images (`sohot fit`): on features use {here}"
            )
        if self.pool_loss not in (None, *ON_FEATURES):
            raise ValueError(f"pool_loss must be one of {', '.join(ON_FEATURES)} on features, got {self.pool_loss!r}")
        if self.prior == "none":
            raise ValueError("prior must be estimated or uniform on features, where it is part of the loss, got 'none'")

    def used_pool_loss(self) -> str:
        """Return what is asked of unlabelled rows."""
        return ON_FEATURES[0] if self.pool_loss is None else self.pool_loss

    def used_prior(self) -> str:
        """Return whether class shares of unlabelled rows are estimated or uniform."""
        return RECIPES[self.used_pool_loss()].prior if self.prior is None else self.prior

    def pool_strength(self) -> float:
        """β, the weight of the loss on unlabelled rows.

        >>> HeadSettings().pool_strength()
        0.3
        """
        return POOL_STRENGTH * self.pool_weight

    def trains_network(self) -> bool:
        """Whether a network trains below the classifier; otherwise the fit is a logistic regression.

        >>> HeadSettings(method="s+t").trains_network(), HeadSettings(method="so").trains_network()
        (False, True)
        """
        method = self.resolved_method()
        apart = method.uses_both and (self.streams == "separate" or self.heads == "coupled")
        return not method.is_plain or apart or self.hidden is not None

    def start_pull(self) -> float:
        """How strongly a network is pulled toward the identity, at which it starts; `weight_decay` replaces it."""
        own = super().start_pull()
        return NETWORK_PULL if self.l2_sp is None and not (own or self.weight_decay) else own

    def used_components(self) -> int | None:
        """Number of principal axes to keep; None for all features."""
        return NETWORK_COMPONENTS if self.components is None and self.trains_network() else self.components
