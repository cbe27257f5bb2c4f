"""How well a run labels images whose classes are known."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from ..data.labelled import Progress
from ..runs.description import accuracy_name
from ..runs.loaded_run import LoadedModel, images_for
from ..runs.run_outputs import logits_of
from ..runs.run_pool import fit_to_test
from ..selection.calibration import Effect
from ..selection.held_out import HeldOut
from ..training.evaluation import Evaluation, evaluate
from .usable_run import share_in_words


class Tested(NamedTuple):
    """How well a run labels images whose classes are known.

    Attributes:
        accuracy: Share of the images labelled correctly.
        interval: Its 95 % interval.
        images: Number of images.
        protocol: "transductive" if images are among the run's unlabelled ones, "inductive" if none is, "supervised"
            if the run has none.
        evaluation: The same by class, and which classes are taken for which.
        calibration: How honest the probabilities are.
        left_out: Images that were not used, with the reason.
        notes: What else to know.
    """

    accuracy: float
    interval: tuple[float, float]
    images: int
    protocol: str
    evaluation: Evaluation
    calibration: Effect
    left_out: list[str]
    notes: list[str]

    def __str__(self) -> str:
        return f"{accuracy_name(self.protocol)} {share_in_words(self.accuracy, self.interval, self.images)}"


def tested_on(run: LoadedModel, folder: Path, images: Path, leave_out: bool, progress: Progress | None) -> Tested:
    """Test a run or a head.

    Args:
        run: The run, or the head.
        folder: Its folder.
        images: Class folders, or a list.
        leave_out: Skip classes that the run does not know, instead of refusing.
        progress: Receives the number of images checked and tested.
    """
    tested, left_out, notes = images_for(run, images, leave_out=leave_out, progress=progress)
    tested, protocol = fit_to_test(folder, tested, notes)
    logits = logits_of(run, tested, progress=progress)
    found = evaluate(logits, torch.tensor(tested.labels), tested.classes)
    rows = HeldOut(logits.numpy(), np.array(tested.labels))
    effect = Effect.of(rows, run.calibration, run.folded_temperature)
    reasons = [str(one) for one in left_out]
    return Tested(found.micro, found.interval95, found.rows, protocol, found, effect, reasons, notes)
