"""All options of a run in one frozen object, filled by the command line and the TOML file."""

# ruff: noqa: RUF009 - `option` gives a field
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..data.manifest_rows import LIST, SUFFIXES, is_manifest
from ..data.names import printable
from ..data.pools import INDUCTIVE, TRANSDUCTIVE
from ..functional.plain_checks import nearest
from ..methods.choices import BATCH_NORMS, DROPOUTS, STREAMS, TAPS, TRAINS
from ..methods.options import (
    DATA,
    MACHINE,
    METHOD,
    NETWORK,
    NOT_NEGATIVE,
    POOL,
    REST,
    RUN,
    STEPS,
    TRAINING,
    WIDTH,
    Rest,
    at_least,
    check_ranges,
    convert_fields,
    flag,
    from_to,
    in_groups,
    one_of,
    option,
)
from ..methods.registry import method
from ..methods.settings import FitSettings, HeadOptions, HeadSettings, ImageOptions
from ..networks.names import absolute_name, backbone_names, check_backbone_name, files_of

CACHES = ("memory", "device", "disk", "off")
KEEPS = (BETTER, LAYERS) = ("better", "layers")
ANY_PROTOCOL = "auto"
WANTED = "give a folder that holds one folder of images per class, or a list of images"
RESOLVED = ("auto", "paper")
"""Names of methods that a run resolves to one of the others."""
_EXCLUSIVE = (
    *(("steps", "epochs"), ("weights", "from_scratch")),
    *(("split", other) for other in ("shots", "source_shots", "target_test")),
)


@dataclass(frozen=True)
class RunConfig(ImageOptions, HeadOptions):
    """Options of `sohot fit`: each is a command-line option and a TOML key (`source_shots` or `source-shots`)."""

    source: Path | tuple[Path, ...] | None = option(
        None,
        DATA,
        f"Source images: a folder with one folder per class, or a {LIST} with the columns path and label. Given "
        "several times, the sources are pooled.",
    )
    target: Path | None = option(
        None, DATA, f"Target images: a folder with one folder per class, or a {LIST}, as for --source."
    )
    target_test: Path | None = option(
        None,
        DATA,
        f"Target images to test on, a folder or {LIST}; all of --target then trains, or as many as --shots says.",
    )
    split: Path | None = option(
        None,
        DATA,
        "File that lists the images to train and test on: a run's split.json, or from `sohot data split`, with the "
        "data set's folder as --source and --target.",
    )
    shots: int | None = option(
        None,
        DATA,
        "Train on this many random target images per class; test on the rest, or on --target-test, which lets a class "
        "have fewer.",
        at_least(1),
    )
    source_shots: int | None = option(
        None, DATA, "Train on at most this many random source images per class.", at_least(1)
    )
    unlabelled: Rest | Path | tuple[Path, ...] | None = option(
        None,
        DATA,
        f"Target images without labels (the pool): a folder, a {LIST}, or {REST}, which is what --shots leaves over. "
        "May be given several times. A folder may be nested or flat; of a list, the rows without a label are taken if "
        f"some have one. Images of {REST} are also tested on; a folder of this name is ./{REST}.",
    )
    protocol: str = option(
        ANY_PROTOCOL,
        DATA,
        f"How the test relates to --unlabelled: {TRANSDUCTIVE} (tested on images of the pool), {INDUCTIVE} (on images "
        f"never seen; of {REST} one half is the pool, the other half the test) or {ANY_PROTOCOL} (as the images are).",
        one_of(ANY_PROTOCOL, TRANSDUCTIVE, INDUCTIVE),
    )
    leave_out: bool = option(False, DATA, "Leave out classes that only one domain has.")
    augment: bool = option(False, DATA, "Randomly crop and mirror training images (disables the trunk cache).")

    out: Path | None = option(None, RUN, "Folder for the run: checkpoints, logs, configuration, report.", stored=False)
    resume: bool = option(False, RUN, "Continue the run in --out with its stored configuration.", stored=False)
    quiet: bool = option(False, RUN, "Print results only, no progress.", stored=False)
    json: bool = option(False, RUN, "Print one JSON object.", stored=False)

    backbone: str = option("lite0", NETWORK, f"Network: {', '.join(backbone_names())}.")
    weights: Path | None = option(
        None, NETWORK, "File of its weights: safetensors (`sohot weights` makes one), or a state dict."
    )
    from_scratch: bool = option(False, NETWORK, "Start from random weights.")
    tap: str | None = option(None, NETWORK, f"Where to take the features: {', '.join(TAPS[:-1])} or {TAPS[-1]}.")
    dropout: str = option(
        "classifier", NETWORK, f"Dropout: {DROPOUTS[0]} (none before alignment), {DROPOUTS[1]} or {DROPOUTS[2]}."
    )
    image_size: int | None = option(None, NETWORK, "Side of the images in pixels; by default the network's own.", WIDTH)
    channels: int = option(3, NETWORK, "Channels of the target images: 3 (colour) or 1 (grey, depth).")
    source_backbone: str | None = option(None, NETWORK, "A different network for the source.")
    source_weights: Path | None = option(None, NETWORK, "File of the source network's weights.")
    source_tap: str | None = option(None, NETWORK, "Where to take the source network's features.")
    source_channels: int | None = option(None, NETWORK, "Channels of the source images, if different.")
    streams: str | None = option(
        None,
        NETWORK,
        f"One network for both domains ({STREAMS[0]}) or one each ({STREAMS[1]}).",
        shown="shared, if possible",
    )
    trains: str | None = option(
        None,
        NETWORK,
        f"Layers to train: {TRAINS[0]} (the last blocks), {TRAINS[1]}, or {TRAINS[2]} (none: the classifier is a "
        "logistic regression on frozen features).",
        shown="paper; all from scratch",
    )
    batch_norm: str = option(
        "auto",
        NETWORK,
        f"Batch-norm statistics: {', '.join(BATCH_NORMS[:-1])}, or {BATCH_NORMS[-1]} (features are means over two "
        "passes, by the network's and by the target images' statistics).",
        shown="auto: fixed if pre-trained, or both as held-out labels choose",
    )
    projection: int | None = option(None, NETWORK, "Project the features of both streams to this size.", WIDTH)

    keep: str = option(
        "better",
        METHOD,
        "What to keep of a pre-trained network: better (the classifier on its frozen features, unless held-out target "
        "images say that training layers helps) or layers (train them without this comparison).",
        one_of(*KEEPS),
    )

    steps: int | None = option(None, TRAINING, "Number of training steps.", STEPS, shown=f"{FitSettings.steps}")
    epochs: int | None = option(None, TRAINING, "Passes over the training images, instead of --steps.", at_least(1))
    batch_rows: int = option(
        256, TRAINING, "Maximum number of images in a batch; 0 for the whole training set.", at_least(0)
    )
    batch_classes: int | None = option(None, TRAINING, "Classes in a batch.", at_least(1), shown="all, if they fit")
    source_per_class: int | None = option(
        None, TRAINING, "Source images per class in a batch.", at_least(1), shown="as many as fit"
    )
    target_per_class: int | None = option(
        None, TRAINING, "Target images per class in a batch.", at_least(1), shown="as many as fit"
    )
    pool_views: int = option(
        4,
        TRAINING,
        "With unlabelled images: cached weak views of each image, and as many strong ones of target images; fewer if "
        "they do not fit. With --augment, each step makes new ones instead.",
        from_to(1, 64),
    )

    cache: str | None = option(
        None,
        MACHINE,
        "Where to keep the outputs of the frozen layers: device, memory, disk or off.",
        one_of(*CACHES),
        shown="the first with room",
    )
    threads: int | None = option(None, MACHINE, "CPU threads for computation.", at_least(1), shown="one per core")
    read_threads: int | None = option(
        None, MACHINE, "Threads that read images.", at_least(0), shown="one per core, at most 8"
    )
    head_decay: float | None = option(  # type: ignore[assignment] # settings know the value in training
        None,
        METHOD,
        "λ of λ‖W‖² on the classifier.",
        NOT_NEGATIVE,
        shown=f"{FitSettings.head_decay:g} in training; before, {HeadSettings.head_decay:g} × a feature's mean square",
    )

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Build a configuration from values as TOML and the command line give them.

        >>> RunConfig.from_values({"sigma1": "0.1,0.2", "shots": 3}).sigma1
        (0.1, 0.2)
        """
        return cls(**{one.name: values[one.name] for one in fields(cls) if one.name in values})

    def __post_init__(self) -> None:
        given: Any = self.unlabelled
        if isinstance(given, list | tuple) and len(given) > 1 and REST in given:
            raise ValueError(f"--unlabelled {REST} cannot be combined with folders; a folder of this name is ./{REST}")
        convert_fields(self, flag)
        for name in FOLDERS:
            if isinstance(folders := getattr(self, name), tuple) and len(folders) < 2:
                object.__setattr__(self, name, folders[0] if folders else None)
        check_ranges(self, flag)
        if self.method.strip().lower() not in RESOLVED:
            method(self.method, besides=RESOLVED)
        for name in _NETWORKS:
            if (asked := getattr(self, name)) is not None:
                check_backbone_name(asked, flag(name))
        for one, other in _EXCLUSIVE:
            if getattr(self, one) and getattr(self, other):
                raise ValueError(f"{flag(one)} and {flag(other)} exclude each other: give only one")
        if self.unlabelled == REST and self.shots is None:
            raise ValueError(f"--unlabelled {REST} takes the target images that --shots leaves over: give --shots, too")
        if self.protocol != ANY_PROTOCOL and self.unlabelled is None and self.split is None:
            raise ValueError(f"--protocol {self.protocol} is about unlabelled images: give --unlabelled, too")
        if self.augment and self.cache not in (None, "off"):
            raise ValueError(
                f"--augment changes the images at every step, so --cache {self.cache} does not work with it"
            )

    def sources(self) -> tuple[Path, ...]:
        """Return the folders and lists of source images."""
        return _folders(self.source)

    def pools(self) -> tuple[Path, ...]:
        """Return the folders and lists of unlabelled target images; none for those that --shots leaves over."""
        return () if self.unlabelled == REST else _folders(self.unlabelled)

    def require_places(self) -> None:
        """Require the folders and files that a run needs: quick, and before anything slow.

        Raises:
            ValueError: An option is missing.
            FileNotFoundError: There is no such folder or file.
        """
        if self.out is None:
            raise ValueError("--out is missing: give a folder for the run")
        learns = None if self.method.strip().lower() in RESOLVED else self.settings().resolved_method()
        needed = {"source": learns is None or learns.uses_source, "target": True}
        for name, folders in (("source", self.sources()), ("target", () if self.target is None else (self.target,))):
            if needed[name] and not folders and self.split is None:
                raise ValueError(f"--{name} is missing: {WANTED}")
            for folder in folders:
                _require_images(folder, flag(name))
        for folder in self.pools():
            _require_images(folder, "--unlabelled")
        if self.target_test is not None:
            _require_images(self.target_test, "--target-test")
        for name in ("split", "weights", "source_weights"):
            if (file := getattr(self, name)) is not None:
                _require(file, flag(name), file.is_file(), "file")
        for name in _NETWORKS:
            for file in files_of(getattr(self, name) or ""):
                _require(file, flag(name), file.is_file(), "file")
        for folder in self.sources() if self.split is None else ():
            if self.target is not None and folder.samefile(self.target):
                raise ValueError(
                    f"--source and --target are both {printable(folder)}: the source has other images than the target"
                )

    def settings(self, steps: int | None = None, from_trunk: bool = False) -> FitSettings:
        """Return the training settings; `steps` overrides the number of steps, for runs counted in epochs."""
        names = {one.name for one in fields(FitSettings)} & {one.name for one in fields(self)}
        values = {name: getattr(self, name) for name in names - {"steps", "head_decay"}}
        if self.head_decay is not None:
            values["head_decay"] = self.head_decay
        if steps is None:
            steps = FitSettings.steps if self.steps is None else self.steps
        return FitSettings(**values, steps=steps, from_trunk=from_trunk)

    def stored(self) -> dict[str, Any]:
        """Return the options stored with a run, as TOML values with absolute paths."""
        found: dict[str, Any] = {}
        for one in in_groups(RunConfig):
            value = getattr(self, one.name)
            if one.metadata["stored"] and value is not None:
                found[one.name] = absolute_name(value) if one.name in _NETWORKS else _plain(value)
        return found

    def changed(self) -> dict[str, Any]:
        """Return the part of `stored` that differs from the defaults: what a command line must state."""
        return {name: value for name, value in self.stored().items() if value != _plain(_DEFAULTS[name])}


RESULT_OPTIONS = tuple(
    one.name
    for one in in_groups(RunConfig)
    if one.name in ("augment", "precision")
    or (one.metadata["group"] in (NETWORK, METHOD, POOL, TRAINING) and one.name != "keep")
)
"""Options that affect a result, given the images; the others choose the images, which of two results to keep, and where
and how to compute."""

POOL_OPTIONS = tuple(one.name for one in in_groups(RunConfig) if one.metadata["group"] == POOL)
"""Options that do nothing without unlabelled images."""

_NETWORKS = ("backbone", "source_backbone")
FOLDERS = ("source", "unlabelled")
"""Options that may name several folders or lists."""


def _folders(given: Path | tuple[Path, ...] | None) -> tuple[Path, ...]:
    if given is None:
        return ()
    return given if isinstance(given, tuple) else (given,)


def _require(path: Path, option: str, there: bool, kind: str) -> None:
    if not there:
        what = f"it is not a {kind}" if path.exists() else f"there is no such {kind}"
        raise FileNotFoundError(f"{option} {printable(path)}: {what}")


def _require_images(place: Path, option: str) -> None:
    """Require a folder of images, or a file that lists them."""
    if is_manifest(place):
        _require(place, option, place.is_file(), "file")
    else:
        listed = f" or a list of images ({', '.join(SUFFIXES)})" if place.exists() else ""
        _require(place, option, place.is_dir(), f"folder{listed}")


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value.absolute())
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


_DEFAULTS = {one.name: one.default for one in fields(RunConfig)}


def known_key(key: str) -> str:
    """Find the field for a TOML key, with `-` or `_`; an error suggests the closest name.

    >>> known_key("source-shots")
    'source_shots'
    """
    name = key.replace("-", "_")
    name = "unlabelled" if name == "unlabeled" else name
    if name in _DEFAULTS:
        return name
    hint = nearest(name, _DEFAULTS) or f"; known options: {', '.join(_DEFAULTS)}"
    raise ValueError(f"unknown option {key!r}{hint}")
