"""What trainings in one process share: networks as they begin, folders of trunk outputs, and solved classifiers."""

from collections.abc import Callable, Hashable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TypeVar

from .._device import choose_device
from ..data.labelled import LabelledImages, Progress
from ..data.view_set import ViewSet
from ..methods.choices import TWO_PASSES
from ..networks.two_streams import TwoStreams
from ..training.ranks import Ranks
from .config import RunConfig
from .frozen_head import FrozenStart
from .run_model import OPTIONS, START, build_model
from .run_outputs import Shown
from .target_statistics import target_statistics, use_statistics
from .trunk_folder import TrunkFolder

MOST = 4
"""Networks and folders that are kept: those that trainings used last."""
MOST_STARTS = 16
"""Classifiers that are kept: they are small, and each of several folds has its own."""

Thing = TypeVar("Thing")
Key = tuple[Hashable, ...]


class SharedParts:
    """Makes each network, folder and classifier once, however many trainings ask for it.

    Args:
        root: The folder in which the cells of a grid share outputs (see `TrunkFolder`); None if there is none.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root
        self._networks: dict[Key, TwoStreams] = {}
        self._folders: dict[Key, TrunkFolder] = {}
        self._starts: dict[Key, FrozenStart] = {}

    def network(
        self,
        config: RunConfig,
        num_classes: int,
        targets: Sequence[LabelledImages] = (),
        progress: Progress | None = None,
    ) -> TwoStreams:
        """Return a network with its initial weights, as `build_model` does, on the GPU if a single one trains it.

        All that are made of one configuration share their frozen trunks.

        Args:
            config: The network.
            num_classes: Number of classes.
            targets: Target images whose statistics of batch normalisation it uses, if it is to use any.
            progress: Receives the number of images that are looked at for these.
        """
        shares = config.precision != "64-true"  # such a training turns the weights of its trunk into float64
        seen = tuple(targets) if config.batch_norm == TWO_PASSES else ()
        key = (*_network(config), num_classes, shares, *seen)
        whole = _kept(self._networks, key, lambda: self._built(config, num_classes, seen, progress))
        return deepcopy(whole, {id(whole.trunks): whole.trunks} if shares else {})

    def _built(
        self, config: RunConfig, num_classes: int, targets: Sequence[LabelledImages], progress: Progress | None
    ) -> TwoStreams:
        model, device, ranks = build_model(config, num_classes), choose_device(config.device), Ranks.here()
        if config.batch_norm == TWO_PASSES:
            given = targets, device, config.read_threads, self.root, progress
            use_statistics(model, ranks.from_first(lambda: target_statistics(model, *given)))
        return model.to(device) if device.type == "cuda" and not ranks.several else model

    def folder(self, model: TwoStreams, domain: str, views: ViewSet | None = None) -> TrunkFolder:
        """Return the folder in which the cells of a grid share the outputs of a domain's trunk, for images or views."""
        root, trunk = self.root, model.trunk(domain)
        if root is None:
            raise ValueError("these trainings have no shared folder for trunk outputs")
        key = id(trunk), views  # the folder keeps the trunk, so that nothing else gets its number
        return _kept(self._folders, key, lambda: TrunkFolder(root, trunk, model.inputs[domain], views))

    def start(
        self,
        config: RunConfig,
        source: Shown,
        target: Shown,
        pool: Shown | None,
        solve: Callable[[], FrozenStart],
        targets: Sequence[LabelledImages] = (),
    ) -> FrozenStart:
        """Return the classifier on frozen features from which trainings start; see `frozen_start`.

        Args:
            config: The network, the share of the target, λ and the weight of the pool.
            source: Source images that train.
            target: Target images that train.
            pool: Unlabelled target images that it learned from; None for none.
            solve: Finds it.
            targets: As for `network`.
        """
        options = config.target_weight, config.head_decay, config.augment, config.cache
        unlabelled = () if pool is None else (pool.images, config.pool_weight)
        seen = targets if config.batch_norm == TWO_PASSES else ()
        key = (*_network(config), *options, source.images, target.images, *unlabelled, *seen)
        return _kept(self._starts, key, solve, MOST_STARTS)


def _network(config: RunConfig) -> Key:
    """Return a key of everything that determines a network as it begins."""
    return tuple(getattr(config, name) for name in (*OPTIONS, *START, "seed", "device"))


def _kept(things: dict[Key, Thing], key: Key, make: Callable[[], Thing], most: int = MOST) -> Thing:
    """Return a thing that is kept, or make it and forget the one that was used longest ago."""
    found = things.pop(key) if key in things else make()
    things[key] = found
    if len(things) > most:
        del things[next(iter(things))]
    return found
