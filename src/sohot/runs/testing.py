"""The accuracy of a model on images in folders."""

from typing import Any

import torch
from torch import Tensor

from ..data.labelled import LabelledImages
from ..data.loading import ImageInputs
from ..networks.model import TwoStreams
from ..training.evaluation import evaluate, predict_logits
from .run_data import Progress

BATCH = 32


def accuracy_on(
    model: TwoStreams, images: LabelledImages, workers: int | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Classify images by the target stream and compare with the truth.

    Args:
        model: The trained streams.
        images: Images with their classes, in the numbers the model was trained with.
        workers: Threads that read images.
        progress: Told how many images were read.

    Returns:
        Accuracies with their 95 % intervals and the confusion matrix, as they fit into JSON.
    """
    inputs = Watched(ImageInputs(images, model.inputs["target"], workers), progress)
    logits = predict_logits(model, inputs, batch_size=BATCH)
    return evaluate(logits, torch.tensor(images.labels), images.classes).as_json()


class Watched:
    """Inputs that tell how many rows were read."""

    def __init__(self, inputs: ImageInputs, progress: Progress | None) -> None:
        self.inputs, self.progress, self.done = inputs, progress, 0

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, rows: Tensor) -> Tensor:
        """Read some rows."""
        self.done += len(rows)
        if self.progress is not None:
            self.progress("testing", self.done, len(self))
        return self.inputs.batch(rows)
