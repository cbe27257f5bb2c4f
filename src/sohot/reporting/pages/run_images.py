"""The images of a run, found again: samples with predictions, and features before and after training."""

import io
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from ...data.image_batches import iter_batches
from ...data.labelled import LabelledImages, Progress
from ...data.readers import read_item
from ...networks.two_streams import TwoStreams
from ...runs.config import RunConfig
from ...runs.description import stored_config
from ...runs.loaded_run import LoadedRun, open_run
from ...runs.run_data import RunData, digest_names, gather
from ...runs.run_model import build_model
from ...training.errors import TrainingError
from ...training.evaluation import Evaluation
from ..figures.features import DomainFeatures, project, write_feature_figures
from . import plots
from .blocks import Block, Gallery, Picture, Plot, Section, Side, Words, data_uri
from .words import count, percent

LOOKED_AT = 240
"""Number of test images that are classified, to choose samples from."""
MOST_CLASSES = 8
"""Number of classes in a plot of features: as many as there are colours."""
PER_CLASS = 20
BATCH = 32
SIDE = 160
"""Longest side of a thumbnail, in pixels."""
_KINDS = {"pca": "PCA", "tsne": "t-SNE"}
_FEWEST = 8
"""Features of fewer images than this are not drawn."""


class ImagesGone(ValueError):  # noqa: N818  (the images are at fault)
    """The images of a run are missing or have changed; the message says which."""


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


@dataclass(frozen=True)
class FeaturePoints:
    """Features of some images of both domains: one row, class name and domain for each."""

    before: Tensor | None
    after: Tensor
    classes: list[str]
    domains: list[str]


def find_again(
    folder: Path, description: dict[str, Any], progress: Progress | None, trust: bool = False
) -> tuple[RunConfig, RunData]:
    """Find the images that a run trained and tested on.

    Args:
        folder: The run's folder.
        description: Its run.json.
        progress: Called with the progress of checking the images.
        trust: Accept a configuration that names a Python file to import.

    Raises:
        ImagesGone: They are missing or changed: images shown as unseen might have been trained on.
    """
    try:
        config = stored_config(folder, trust=trust)
        data = gather(config, progress)
    except (OSError, ValueError) as error:
        raise ImagesGone(f"The images of the run can no longer be found ({error}).") from None
    known = description["config"]["data"]["files"]
    now = {"source": data.source, "target": data.target}
    for domain, images in now.items():
        if known.get(domain) != (None if images is None else digest_names(images)):
            raise ImagesGone(f"The {domain} images have changed since the run.")
    return config, data


def answers(run: LoadedRun, images: LabelledImages, progress: Progress | None) -> list[Sample]:
    """Classify some test images, chosen with a fixed seed, equally many of each class."""
    rows = spread(images, LOOKED_AT)
    _, logits = _pass(run.model, "target", images.subset(rows), _Stage(progress, "classifying samples", len(rows)))
    probabilities, places = logits.softmax(1).max(1)
    found = zip(rows, places.tolist(), probabilities.tolist(), strict=True)
    return [Sample(row, images.classes[images.labels[row]], run.classes[place], share) for row, place, share in found]


def choose_samples(samples: list[Sample], most: int) -> list[Sample]:
    """Choose samples to show, wrong ones first: half of them, if there are enough."""
    wrong = [one for one in samples if not one.right]
    right = [one for one in samples if one.right]
    taken = wrong[: max(most // 2, most - len(right))]
    return taken + right[: most - len(taken)]


def spread(images: LabelledImages, most: int, seed: int = 0) -> list[int]:
    """Choose rows at random, taking one of each class in turn.

    >>> images = LabelledImages([Path(f"{n}.png") for n in range(9)], [0] * 8 + [1], ["many", "one"])
    >>> sorted(images.labels[row] for row in spread(images, 3))
    [0, 0, 1]
    """
    order = list(range(len(images)))
    random.Random(seed).shuffle(order)
    seen: dict[int, int] = {}
    turns = []
    for row in order:
        turn = seen.get(images.labels[row], 0)
        seen[images.labels[row]] = turn + 1
        turns.append((turn, row))
    return [row for _, row in sorted(turns, key=lambda pair: pair[0])[:most]]


def compute_features(
    run: LoadedRun, config: RunConfig, data: RunData, names: list[str], progress: Progress | None
) -> FeaturePoints:
    """Compute features of some images of these classes after training, and before it (None if impossible)."""
    chosen: dict[str, LabelledImages] = {}
    for domain, images in (("source", data.source), ("target", data.test or data.target)):
        if images is not None and len(few := _of_classes(images, names)):
            chosen[domain] = few
    total = sum(map(len, chosen.values()))
    after = _both(run.model, chosen, _Stage(progress, "features after training", total))
    try:
        untrained = build_model(config, len(run.classes)).eval()
        before = _both(untrained, chosen, _Stage(progress, "features before training", total))
    except (OSError, ValueError, RuntimeError):  # the initial weights may no longer be available
        before = None
    classes = [images.classes[label] for images in chosen.values() for label in images.labels]
    domains = [domain for domain, images in chosen.items() for _ in range(len(images))]
    return FeaturePoints(before, after, classes, domains)


def _of_classes(images: LabelledImages, names: list[str]) -> LabelledImages:
    wanted = [row for row, label in enumerate(images.labels) if images.classes[label] in names]
    few = images.subset(wanted)
    return few.subset(spread(few, PER_CLASS * len(names)))


class _Stage:
    """Counts the images of a stage and reports progress."""

    def __init__(self, progress: Progress | None, name: str, total: int) -> None:
        self.progress, self.name, self.total, self.done = progress, name, total, 0

    def add(self, images: int) -> None:
        self.done += images
        if self.progress is not None:
            self.progress(self.name, self.done, self.total)


def _both(model: TwoStreams, chosen: dict[str, LabelledImages], stage: _Stage) -> Tensor:
    return torch.cat([_pass(model, domain, images, stage)[0] for domain, images in chosen.items()])


@torch.inference_mode()
def _pass(model: TwoStreams, domain: str, images: LabelledImages, stage: _Stage) -> tuple[Tensor, Tensor]:
    """Return the features and the logits of images from one domain's stream."""
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # as in training: quicker on a CPU
    rows, logits = [], []
    for batch in iter_batches(images, model.inputs[domain], BATCH):
        output = model(batch, None) if domain == "source" else model(None, batch)
        rows.append((output.source_features if domain == "source" else output.target_features).float())
        logits.append((output.source_logits if domain == "source" else output.target_logits).float())
        stage.add(len(batch))
    return torch.cat(rows), torch.cat(logits)


def picture_sections(
    folder: Path,
    accuracy: Evaluation | None,
    description: dict[str, Any],
    images: int,
    progress: Progress | None,
    figures: Path | None = None,
    trust: bool = False,
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
    """
    if not images:
        return []
    try:
        run = open_run(folder, trust=trust)
        config, data = find_again(folder, description, progress, trust)
        sections = []
        if data.test is not None:
            looked = answers(run, data.test, progress)
            sections.append(Section("Samples", _samples(data.test, looked, images)))
        names = _interesting(accuracy, list(run.classes))
        points = compute_features(run, config, data, names, progress)
        if len(points.classes) >= _FEWEST:
            sections.append(Section("Features", _clouds(points, len(run.classes))))
            if figures is not None:
                _write_figures(points, names, figures)
    except ImagesGone as gone:
        return [Section("Samples", [Words(f"{gone} Samples and features are not shown.")])]
    except (OSError, ValueError, RuntimeError, TrainingError) as error:
        return [Section("Samples", [Words(f"Samples and features cannot be shown: {error}.")])]
    return sections


def _write_figures(points: FeaturePoints, names: list[str], folder: Path) -> None:
    """Draw the features of both domains as files, before and after training."""
    if len(set(points.domains)) < 2:
        return  # nothing to compare
    labels = torch.tensor([names.index(name) for name in points.classes])
    in_source = torch.tensor([domain == "source" for domain in points.domains])
    panels = {"before training": points.before, "after training": points.after}
    stages = {
        when: DomainFeatures(rows[in_source], labels[in_source], rows[~in_source], labels[~in_source], names)
        for when, rows in panels.items()
        if rows is not None
    }
    write_feature_figures(stages, folder)


def _samples(images: LabelledImages, looked: list[Sample], most: int) -> list[Block]:
    wrong = sum(not one.right for one in looked)
    told = (
        f"Chosen at random from {count(len(looked), 'test image')}, of which the model classified {wrong} wrongly. "
        "Wrong ones come first and are over-represented here."
    )
    return [Words(told), Gallery([_picture(images, one) for one in choose_samples(looked, most)])]


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


def _clouds(points: FeaturePoints, classes: int) -> list[Block]:
    chosen = len(dict.fromkeys(points.classes))
    which = "all classes" if chosen == classes else f"the {chosen} classes with the most mistakes"
    told = (
        f"The features that are aligned, of {count(len(points.classes), 'image')} of {which}: circles are source "
        "images, crosses are target images that were not trained on. If alignment works, the circles and crosses of a "
        "class lie together. Click a class in the legend to hide it."
    )
    blocks: list[Block] = [Words(told)]
    for how, name in _KINDS.items():
        panels = {"before training": points.before, "after training": points.after}
        drawn = [
            Plot(
                plots.cloud(project(rows, how).tolist(), points.classes, points.domains),
                f"{name}, {when}",
                f"Features {when} in the plane, by class and domain.",
                420,
            )
            for when, rows in panels.items()
            if rows is not None
        ]
        blocks.append(Side(drawn))
    if points.before is None:
        blocks.append(Words("The initial weights are not available, so features before training are not shown.", True))
    return blocks


def thumbnail(images: LabelledImages, row: int, side: int = SIDE) -> str:
    """Read an image of a list and return a small JPEG of it as a data URI."""
    image: Image.Image = read_item(images, row, 3, at_least=2 * side)
    image.thumbnail((side, side))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=80, optimize=True)
    return data_uri(content.getvalue(), "image/jpeg")
