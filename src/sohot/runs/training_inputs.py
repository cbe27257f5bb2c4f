"""What a training reads: the images that a method uses, and the inputs that they become."""

from collections.abc import Sequence
from typing import NamedTuple

from ..data.labelled import LabelledImages
from ..data.view_set import Kind
from ..networks.two_streams import TwoStreams
from ..selection.folds import Fold
from ..training.inputs import Inputs
from ..training.pool_rows import PoolInputs
from .config import RunConfig
from .frozen_head import is_solved
from .joined_inputs import JoinedInputs
from .run_data import RunData
from .run_outputs import Shown
from .trunk_outputs import OFF, SHARED
from .trunk_store import TrunkStore


class TrainingInputs(NamedTuple):
    """Inputs of the images that train, plain trunk outputs of theirs, and those of the test images if they are kept."""

    source: Inputs | None
    target: Inputs | None
    test: Inputs | None
    pool: PoolInputs | None
    plain: dict[str, Inputs | None]  # without random views, by side


class ShownImages(NamedTuple):
    """Images with the outputs of the trunk for them."""

    source: Shown
    target: Shown
    test: Shown
    pool: Shown


class UsedImages(NamedTuple):
    """The images that a method trains on, without those that a fold holds out, those to test on, and the pool."""

    source: LabelledImages | None
    target: LabelledImages | None
    test: LabelledImages | None
    pool: LabelledImages | None

    @classmethod
    def of(cls, config: RunConfig, data: RunData, fold: Fold | None) -> "UsedImages":
        """Choose the images that a configuration trains and tests on, with a fold those of the target's."""
        method = config.settings().resolved_method()
        source, target = data.source if method.uses_source else None, data.target if method.uses_target else None
        if fold is None:
            return cls(source, target, data.test, data.pool)
        held = labelled_target(data).subset(fold.held)
        return cls(source, None if target is None else target.subset(fold.train), held, data.pool)

    def shown(self, inputs: TrainingInputs, *, from_trunk: bool) -> ShownImages:
        """Pair the images with plain outputs of the trunk, if there are any."""
        source, target, pool = (
            inputs.plain[side] if from_trunk and getattr(self, side) is not None else None
            for side in ("source", "target", "pool")
        )
        return ShownImages(
            Shown(self.source, source),
            Shown(self.target, target),
            Shown(self.test, inputs.test),
            Shown(self.pool, pool),
        )

    def labels(self, domain: str) -> Sequence[int]:
        """Return the classes of the images that train."""
        images: LabelledImages | None = getattr(self, domain)
        return () if images is None else images.labels


def training_inputs(
    config: RunConfig, model: TwoStreams, data: RunData, store: TrunkStore, place: str, fold: Fold | None
) -> TrainingInputs:
    """Get the inputs of the images that a method trains on; folds share what passed the trunk.

    Args:
        config: The configuration.
        model: The two streams.
        data: The images.
        store: Where trunk outputs are kept.
        place: The result of `store.place`.
        fold: Rows of the target's images that train, and that are held out; None for all.
    """
    whole, rows = UsedImages.of(config, data, None), None if fold is None else fold.train
    if whole.pool is None or is_solved(model):  # without steps there is nothing to learn from several views
        source = None if whole.source is None else store.inputs(config, model, "source", whole.source, place)
        target = None if whole.target is None else store.inputs(config, model, "target", whole.target, place, rows)
        unlabelled = None if whole.pool is None else store.inputs(config, model, "target", whole.pool, place)
        plain = {"source": source, "target": target, "pool": unlabelled}
        return TrainingInputs(source, target, _test_outputs(config, model, data, store, place, fold), None, plain)

    def views(side: str, kind: Kind, rows: Sequence[int] | None = None) -> Inputs | None:
        images: LabelledImages | None = getattr(whole, side)
        domain = "source" if side == "source" else "target"
        return None if images is None else store.view_inputs(config, model, domain, images, place, kind, rows)

    def of_pool(kind: Kind) -> Inputs:
        """Return views of the pool, and of the held-out images: these join it without their labels."""
        pool = store.view_inputs(config, model, "target", _pool(whole), place, kind)
        if fold is None:
            return pool
        held = store.view_inputs(config, model, "target", labelled_target(data), place, kind, fold.held)
        return JoinedInputs(pool, held)

    plain = {
        "source": views("source", "plain"),
        "target": views("target", "plain", rows),
        "pool": views("pool", "plain"),
    }
    pool = PoolInputs(of_pool("weak"), of_pool("strong"))
    test = _test_outputs(config, model, data, store, place, fold)
    return TrainingInputs(views("source", "weak"), views("target", "weak", rows), test, pool, plain)


def _test_outputs(
    config: RunConfig, model: TwoStreams, data: RunData, store: TrunkStore, place: str, fold: Fold | None
) -> Inputs | None:
    """Return the trunk outputs of the test images if they are kept anyway; other images are read once."""
    if place == OFF:
        return None
    if fold is not None:
        return store.inputs(config, model, "target", labelled_target(data), place, fold.held)
    if place == SHARED and data.test is not None:
        return store.shared(config, model, "target", data.test)
    return None


def _pool(used: UsedImages) -> LabelledImages:
    assert used.pool is not None
    return used.pool


def labelled_target(data: RunData) -> LabelledImages:
    """Return the labelled target images, some of which are to be held out."""
    if data.target is None:
        raise ValueError("a selection needs labelled target images")
    return data.target
