"""The unlabelled images of a run: what they are to the test, what training made of them, and which to label next."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...data.labelled import LabelledImages
from ...data.names import printable
from ...runs.description import POOL_LABELS, read_report
from ...runs.predictions import Prediction, read_predictions
from ...runs.run_outputs import SideFeatures, read_outputs
from ...runs.split_file import read_pool
from ...runs.suggest import SuggestedImage, choose, labelled_features
from ..figures.classes import share_figure
from ..figures.curves import lines_figure
from .blocks import Block, Chart, Gallery, Listing, Picture, Section, Side, Table, Words, number
from .run_images import POOL_PART
from .thumbnails import thumbnail
from .words import count, join, percent

TITLE = "Unlabelled images"
SUGGESTED = 12
"""Images in the list of those to label next."""
_MOST_POINTS = 400
_REST = "rest"
_PROTOCOLS = {
    "transductive": "Test images are among them: the accuracy is transductive. Images that training has never seen may "
    "be classified less well.",
    "inductive": "No test image is among them: the accuracy is inductive, that is, of images that training has never "
    "seen.",
}


class _Curves(NamedTuple):
    """A chart of columns of the log: title, what it shows, unit, the columns with their names, and a factor."""

    title: str
    told: str
    unit: str
    columns: dict[str, str]
    factor: float = 1


_CURVES = (
    _Curves(
        "Pseudo-labels during training",
        "Kept are pseudo-labels that the teacher is sure enough of. In a healthy run labels settle, and no class takes "
        "much more than its share.",
        "per cent",
        {
            "mask_rate": "kept (mask rate)",
            "pool_confidence": "mean confidence",
            "pool_largest": "of the largest class",
            "pool_changed": "changed",
        },
        100,
    ),
    _Curves(
        "Losses of unlabelled images",
        "The parts of the loss that unlabelled images add.",
        "loss",
        {"pseudo_labels": "pseudo-labels", "information": "information"},
    ),
)


@dataclass(frozen=True)
class PoolLabels:
    """What a finished run says about its unlabelled images.

    Attributes:
        images: The images.
        predictions: The two most likely classes of each.
        features: Features of some of them; None if the run stored none.
    """

    images: LabelledImages
    predictions: Sequence[Prediction]
    features: SideFeatures | None

    def __post_init__(self) -> None:
        rows = [] if self.features is None else self.features.rows.tolist()
        if len(self.images) != len(self.predictions) or max(rows, default=0) >= len(self.images):
            raise ValueError(f"{POOL_LABELS} belongs to other images")


def read_labels(folder: Path) -> PoolLabels | None:
    """Read what a run says about its unlabelled images; None if it has none, or is not finished.

    Raises:
        ValueError: A file of the run is damaged.
    """
    if not (folder / POOL_LABELS).is_file() or (images := read_pool(folder)) is None:
        return None
    outputs = read_outputs(folder)
    features = None if outputs is None else outputs.features.get(POOL_PART)
    return PoolLabels(images, read_predictions(folder / POOL_LABELS), features)


def pool_sections(
    folder: Path, options: Mapping[str, Any], log: Sequence[Mapping[str, float]], images: int
) -> list[Section]:
    """Describe the unlabelled images of a run; nothing if it has none.

    Args:
        folder: The run's folder.
        options: Its configuration.
        log: Its log, one row per step.
        images: How many sample images to show; 0 to read none.
    """
    report = read_report(folder) or {"data": {}}
    facts = report["data"].get("pool")
    if not facts:
        return []
    blocks: list[Block] = [Words(one) for one in _in_words(report, options)]
    blocks += _prior(report)
    blocks += _curves(log)
    try:
        labels = read_labels(folder)
        blocks += [] if labels is None else _answers(labels, images)
        blocks += [] if labels is None else _next(labels, folder, images)
    except (OSError, ValueError) as error:
        blocks.append(Words(f"The labels of the unlabelled images cannot be shown: {error}.", True))
    return [Section(TITLE, blocks)]


def _in_words(report: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Say how many images there are, what they are to the test, and whether they helped."""
    facts, pool = report["data"]["pool"], report["pool"] or {}
    told = f"Training saw {count(facts['images'], 'target image')} without labels, from {_origin(facts, options)}. "
    tested = report["accuracy"] is not None
    told += _PROTOCOLS.get(str(report["protocol"]), "") if tested else "There are no test images."
    sentences = (pool.get("sentence"), pool.get("collapse"))
    return [told.strip(), *(f"{text[0].upper()}{text[1:].rstrip('.')}." for text in sentences if text)]


def _origin(facts: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Name the folders, but not where they are."""
    given = options.get("unlabelled") or [facts["folder"]]
    folders = [given] if isinstance(given, (str, Path)) else list(given)
    if [str(folder) for folder in folders] == [_REST]:
        return "those that --shots left over"
    kind = "folder" if len(folders) == 1 else "folders"
    return f"the {kind} {join([printable(Path(str(folder)).name) for folder in folders])}"


def _prior(report: Mapping[str, Any]) -> list[Block]:
    """Show the estimated class shares of the pool beside those of the labelled target images."""
    prior = (report["pool"] or {}).get("prior")
    if not prior:
        return []
    names = list(prior)
    shares = {"unlabelled, estimated": [100 * float(prior[name]) for name in names]}
    labelled = report["data"].get("target")
    if labelled and labelled["images"]:
        of_class = dict(zip(report["data"]["classes"], labelled["per_class"], strict=True))
        shares["labelled target images"] = [100 * of_class.get(name, 0) / labelled["images"] for name in names]
    told = "The classes that the unlabelled images seem to have. Where they differ much, a class is rare or overlooked."
    return [Chart(share_figure(shares, names), "Estimated shares of the classes", told)]


def _curves(log: Sequence[Mapping[str, float]]) -> list[Block]:
    """Draw what the log says about the pool, as far as it does."""
    few = log[:: max(1, len(log) // _MOST_POINTS)]
    drawn = []
    for plot in _CURVES:
        found = {column: [row for row in few if column in row] for column in plot.columns}
        lines = {
            plot.columns[column]: ([row["step"] for row in rows], [plot.factor * row[column] for row in rows])
            for column, rows in found.items()
            if rows
        }
        if lines:
            drawn.append(Chart(lines_figure(lines, plot.unit), plot.title, plot.told))
    return [Side(drawn)] if drawn else []


def _answers(labels: PoolLabels, images: int) -> list[Block]:
    """Show the images that the run is most and least sure of."""
    there = [row for row, file in enumerate(labels.images.files) if file.is_file()]
    order = sorted(there, key=lambda row: -labels.predictions[row].probabilities[0])
    each = min(images // 4, len(order) // 2)
    if not each:
        return []
    surest, least = ([_picture(labels, row) for row in rows] for rows in (order[:each], order[::-1][:each]))
    return [Words("The surest answers:"), Gallery(surest), Words("The least sure answers:"), Gallery(least)]


def _picture(labels: PoolLabels, row: int, note: str = "") -> Picture:
    name, one = labels.images.name(row), labels.predictions[row]
    said = f"{one.labels[0]}, {percent(one.probabilities[0], 0)} sure"
    return Picture(thumbnail(labels.images, row), f"{name}: classified as {one.labels[0]}", said, "", note or name)


def _next(labels: PoolLabels, folder: Path, images: int) -> list[Block]:
    """List the images to label next, among those whose features are stored."""
    if labels.features is None or not len(labels.features.rows):
        return []
    rows = labels.features.rows.tolist()
    known = [labels.predictions[row] for row in rows]
    found = choose(known, labels.features.after, min(SUGGESTED, len(rows)), labelled=labelled_features(folder))
    places = {one.file: row for one, row in zip(known, rows, strict=True)}
    blocks: list[Block] = [
        Words("Label these next: the run doubts them, and each stands for others that look alike."),
        Table("Images to label next", ["rank", "file", "label", "sure, %", "or", "why"], _table(found)),
    ]
    shown = [(places[one.prediction.file], one.why) for one in found]
    if pictures := [_picture(labels, *one) for one in shown if images and labels.images.files[one[0]].is_file()]:
        blocks.insert(1, Gallery(pictures))
    command = f"sohot suggest {shlex.quote(str(folder))} --copy-to to_label"
    return [*blocks, Listing(command, "The command that copies such images, to be sorted:")]


def _table(found: Sequence[SuggestedImage]) -> list[list[Any]]:
    return [
        [number(rank, 0), file, label, number(100 * share), second, why]
        for rank, (file, label, share, second, _, why) in enumerate((one.cells() for one in found), start=1)
    ]
