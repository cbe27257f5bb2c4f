"""Every option of a run, in one frozen object: the command line and the TOML file both fill it."""

# ruff: noqa: RUF009 - `option` gives a field
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

from ..functional.plain_checks import check_choice
from ..methods.options import convert, flag, option
from ..methods.settings import FitSettings
from ..networks.names import backbone_names, is_own

CACHES = ("memory", "device", "disk", "off")
_METHODS = (
    "means: class means of both domains are drawn together; the default, among the best by held-out labels in our "
    "study (docs/results/office31.md). s: source labels alone; t: target labels alone; s+t: both, nothing "
    "aligned; m: whole domains aligned; so, to, fo: class means, and class scatters of order 2, 3, 4 aligned, also in "
    "sums (so+to); with +zeta a weight per class is learned. To compare with: variance, ccsa, dsne, dage, supcon, "
    "l2-sp, lp-ft. Two stand for others: paper for so with the paper's settings, as far as they are published (its "
    "sigmas fit raw features of norm about 40, as fc7 of AlexNet gives); auto for the best of a short list, chosen by "
    "holding back labelled target images in turn."
)
DATA, NETWORK, METHOD, TRAINING, MACHINE, RUN = "Data", "Network", "Method", "Training", "Machine", "Run"
_DEFAULT = FitSettings()


@dataclass(frozen=True)
class RunConfig:
    """Options of `sohot fit`; each is an option of the command line and a key of the TOML file (`source-shots` too)."""

    source: Path | None = option(None, DATA, "Folder of source images, one folder per class.")
    target: Path | None = option(None, DATA, "Folder of target images, one folder per class.")
    target_test: Path | None = option(None, DATA, "Folder of target images to test on; --target then trains whole.")
    shots: int | None = option(None, DATA, "Train on this many random target images per class, test on the rest.")
    source_shots: int | None = option(None, DATA, "Train on at most this many random source images per class.")
    leave_out: bool = option(False, DATA, "Leave out classes that only one domain has.")
    augment: bool = option(False, DATA, "Random crops and mirroring of training images (the trunk is not cached then).")

    out: Path | None = option(None, RUN, "Folder of the run: checkpoints, logs, configuration, report.", stored=False)
    resume: bool = option(False, RUN, "Go on with the run in --out, with its own configuration.", stored=False)
    quiet: bool = option(False, RUN, "No progress, results alone.", stored=False)
    json: bool = option(False, RUN, "Print one JSON object.", stored=False)

    backbone: str = option("lite0", NETWORK, f"Network: {', '.join(backbone_names())}.")
    weights: Path | None = option(None, NETWORK, "File of its weights: safetensors, or a state dict of tensors alone.")
    from_scratch: bool = option(False, NETWORK, "Start from random weights.")
    tap: str | None = option(None, NETWORK, "Where features are taken: before-relu, after-relu or output.")
    dropout: str = option("classifier", NETWORK, "Dropout: classifier (alignment sees none), everywhere or none.")
    image_size: int | None = option(None, NETWORK, "Side of the images; the network's own by default.")
    channels: int = option(3, NETWORK, "Channels of the target images: 3 (colour) or 1 (grey, depth).")
    source_backbone: str | None = option(None, NETWORK, "Another network for the source.")
    source_weights: Path | None = option(None, NETWORK, "File of its weights.")
    source_tap: str | None = option(None, NETWORK, "Its tap.")
    source_channels: int | None = option(None, NETWORK, "Channels of the source images, where they differ.")
    streams: str | None = option(
        None, NETWORK, "One network for both domains (shared) or one each (separate).", shown="shared, if it can be"
    )
    heads: str = option("shared", NETWORK, "One classifier (shared) or one each (coupled).")
    trains: str | None = option(
        None, NETWORK, "What trains: paper (last blocks), all or head.", shown="paper; all from scratch"
    )
    batch_norm: str = option("auto", NETWORK, "Batch-norm statistics where it trains: auto, fixed or moving.")
    norm_bound: float | None = option(None, NETWORK, "Bound τ on the squared norm of features.")
    projection: int | None = option(None, NETWORK, "Bring the features of both streams to this size.")

    method: str = option(_DEFAULT.method, METHOD, _METHODS)
    orders: tuple[int, ...] | None = option(None, METHOD, "Orders to align in place of the method's, as 2,3.")
    sigma1: float | tuple[float, ...] = option(_DEFAULT.sigma1, METHOD, "Weight of the scatters, or one per order.")
    sigma2: float = option(_DEFAULT.sigma2, METHOD, "Weight of the means.")
    alpha1: float = option(_DEFAULT.alpha1, METHOD, "How strongly ζ of the scatters is held at 1.")
    alpha2: float = option(_DEFAULT.alpha2, METHOD, "How strongly ζ of the means is held at 1.")
    estimator: str = option(_DEFAULT.estimator, METHOD, "plugin (the paper) or unbiased.")
    feature_scale: str = option(_DEFAULT.feature_scale, METHOD, "initial, none (the paper) or unit.")
    rival_weight: float | None = option(None, METHOD, "Weight of a rival's loss.", shown="its paper's")
    margin: float = option(_DEFAULT.margin, METHOD, "Margin of ccsa and dsne.")
    temperature: float = option(_DEFAULT.temperature, METHOD, "Temperature of supcon.")
    l2_sp: float | None = option(
        None, METHOD, "Hold weights at where they started, this strongly.", shown="l2-sp: 0.01"
    )
    head_first: float | None = option(
        None, METHOD, "Share of the steps in which the classifier learns alone.", shown="lp-ft: 0.5"
    )
    target_weight: float | None = option(None, METHOD, "Share of the target in the cross-entropy.", shown="by images")
    head_decay: float = option(_DEFAULT.head_decay, METHOD, "λ of λ‖W‖² on the classifier.")
    coupling: float = option(_DEFAULT.coupling, METHOD, "β' of β'‖W−W*‖² for coupled classifiers.")

    steps: int | None = option(None, TRAINING, "Steps to train.", shown=f"{_DEFAULT.steps}")
    epochs: int | None = option(None, TRAINING, "Passes over the training images, in place of --steps.")
    batch_rows: int = option(256, TRAINING, "Most images in a batch; 0 for the whole training set at once.")
    batch_classes: int | None = option(None, TRAINING, "Classes in a batch.", shown="all, if they fit")
    source_per_class: int | None = option(None, TRAINING, "Source images of each class in a batch.", shown="what fits")
    target_per_class: int | None = option(None, TRAINING, "Target images of each class in a batch.", shown="what fits")
    optimizer: str = option(_DEFAULT.optimizer, TRAINING, "sgd or adamw.")
    lr: float = option(_DEFAULT.lr, TRAINING, "Highest learning rate.")
    head_factor: float = option(_DEFAULT.head_factor, TRAINING, "The classifier learns this many times faster.")
    zeta_lr: float = option(_DEFAULT.zeta_lr, TRAINING, "Highest learning rate of ζ.")
    momentum: float = option(_DEFAULT.momentum, TRAINING, "Momentum of sgd.")
    weight_decay: float = option(_DEFAULT.weight_decay, TRAINING, "Weight decay of the layers below the classifier.")
    schedule: str = option(_DEFAULT.schedule, TRAINING, "one-cycle, cosine or constant.")
    warmup: float = option(_DEFAULT.warmup, TRAINING, "Share of the steps in which the learning rate rises.")
    clip_norm: float | None = option(None, TRAINING, "Longest gradient.")
    divergence_factor: float = option(_DEFAULT.divergence_factor, TRAINING, "Stop at this many times the first loss.")
    seed: int = option(0, TRAINING, "Seed of everything random, the choice of shots included.")

    device: str = option("auto", MACHINE, "auto, cpu, cuda or mps.")
    devices: int = option(1, MACHINE, "Devices of this machine that share each batch; the result is that of one.")
    num_nodes: int = option(1, MACHINE, "Machines that do.")
    strategy: str = option(_DEFAULT.strategy, MACHINE, "How several devices train together: auto or ddp.")
    precision: str = option(_DEFAULT.precision, MACHINE, "32-true, bf16-mixed, 16-mixed or 64-true.")
    compile: bool = option(False, MACHINE, "Compile the network: slower to start, faster to train on a GPU.")
    cache: str | None = option(
        None,
        MACHINE,
        "Where the frozen part's outputs are kept: device (its memory), memory, disk or off.",
        shown="the first they fit in",
    )
    threads: int | None = option(None, MACHINE, "Processor threads that compute.", shown="torch's own number")
    workers: int | None = option(None, MACHINE, "Threads that read images.", shown="one per core, at most 8")
    checkpoint_every: int = option(_DEFAULT.checkpoint_every, MACHINE, "Steps between checkpoints.")
    keep_checkpoints: int = option(_DEFAULT.keep_checkpoints, MACHINE, "How many checkpoints stay.")
    loggers: tuple[str, ...] | None = option(
        None, MACHINE, "Logs beside log.csv: tensorboard, wandb, mlflow, or none.", shown="tensorboard, if installed"
    )

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Build a configuration from values of the kind that TOML and the command line give.

        >>> RunConfig.from_values({"sigma1": "0.1,0.2", "shots": 3}).sigma1
        (0.1, 0.2)
        """
        hints = get_type_hints(cls)
        return cls(
            **{one.name: convert(one, hints[one.name], values[one.name]) for one in fields(cls) if one.name in values}
        )

    def __post_init__(self) -> None:
        if self.cache is not None:
            check_choice(self.cache, CACHES, flag("cache"))
        counts = ("shots", "source_shots", "epochs", "batch_classes", "source_per_class", "target_per_class")
        for name in (*counts, "devices", "num_nodes", "threads"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{flag(name)} must be at least 1, got {value}")
        for name in ("batch_rows", "workers"):
            if (value := getattr(self, name)) is not None and value < 0:
                raise ValueError(f"{flag(name)} must be at least 0, got {value}")
        for one, other in (("steps", "epochs"), ("shots", "target_test"), ("weights", "from_scratch")):
            if getattr(self, one) and getattr(self, other):
                raise ValueError(f"{flag(one)} and {flag(other)} exclude each other: give one")
        if self.augment and self.cache not in (None, "off"):
            raise ValueError(
                f"--augment changes the images at every step, so --cache {self.cache} cannot be had with it"
            )

    def settings(self, steps: int | None = None, from_trunk: bool = False) -> FitSettings:
        """Give the part that shapes training; `steps` where they follow from epochs."""
        names = {one.name for one in fields(FitSettings)} & {one.name for one in fields(self)}
        values = {name: getattr(self, name) for name in names - {"steps", "loggers"}}
        loggers = () if self.loggers == ("none",) else self.loggers
        if steps is None:
            steps = _DEFAULT.steps if self.steps is None else self.steps
        return FitSettings(**values, steps=steps, loggers=loggers, accelerator=self.device, from_trunk=from_trunk)

    def stored(self) -> dict[str, Any]:
        """Give what is kept with a run, in the kind of values TOML holds, paths made absolute."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.metadata["stored"] and value is not None:
                found[one.name] = _absolute(value) if one.name in _NETWORKS else _plain(value)
        return found

    def changed(self) -> dict[str, Any]:
        """Give the part of `stored` that differs from the defaults: what a command line has to say."""
        return {name: value for name, value in self.stored().items() if value != _plain(_DEFAULTS[name])}


RESULT_OPTIONS = tuple(
    one.name
    for one in fields(RunConfig)
    if one.name in ("augment", "precision") or one.metadata["group"] in (NETWORK, METHOD, TRAINING)
)
"""Options that shape a result, given the images; the others say which images, and where and how it is computed."""

_NETWORKS = ("backbone", "source_backbone")


def _absolute(name: str) -> str:
    """Name a network of one's own by the whole path of its file."""
    file, _, function = name.rpartition(":")
    return f"{Path(file).absolute()}:{function}" if is_own(name) else name


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value.absolute())
    return list(value) if isinstance(value, tuple) else value


_DEFAULTS = {one.name: one.default for one in fields(RunConfig)}


def known_key(key: str) -> str:
    """Find the field that a key of a TOML file means, `-` and `_` alike, or refuse it with the nearest one.

    >>> known_key("source-shots")
    'source_shots'
    """
    name = key.replace("-", "_")
    if name in _DEFAULTS:
        return name
    near = get_close_matches(name, _DEFAULTS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(_DEFAULTS)}"
    raise ValueError(f"unknown option {key!r}{hint}")
