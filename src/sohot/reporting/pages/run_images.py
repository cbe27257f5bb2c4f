"""The images of a run, found again: what the model says of some of them, and where their features lie."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...data.image_batches import iter_batches
from ...data.labelled import LabelledImages, Progress
from ...networks.two_streams import TwoStreams
from ...runs.building import build_model
from ...runs.config import RunConfig
from ...runs.description import CONFIG, read_config
from ...runs.loaded_run import LoadedRun
from ...runs.run_data import RunData, digest_names, gather

LOOKED_AT = 240
"""Test images that are classified to choose samples from."""
MOST_CLASSES = 8
"""Classes in a plot of features: as many as there are colours."""
PER_CLASS = 20
BATCH = 32


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
class FeatureSet:
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


def features(
    run: LoadedRun, config: RunConfig, data: RunData, names: list[str], progress: Progress | None
) -> FeatureSet:
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
    return FeatureSet(before, after, classes, domains)


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
