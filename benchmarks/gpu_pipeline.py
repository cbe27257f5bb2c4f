"""How busy a GPU is kept by images that are decoded and augmented while it trains."""

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from gpu_steps import ALIGNED, BLOCK, CLASSES, ROWS, SOURCE, TARGET, Case, Ever, block, network, trainer_of
from timing import table
from trunk_cache import make_images

from sohot.data import ImageInputs, LabelledImages
from sohot.runs.training_inputs import Augmented


def found_images(folder: Path) -> LabelledImages:
    """The images below a folder, as many as two batches have, of whatever class."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))[: 2 * ROWS]
    if len(files) < ROWS:
        raise SystemExit(f"{folder} holds {len(files)} images, fewer than the {ROWS} of a batch")
    return LabelledImages(files, [n % CLASSES for n in range(len(files))], [f"class {c}" for c in range(CLASSES)])


def busy_share(case: Case, images: LabelledImages, workers: int, resident: float) -> tuple[float, float]:
    """Milliseconds of a step that decodes and augments its images, and the share of it in which the GPU has work."""
    inputs = [
        Augmented(ImageInputs(images.subset(range(start, start + CLASSES * each)), network().input, workers))
        for start, each in ((0, SOURCE), (CLASSES * SOURCE, TARGET))
    ]
    with trainer_of(case, ALIGNED, *inputs) as trainer:
        trainer.batches = Ever(len(inputs[0]), len(inputs[1]))
        block(trainer, 0, 3)
        began = time.perf_counter()
        block(trainer, 3, 2 * BLOCK)
        took = 1000 * (time.perf_counter() - began) / (2 * BLOCK)
    return took, min(1.0, resident / took)


def pipeline_table(images: Path | None, case: Case, resident: float) -> list[str]:
    """Measure the input pipeline: images are decoded and augmented while the card works.

    Args:
        images: Folder of images; None for made-up ones.
        case: What trains.
        resident: Milliseconds of the same step where the images lie on the GPU already.
    """
    rows = []
    with TemporaryDirectory() as folder:
        found = make_images(Path(folder), ROWS) if images is None else found_images(images)
        for workers in sorted({8, os.cpu_count() or 8}):
            took, share = busy_share(case, found, workers, resident)
            rows.append([str(workers), f"{took:.1f}", f"{ROWS / took * 1000:.0f}", f"{100 * share:.0f} %"])
    what = "made-up JPEG files of 400 x 300" if images is None else f"images of {images}"
    lines = ["## Input pipeline", "", f"{case}, aligned; {what}, read, cropped and mirrored anew in each step.", ""]
    return [*lines, *table(["threads that read", "ms a step", "images/s", "GPU busy"], rows), ""]
