"""The images of a run, found again: samples with the model's answers, and features before and after training."""

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
from ...runs.building import build_model
from ...runs.config import RunConfig
from ...runs.description import CONFIG, read_config
from ...runs.loaded_run import LoadedRun, open_run
from ...runs.run_data import RunData, digest_names, gather
from ...training.errors import TrainingError
from ...training.evaluation import Evaluation
from ..figures.features import DomainFeatures, project, write_feature_figures
from . import plots
from .blocks import Block, Gallery, Picture, Plot, Section, Side, Words, data_uri
from .words import count, percent

LOOKED_AT = 240
"""Test images that are classified to choose samples from."""
MOST_CLASSES = 8
"""Classes in a plot of features: as many as there are colours."""
PER_CLASS = 20
BATCH = 32
SIDE = 160
"""Longest side of a small copy, in pixels."""
_KINDS = {"pca": "PCA", "tsne": "t-SNE"}
_FEWEST = 8
"""Fewer images than this make no picture of features."""


class ImagesGone(ValueError):  # noqa: N818  (it is the images that are at fault)
    """The images of a run are not there any more, or have changed; the sentence says what is missing."""


@dataclass(frozen=True)
class Sample:
    """A test image with the model's answer."""

    row: int
    truth: str
    answer: str
    probability: float

    @property
    def right(self) -> bool:
        """Whether the answer is true."""
        return self.truth == self.answer


@dataclass(frozen=True)
class FeaturePoints:
    """Features of some images of both domains: one row, one class name and one domain for each."""

    before: Tensor | None
    after: Tensor
    classes: list[str]
    domains: list[str]


def find_again(folder: Path, description: dict[str, Any], progress: Progress | None) -> tuple[RunConfig, RunData]:
    """Find the images that a run trained and tested on.

    Args:
        folder: The run's folder.
        description: Its run.json.
        progress: Told how far the check of the images has come.

    Raises:
        ImagesGone: They are not there, or not the same: what is shown as unseen would then not be.
    """
    try:
        config = RunConfig.from_values(read_config(folder / CONFIG))
        data = gather(config, progress)
    except (OSError, ValueError) as error:
        raise ImagesGone(f"The images of the run are not to be found any more ({error}).") from None
    known = description["config"]["data"]["files"]
    now = {"source": data.source, "target": data.target}
    for domain, images in now.items():
        if known.get(domain) != (None if images is None else digest_names(images)):
            raise ImagesGone(f"The {domain} images have changed since the run, so none of them are shown.")
    return config, data


def answers(run: LoadedRun, images: LabelledImages, progress: Progress | None) -> list[Sample]:
    """Ask the model for the class of some test images, each class equally often, chosen by a fixed seed."""
    rows = spread(images, LOOKED_AT)
    _, logits = _pass(run.model, "target", images.subset(rows), _Stage(progress, "classifying samples", len(rows)))
    probabilities, places = logits.softmax(1).max(1)
    found = zip(rows, places.tolist(), probabilities.tolist(), strict=True)
    return [Sample(row, images.classes[images.labels[row]], run.classes[place], share) for row, place, share in found]


def choose_samples(samples: list[Sample], most: int) -> list[Sample]:
    """Choose samples to show, half of them wrong if there are as many, the wrong ones first."""
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
    """Compute features of some images of these classes, before training (None if it cannot be had) and after."""
    chosen: dict[str, LabelledImages] = {}
    for domain, images in (("source", data.source), ("target", data.test or data.target)):
        if images is not None and len(few := _of_classes(images, names)):
            chosen[domain] = few
    total = sum(map(len, chosen.values()))
    after = _both(run.model, chosen, _Stage(progress, "features after training", total))
    try:
        untrained = build_model(config, len(run.classes)).eval()
        before = _both(untrained, chosen, _Stage(progress, "features before training", total))
    except (OSError, ValueError, RuntimeError):  # the weights it began with need not be here any more
        before = None
    classes = [images.classes[label] for images in chosen.values() for label in images.labels]
    domains = [domain for domain, images in chosen.items() for _ in range(len(images))]
    return FeaturePoints(before, after, classes, domains)


def _of_classes(images: LabelledImages, names: list[str]) -> LabelledImages:
    wanted = [row for row, label in enumerate(images.labels) if images.classes[label] in names]
    few = images.subset(wanted)
    return few.subset(spread(few, PER_CLASS * len(names)))


class _Stage:
    """Counts images of a stage and tells of them."""

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
    """Give the features and the logits of images in one domain's stream."""
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
) -> list[Section]:
    """Show samples and features, or say in a sentence why not.

    Args:
        folder: The run's folder.
        accuracy: How well the run does; None where nothing was tested.
        description: The run's run.json.
        images: How many samples to show; 0 for no section at all.
        progress: Told how far it has come.
        figures: Folder for pictures of the features as files; None for none.
    """
    if not images:
        return []
    try:
        run = open_run(folder)
        config, data = find_again(folder, description, progress)
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
        return [Section("Samples", [Words(f"{gone} So there are neither samples nor features to show.")])]
    except (OSError, ValueError, RuntimeError, TrainingError) as error:
        return [Section("Samples", [Words(f"Samples and features cannot be shown: {error}.")])]
    return sections


def _write_figures(points: FeaturePoints, names: list[str], folder: Path) -> None:
    """Draw the features of both domains as files, before and after training."""
    if len(set(points.domains)) < 2:
        return  # there is nothing to compare
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
        f"Chosen at random from {count(len(looked), 'test image')}, of which the model named {wrong} wrongly; "
        f"here the wrong ones come first and are more frequent than they are in truth."
    )
    return [Words(told), Gallery([_picture(images, one) for one in choose_samples(looked, most)])]


def _picture(images: LabelledImages, one: Sample) -> Picture:
    name = images.name(one.row)
    said = f"{one.answer}, {percent(one.probability, 0)} sure"
    caption = said if one.right else f"{said}; it is {one.truth}"
    alt = f"{name}: {'rightly' if one.right else 'wrongly'} named {one.answer}"
    return Picture(thumbnail(images, one.row), alt, caption, "right" if one.right else "wrong", name)


def _interesting(accuracy: Evaluation | None, classes: list[str]) -> list[str]:
    """Choose the classes whose features are shown: those with the most mistakes, in the order of the classes."""
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
        f"What the alignment sees of {count(len(points.classes), 'image')} of {which}: circles are source images, "
        "crosses are target images that were not trained on. Where alignment works, the circles and crosses of a class "
        "come to lie together. A click in the legend hides a class."
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
        blocks.append(
            Words("The weights that training began with are not at hand, so there is no picture of before.", True)
        )
    return blocks


def thumbnail(images: LabelledImages, row: int, side: int = SIDE) -> str:
    """Read an image of a list and give a small JPEG of it as an address."""
    image: Image.Image = read_item(images, row, 3, at_least=2 * side)
    image.thumbnail((side, side))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=80, optimize=True)
    return data_uri(content.getvalue(), "image/jpeg")
