"""Preparation of cells: which images pass through which trunk."""

from collections.abc import Sequence
from pathlib import Path

from .._device import choose_device
from ..data.labelled import LabelledImages, Progress
from ..data.protocols.split import Split
from ..methods.registry import method
from ..runs.run_model import OPTIONS, START, build_model
from ..runs.trunk_folder import TrunkFolder, fill_folders
from ..runs.trunk_store import TrunkStore
from .cell import Cell
from .cell_training import FEATURES, Workplace, config_of, draw_split

_NETWORK = (*OPTIONS, *START, "seed")


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
    """Return each trunk with the images that cells pass through it."""
    trunks: dict[str, dict[str, TrunkFolder]] = {}
    lists: dict[Path, tuple[TrunkFolder, dict[str, LabelledImages]]] = {}
    for number, cell in enumerate(cells, start=1):
        split = draw_split(cell, where)
        _require_images(cell, split)
        if progress is not None:
            progress("drawing splits", number, len(cells))
        network = _network(cell, len(split.classes))
        if network not in trunks:
            trunks[network] = _trunks(cell, len(split.classes), where)
        if cell.settings.get("augment"):  # different images in every step: nothing can be kept
            continue
        for domain, side in shown_sides(cell):
            features = trunks[network][domain]
            _, images = lists.setdefault(features.folder, (features, {}))
            images.setdefault(repr([cell.shift, cell.split, dict(cell.draw), side]), split.sides[side])
    return [(features, list(images.values())) for features, images in lists.values()]


def trunks_of(cell: Cell, num_classes: int, where: Workplace) -> tuple[str, dict[str, TrunkFolder]]:
    """Return a key of a cell's network, equal for equal networks, and the network's trunks by domain."""
    return _network(cell, num_classes), _trunks(cell, num_classes, where)


def _network(cell: Cell, num_classes: int) -> str:
    return repr([cell.backbone, {key: cell.settings.get(key) for key in _NETWORK}, num_classes])


def _trunks(cell: Cell, num_classes: int, where: Workplace) -> dict[str, TrunkFolder]:
    model = build_model(config_of(cell, cell.settings, where), num_classes)
    store = TrunkStore(where.out / FEATURES)
    return {domain: store.folder(model, domain) for domain in ("target", "source")}


def shown_sides(cell: Cell) -> list[tuple[str, str]]:
    """Return the sides of a split that a cell uses, each with the domain of its stream.

    >>> shown_sides(Cell("office31", "A-W", 1, "s", "lite0"))
    [('target', 'target_test'), ('source', 'source_train')]
    """
    chosen = method(cell.method)
    sides = [("target", "target_test")]
    if chosen.uses_source:
        sides.append(("source", "source_train"))
    if chosen.uses_target or cell.select == "cv":
        sides.append(("target", "target_train"))
    if cell.select == "validation":
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
