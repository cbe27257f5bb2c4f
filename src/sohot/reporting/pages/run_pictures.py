"""The pictures of a run: sample images with predictions, and features before and after training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...data.labelled import LabelledImages, Progress
from ...training.errors import TrainingError
from ...training.evaluation import Evaluation
from ..figures.canvas import save_figure
from ..figures.features import MOST_CLASSES, FeaturePoints, feature_figure
from .blocks import Block, Chart, Gallery, Picture, Section, Words
from .run_images import POOL_PART, ImagesGone, RunImages, load_images, spread
from .run_pool import PoolLabels, read_labels
from .thumbnails import thumbnail
from .words import count, percent

_KINDS = {"pca": "PCA", "tsne": "t-SNE"}
_FEWEST = 8
"""Features of fewer images than this are not drawn."""


@dataclass(frozen=True)
class Sample:
    """A test image with the model's prediction."""

    row: int
    truth: str
    answer: str
    probability: float

    @property
    def right(self) -> bool:
        """Whether the prediction is correct."""
        return self.truth == self.answer


def picture_sections(
    folder: Path,
    accuracy: Evaluation | None,
    description: dict[str, Any],
    images: int,
    progress: Progress | None,
    figures: Path | None = None,
    trust: bool = False,
    temperature: float = 1.0,
) -> list[Section]:
    """Show samples and features, or say why there are none.

    Args:
        folder: The run's folder.
        accuracy: Accuracy of the run; None if nothing was tested.
        description: The run's run.json.
        images: How many samples to show; 0 for no section at all.
        progress: Called with the progress.
        figures: Folder for figures of the features; None to write none.
        trust: Import the Python file that the run names as its network.
        temperature: What logits are divided by, so that probabilities are calibrated.
    """
    if not images:
        return []
    try:
        run = load_images(folder, description, progress, trust)
        classes = next(iter(run.images.values())).classes
        names = _interesting(accuracy, list(classes))
        points = choose_points(run, names, read_labels(folder))
        sections = _sample_sections(run, images, temperature)
        if len(points.classes) >= _FEWEST:
            sections.append(Section("Features", _feature_blocks(points, len(classes), figures)))
    except ImagesGone as gone:
        return [Section("Samples", [Words(f"{gone} Samples and features are not shown.")])]
    except (OSError, ValueError, RuntimeError, TrainingError) as error:
        return [Section("Samples", [Words(f"Samples and features cannot be shown: {error}.")])]
    return sections


def _sample_sections(run: RunImages, most: int, temperature: float) -> list[Section]:
    if (images := run.images.get("test")) is None or run.outputs.logits is None:
        return []
    if missing := sum(not file.is_file() for file in images.files):
        told = f"{missing:,} of {count(len(images), 'test image')} can no longer be found. Samples are not shown."
        return [Section("Samples", [Words(told)])]
    samples = answers(images, run.outputs.logits / temperature)
    wrong = sum(not one.right for one in samples)
    told = (
        f"Chosen at random from {count(len(samples), 'test image')}, of which the model classified {wrong:,} wrongly. "
        "Wrong ones come first and are over-represented here."
    )
    shown = [_picture(images, one) for one in choose_samples(samples, most)]
    return [Section("Samples", [Words(told), Gallery(shown)])]


def answers(images: LabelledImages, logits: Tensor) -> list[Sample]:
    """Return the predictions of test images in a random order with a fixed seed, one of each class in turn."""
    probabilities, places = (values.tolist() for values in logits.softmax(1).max(1))
    return [
        Sample(row, images.classes[images.labels[row]], images.classes[places[row]], probabilities[row])
        for row in spread(images, len(images))
    ]


def choose_samples(samples: list[Sample], most: int) -> list[Sample]:
    """Choose samples to show, wrong ones first: half of them, if there are enough."""
    wrong = [one for one in samples if not one.right]
    right = [one for one in samples if one.right]
    taken = wrong[: max(most // 2, most - len(right))]
    return taken + right[: most - len(taken)]


def _picture(images: LabelledImages, one: Sample) -> Picture:
    name = images.name(one.row)
    said = f"{one.answer}, {percent(one.probability, 0)} sure"
    caption = said if one.right else f"{said}; it is {one.truth}"
    alt = f"{name}: {'correctly' if one.right else 'wrongly'} classified as {one.answer}"
    return Picture(thumbnail(images, one.row), alt, caption, "right" if one.right else "wrong", name)


def _interesting(accuracy: Evaluation | None, classes: list[str]) -> list[str]:
    """Choose the classes whose features are shown: those with the most mistakes, in class order."""
    if accuracy is None or len(classes) <= MOST_CLASSES:
        return classes[:MOST_CLASSES]
    wrong = {
        name: sum(row) - row[place] for place, (name, row) in enumerate(zip(classes, accuracy.confusion, strict=True))
    }
    most = sorted(classes, key=lambda name: -wrong[name])[:MOST_CLASSES]
    return [name for name in classes if name in most]


def choose_points(run: RunImages, names: Sequence[str], pool: PoolLabels | None = None) -> FeaturePoints:
    """Choose the features of some classes.

    Args:
        run: The images and their features.
        names: The classes.
        pool: The unlabelled images, shown by the classes that the run gives them; None for none.
    """
    before, after, classes, parts = [], [], [], []
    for part, features in run.outputs.features.items():
        answers = _classes_of(run, part, pool)
        for place, row in enumerate(features.rows.tolist()):
            if (name := answers.get(row)) in names:
                before.append(features.before[place])
                after.append(features.after[place])
                classes.append(str(name))
                parts.append(part)
    stages = {"before training": torch.stack(before), "after training": torch.stack(after)} if after else {}
    if stages and not run.has_before:
        del stages["before training"]
    elif stages and torch.equal(*stages.values()):  # only a classifier trained
        stages = {"frozen": stages["after training"]}
    return FeaturePoints(stages, classes, parts, [name for name in names if name in classes])


def _classes_of(run: RunImages, part: str, pool: PoolLabels | None) -> dict[int, str]:
    """Return the classes of the images to show, by row; a test image that is in the pool is shown as one of it."""
    if part == POOL_PART:
        return {} if pool is None else {row: one.labels[0] for row, one in enumerate(pool.predictions)}
    images, seen = run.images[part], set[Path]() if pool is None else {*pool.images.files}
    shown = (row for row, file in enumerate(images.files) if part != "test" or file not in seen)
    return {row: images.classes[images.labels[row]] for row in shown}


def _feature_blocks(points: FeaturePoints, classes: int, figures: Path | None) -> list[Block]:
    chosen = len(points.names)
    which = "all classes" if chosen == classes else f"the {chosen} classes with the most mistakes"
    told = (
        f"The features that are aligned, of {count(len(points.classes), 'image')} of {which}. Circles are source "
        "images and stars are target images that trained; crosses are target images that did not. If alignment works, "
        "the marks of a class lie together."
    )
    if "pool" in points.parts:
        told += " Triangles are unlabelled target images, in the colours of the classes that the run gives them."
    blocks: list[Block] = [Words(told)]
    for how, name in _KINDS.items():
        figure = feature_figure(points, how)
        if figures is not None:
            save_figure(figure, figures, how)
        blocks.append(Chart(figure, name, f"Features in the plane, by class and domain: {', '.join(points.stages)}."))
    if not {"before training", "frozen"} & {*points.stages}:
        blocks.append(Words("The initial weights are not available, so features before training are not shown.", True))
    return blocks
