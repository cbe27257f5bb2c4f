"""Which images to label next: shown to the model of a run, chosen, listed, and copied to be sorted into classes."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._files import harmless_cell, to_csv
from .._new_folder import building, require_new
from ..data.image_batches import iter_batches
from ..data.labelled import LabelledImages, Progress
from ..data.names import printable
from ..selection.suggestions import UNSURE, suggest, unlike
from .description import is_head
from .loaded_run import LoadedModel
from .predictions import Prediction, likeliest
from .run_outputs import IMAGE_BATCH, read_outputs


@dataclass(frozen=True)
class SuggestedImage:
    """An image to label.

    Attributes:
        prediction: The file, and its two most likely classes with their calibrated probabilities.
        why: Why it should be labelled, in words.
    """

    prediction: Prediction
    why: str

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values, under the names of the columns of `suggestions_csv`."""
        names, values = _COLUMNS[1:], self.cells()
        return dict(zip(names, values, strict=True))

    def cells(self) -> list[Any]:
        """Return path, label, probability, label_2, probability_2 and the reason."""
        first, second = zip(self.prediction.labels, self.prediction.probabilities, strict=True)
        return [printable(self.prediction.file), *first, *second, self.why]


_COLUMNS = ("rank", "path", "label", "probability", "label_2", "probability_2", "why")


def suggest_images(
    model: LoadedModel,
    run: Path,
    images: LabelledImages,
    count: int,
    *,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[SuggestedImage]:
    """Choose images to label next, the most useful first.

    Args:
        model: The run, or the head.
        run: Its folder.
        images: The images to choose from, see `sohot.runs.suggest_candidates`.
        count: How many; all if there are no more.
        seed: Seed of the choice.
        workers: Threads that read images.
        progress: Receives the number of images that the model has seen.
    """
    features, logits = look_at(model, images, workers, progress)
    predictions = likeliest(images.files, logits, model.classes, 2, model.temperature)
    return choose(predictions, features, count, seed, labelled_features(run))


def look_at(
    model: LoadedModel, images: LabelledImages, workers: int | None = None, progress: Progress | None = None
) -> tuple[Tensor, Tensor]:
    """Return the features and the logits of images."""
    size = max(IMAGE_BATCH // model.views, 1)
    batches = iter_batches(images, model.input, size, workers, views=model.views)
    features, logits = list[Tensor](), list[Tensor]()
    for rows, scores in model.features_and_logits(batches):
        features.append(rows.float())
        logits.append(scores.float())
        if progress is not None:
            progress("looking at images", sum(map(len, logits)), len(images))
    return torch.cat(features), torch.cat(logits)


def choose(
    predictions: Sequence[Prediction], features: Tensor, count: int, seed: int = 0, labelled: Tensor | None = None
) -> list[SuggestedImage]:
    """Choose among images that a model has seen.

    Args:
        predictions: The two most likely classes of each, with calibrated probabilities.
        features: Their features, (n, d).
        count: How many; all if there are no more.
        seed: Seed of the choice.
        labelled: Features of labelled target images, (m, d), to tell which images are unlike them; None if unknown.
    """
    rows, shares = features.numpy(), np.array([one.probabilities for one in predictions], dtype=np.float64)
    far = np.zeros(len(rows), dtype=np.bool_) if labelled is None else unlike(rows, labelled.numpy())
    return [
        SuggestedImage(predictions[one.row], reason(predictions[one.row], one.similar, bool(far[one.row])))
        for one in suggest(rows, shares, count, seed)
    ]


def reason(prediction: Prediction, similar: int = 0, far: bool = False) -> str:
    """Say why an image should be labelled.

    Args:
        prediction: Its two most likely classes.
        similar: How many other unsure images look like it.
        far: Whether it is unlike all labelled target images.

    Example:
        >>> reason(Prediction(Path("a.png"), ("mug", "cup"), (0.5, 0.4)), similar=3)
        'uncertain between mug and cup, like 3 others'
    """
    (first, second), (share, next_share) = prediction.labels, prediction.probabilities
    told = f"uncertain between {first} and {second}" if share - next_share < 1 - UNSURE else f"probably {first}"
    if similar:
        told += f", like {similar} {'other' if similar == 1 else 'others'}"
    return f"unlike anything labelled; {told}" if far else told


def labelled_features(run: Path) -> Tensor | None:
    """Read the features of a run's labelled target images; None if it did not store them, or is a head."""
    outputs = None if is_head(run) else read_outputs(run)
    return None if outputs is None or "target" not in outputs.features else outputs.features["target"].after


def suggestions_csv(suggestions: Sequence[SuggestedImage]) -> str:
    r"""Write suggestions as CSV, safe to open in a spreadsheet; columns as in `predictions_csv`, rank first, why last.

    >>> one = SuggestedImage(Prediction(Path("a.png"), ("mug", "cup"), (0.5, 0.25)), "uncertain between mug and cup")
    >>> print(suggestions_csv([one]), end="")
    rank,path,label,probability,label_2,probability_2,why
    1,a.png,mug,0.500000,cup,0.250000,uncertain between mug and cup
    """
    rows: list[Sequence[Any]] = [_COLUMNS]
    for rank, one in enumerate(suggestions, start=1):
        file, *rest = (f"{cell:.6f}" if isinstance(cell, float) else cell for cell in one.cells())
        rows.append([rank, harmless_cell(file, "./"), *rest])
    return to_csv(rows)


def copy_images(files: Sequence[Path], folder: Path, classes: Sequence[str]) -> None:
    """Copy images into a new folder, ready to be sorted: one empty folder for each class lies beside them.

    Their names begin with their rank. The folder appears once it is complete.

    Args:
        files: The images, the most useful first.
        folder: The folder, missing or empty.
        classes: Names of the classes.
    """
    require_new(folder, "--copy-to")
    with building(folder) as hidden:
        width = len(str(len(files)))
        for rank, file in enumerate(files, start=1):
            shutil.copyfile(file, hidden / f"{rank:0{width}}-{file.name}")
        for name in classes:
            if name == Path(name).name and not name.startswith("."):  # a stranger's run may name anything
                (hidden / name).mkdir(exist_ok=True)
