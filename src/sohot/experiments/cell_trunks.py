"""Preparation of cells: which images pass through which trunk."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .._device import choose_device
from ..data.labelled import LabelledImages, Progress
from ..data.pools import POOL, SUPERVISED, TRANSDUCTIVE
from ..data.protocols.split import Split
from ..methods.choices import TWO_PASSES
from ..methods.registry import method
from ..runs.frozen_head import is_solved
from ..runs.run_model import OPTIONS, START
from ..runs.trunk_folder import TrunkFolder, fill_folders
from ..runs.trunk_outputs import view_set
from ..runs.trunk_store import TrunkStore
from .cell import Cell
from .cell_training import FEATURES, Workplace, config_of, draw_split

_NETWORK = (*OPTIONS, *START, "seed", "pool_views", "pool_weight")


def prepare(cells: Sequence[Cell], where: Workplace, progress: Progress | None = None) -> int:
    """Draw the splits of cells, build their networks and compute missing trunk features.

    Errors that would make all cells fail (missing weights, a split that cannot be drawn, a protocol without validation
    images) are raised here, before the first cell starts.

    Args:
        cells: Cells to compute.
        where: The folders of images and features.
        progress: Receives the number of images done.

    Returns:
        How many images passed through a trunk.
    """
    wanted = needed_features(cells, where, progress)
    return fill_folders(wanted, where.out / FEATURES, choose_device(where.device), where.workers, progress)


def needed_features(
    cells: Sequence[Cell], where: Workplace, progress: Progress | None = None
) -> list[tuple[TrunkFolder, list[LabelledImages]]]:
    """Return each trunk with the images that cells pass through it, plain or as views."""
    trunks: dict[str, _Trunks] = {}
    lists: dict[Path, tuple[TrunkFolder, dict[str, LabelledImages]]] = {}
    for number, cell in enumerate(cells, start=1):
        split = draw_split(cell, where)
        _require_images(cell, split)
        if progress is not None:
            progress("drawing splits", number, len(cells))
        network, targets = _network(cell, len(split.classes)), list[LabelledImages]()
        if config_of(cell, cell.settings, where).batch_norm == TWO_PASSES:
            targets = [split.sides[side] for side in ("target_train", POOL) if side in split.sides]
            network += repr([cell.shift, cell.split, cell.pool, dict(cell.draw)])
        if network not in trunks:
            trunks[network] = _Trunks.of(cell, len(split.classes), where, targets, progress)
        if cell.settings.get("augment"):  # different images in every step: nothing can be kept
            continue
        plain, viewed = trunks[network]
        shown = [(plain[domain], side) for domain, side in shown_sides(cell, views=viewed is not None)]
        if viewed is not None:
            shown += [(viewed[domain], side) for domain, side in viewed_sides(cell) if domain in viewed]
        for features, side in shown:
            _, images = lists.setdefault(features.folder, (features, {}))
            images.setdefault(repr([cell.shift, cell.split, cell.pool, dict(cell.draw), side]), split.sides[side])
    return [(features, list(images.values())) for features, images in lists.values()]


def trunks_of(cell: Cell, num_classes: int, where: Workplace) -> tuple[str, dict[str, TrunkFolder]]:
    """Return a key of a cell's network, equal for equal networks, and the network's trunks by domain."""
    return _network(cell, num_classes), _Trunks.of(cell, num_classes, where).plain


def _network(cell: Cell, num_classes: int) -> str:
    decisive = {key: cell.settings.get(key) for key in _NETWORK}
    return repr([cell.backbone, decisive, num_classes, cell.pool == SUPERVISED, cell.frozen])


class _Trunks(NamedTuple):
    """The folders of a network's trunks, by domain: for plain images, and for views if training uses them."""

    plain: dict[str, TrunkFolder]
    viewed: dict[str, TrunkFolder] | None

    @classmethod
    def of(
        cls,
        cell: Cell,
        num_classes: int,
        where: Workplace,
        targets: Sequence[LabelledImages] = (),
        progress: Progress | None = None,
    ) -> "_Trunks":
        config, store = config_of(cell, cell.settings, where), TrunkStore(where.out / FEATURES)
        model = store.parts.network(config, num_classes, targets, progress)
        domains = ("target", "source")
        plain = {domain: store.folder(model, domain) for domain in domains}
        if cell.pool == SUPERVISED or is_solved(model) or not config.pool_weight:
            return cls(plain, None)
        frozen = [domain for domain in domains if len(model.trunk(domain))]  # else images are read anew in each step
        return cls(plain, {domain: store.folder(model, domain, view_set(config, domain)) for domain in frozen})


def shown_sides(cell: Cell, *, views: bool = False) -> list[tuple[str, str]]:
    """Return the sides of a split that a cell uses plainly, each with the domain of its stream.

    Args:
        cell: The cell.
        views: Whether it trains on views of images: then the others are those that score and test.

    Example:
        >>> shown_sides(Cell("office31", "A-W", 1, "s", "lite0"))
        [('target', 'target_test'), ('source', 'source_train')]
    """
    chosen = method(cell.method)
    sides = [("target", "target_test")]
    if chosen.uses_source and not views:
        sides.append(("source", "source_train"))
    if (chosen.uses_target and not views) or cell.select == "cv":
        sides.append(("target", "target_train"))
    if cell.select == "validation":
        sides.append(("target", "validation"))
    if cell.pool != SUPERVISED and not views:  # a classifier on frozen features learns from plain images
        sides.append(("target", POOL))
    return sides


def viewed_sides(cell: Cell) -> list[tuple[str, str]]:
    """Return the sides of a split of which a cell with a pool uses views, each with the domain of its stream.

    >>> viewed_sides(Cell("office31", "A-W", 1, "t", "lite0", pool="inductive"))
    [('target', 'target_pool'), ('target', 'target_train')]
    """
    chosen, transductive = method(cell.method), cell.pool == TRANSDUCTIVE
    sides = [("target", POOL)]
    if chosen.uses_source:
        sides.append(("source", "source_train"))
    if chosen.uses_target or (transductive and cell.select == "cv"):  # what is held out joins the pool
        sides.append(("target", "target_train"))
    if transductive and cell.select == "validation":
        sides.append(("target", "validation"))
    return sides


def _require_images(cell: Cell, split: Split) -> None:
    if not len(split.sides["target_test"]):
        raise ValueError(f"{cell.shift} split {cell.split}: no images are left to test on")
    if method(cell.method).uses_source and not len(split.sides["source_train"]):
        raise ValueError(
            f"{cell.shift} split {cell.split}: no source images are left to train on, except copies of target images"
        )
    if cell.select == "validation" and not len(split.sides.get("validation", ())):
        raise ValueError(
            f"--select validation needs validation images, but the protocol {cell.protocol!r} sets none aside: "
            "use the protocol 'rectified', or 'k-shot' with validation_shots, or --select cv"
        )
