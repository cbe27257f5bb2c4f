"""The images of a run and what its network makes of them: stored with the run, or found and computed again."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...data.folders import holds_more_than
from ...data.labelled import LabelledImages, Progress
from ...data.protocols.split import check_seal, pool_from_dict, read_content, side_from_dict
from ...networks.two_passes import copy_second
from ...runs.config import RunConfig
from ...runs.description import stored_config
from ...runs.loaded_run import open_run
from ...runs.run_data import RunData, digest_names, gather
from ...runs.run_model import build_model
from ...runs.run_outputs import OutputRecorder, RunOutputs, Shown, read_outputs
from ...runs.split_file import POOL, SOURCE, SPLIT, TARGET, TEST

LOOKED_AT = 240
"""Number of test images that are classified, if a run did not store its outputs."""
MOST_SEARCHED = 200_000
"""Number of files in a folder that a report looks through, if a run did not store which of them are its images."""
POOL_PART = "pool"
"""The name of the outputs of unlabelled images, which `run_pool` reads."""
PARTS = {"source": SOURCE, "target": TARGET, "test": TEST}
"""The images that are shown, by the names of their outputs: source and target images that train, and test images."""


class ImagesGone(ValueError):  # noqa: N818  (the images are at fault)
    """The images of a run are missing or have changed; the message says which."""


@dataclass(frozen=True)
class RunImages:
    """The images of a run and the outputs of its network.

    Attributes:
        images: Images by part, those there are; also the "pool", whose labels nobody knows.
        outputs: The logits of the test images and the features of some of all parts, by their rows.
        has_before: Whether the features before training are those of the initial weights.
    """

    images: dict[str, LabelledImages]
    outputs: RunOutputs
    has_before: bool = True

    def __post_init__(self) -> None:
        logits = self.outputs.logits
        rows = {part: features.rows for part, features in self.outputs.features.items() if part != POOL_PART}
        fits = all(part in self.images and int(kept.max()) < len(self.images[part]) for part, kept in rows.items())
        if not fits or (logits is not None and len(logits) != len(self.images.get("test", ()))):
            raise ValueError("the stored outputs belong to other images")


def load_images(folder: Path, description: dict[str, Any], progress: Progress | None, trust: bool = False) -> RunImages:
    """Read the images and outputs of a run; for a run that did not store them, find and compute them.

    Args:
        folder: The run's folder.
        description: Its run.json.
        progress: Called with the progress of what takes long.
        trust: Import the Python file that the run names as its network.

    Raises:
        ImagesGone: They have to be computed, but images are missing or changed.
        ValueError: A file of the run is damaged.
    """
    stored = stored_images(folder)
    return _compute(folder, description, progress, trust) if stored is None else stored


def stored_images(folder: Path) -> RunImages | None:
    """Read the images and outputs that a run stored; None if it did not. Neither the images nor its model are read.

    Raises:
        ValueError: A file of the run is damaged.
    """
    outputs = read_outputs(folder)
    if outputs is None or not (folder / SPLIT).is_file():
        return None
    content = read_content(folder / SPLIT)
    try:
        check_seal(content)
        sides, folders, classes = content["sides"], content["folders"], tuple(content["classes"])
        images = {
            part: side_from_dict(sides[side], classes, Path(folders[side]))
            for part, side in PARTS.items()
            if side in folders
        }
        if POOL in folders:
            images["pool"] = pool_from_dict(sides[POOL], Path(folders[POOL]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder / SPLIT} is damaged: {type(error).__name__} {error}") from None
    return RunImages(images, outputs)


def _compute(folder: Path, description: dict[str, Any], progress: Progress | None, trust: bool) -> RunImages:
    """Show images to the network again: some of the test images, and some of those that train."""
    run = open_run(folder, trust=trust)
    config, data = find_again(folder, description, progress, trust)
    try:
        model, has_before = build_model(config, len(run.classes)), True
        copy_second(run.model, model)
    except (OSError, ValueError, RuntimeError):  # the initial weights may no longer be available
        model, has_before = run.model, False
    recorder = OutputRecorder(model, config.read_threads)
    model.load_state_dict(run.model.state_dict())
    test = None if data.test is None else data.test.subset(spread(data.test, LOOKED_AT))
    outputs = recorder.record(Shown(data.source), Shown(data.target), Shown(test), progress=progress)
    parts = {"source": data.source, "target": data.target, "test": test}
    return RunImages({part: images for part, images in parts.items() if images is not None}, outputs, has_before)


def find_again(
    folder: Path, description: dict[str, Any], progress: Progress | None, trust: bool = False
) -> tuple[RunConfig, RunData]:
    """Find the images that a run trained and tested on by its configuration.

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
        named = (*config.sources(), *config.pools(), config.target, config.target_test)
        places = [place for place in named if place is not None]
        for place in dict.fromkeys(places):
            if progress is not None:  # the run names them, and it may be a stranger's
                progress(f"looking for images in {place}", 1, 1)
            if holds_more_than(place, MOST_SEARCHED):
                raise ValueError(f"{place} holds more than {MOST_SEARCHED:,} files")
        data = gather(config, progress)
    except (OSError, ValueError) as error:
        raise ImagesGone(f"The images of the run can no longer be found ({error}).") from None
    known = description["config"]["data"]["files"]
    now = {"source": data.source, "target": data.target}
    for domain, images in now.items():
        if known.get(domain) != (None if images is None else digest_names(images)):
            raise ImagesGone(f"The {domain} images have changed since the run.")
    return config, data


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
