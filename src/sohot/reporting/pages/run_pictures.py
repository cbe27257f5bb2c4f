"""What a run's report shows of images: samples with the model's answers, and features before and after training."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ...data.labelled import LabelledImages, Progress
from ...runs.loaded_run import open_run
from ...training.errors import TrainingError
from ..figures.features import DomainFeatures, write_feature_figures
from ..projection import project
from . import plots
from .blocks import Block, Gallery, Picture, Plot, Section, Side, Words
from .pictures import thumbnail
from .run_images import MOST_CLASSES, FeatureSet, ImagesGone, Sample, answers, choose_samples, features, find_again
from .words import count, percent

_KINDS = {"pca": "PCA", "tsne": "t-SNE"}
_FEWEST = 8
"""Fewer images than this make no picture of features."""


def picture_sections(
    folder: Path,
    found: Mapping[str, Any],
    description: dict[str, Any],
    images: int,
    progress: Progress | None,
    figures: Path | None = None,
) -> list[Section]:
    """Show samples and features, or say in a sentence why not.

    Args:
        folder: The run's folder.
        found: What `describe_run` said.
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
        names = _interesting(found["accuracy"], list(run.classes))
        points = features(run, config, data, names, progress)
        if len(points.classes) >= _FEWEST:
            sections.append(Section("Features", _clouds(points, len(run.classes))))
            if figures is not None:
                _write_figures(points, names, figures)
    except ImagesGone as gone:
        return [Section("Samples", [Words(f"{gone} So there are neither samples nor features to show.")])]
    except (OSError, ValueError, RuntimeError, TrainingError) as error:
        return [Section("Samples", [Words(f"Samples and features cannot be shown: {error}.")])]
    return sections


def _write_figures(points: FeatureSet, names: list[str], folder: Path) -> None:
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


def _interesting(accuracy: Mapping[str, Any] | None, classes: list[str]) -> list[str]:
    """Choose the classes whose features are shown: those with the most mistakes, in the order of the classes."""
    if accuracy is None or len(classes) <= MOST_CLASSES:
        return classes[:MOST_CLASSES]
    wrong = {
        name: sum(row) - row[place]
        for place, (name, row) in enumerate(zip(classes, accuracy["confusion"], strict=True))
    }
    most = sorted(classes, key=lambda name: -wrong[name])[:MOST_CLASSES]
    return [name for name in classes if name in most]


def _clouds(points: FeatureSet, classes: int) -> list[Block]:
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
