"""Measure how busy a GPU is while images are augmented during training: decoded in each step, or once.

python benchmarks/gpu_pipeline.py [--images DIR]
"""

import argparse
import os
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from gpu_steps import (
    ALIGNED,
    BLOCK,
    CLASSES,
    ROWS,
    SOURCE,
    TARGET,
    Case,
    Ever,
    block,
    network,
    resident_inputs,
    trainer_of,
)
from timing import table
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from trunk_cache import make_images

from sohot.data import AugmentedImages, LabelledImages
from sohot.training import Inputs
from sohot.training.trainer import Trainer

CUDA = torch.device("cuda", 0)


def nothing() -> float:
    return 0.0


def everything() -> float:
    return float("inf")


# How the images get to the GPU: arguments of AugmentedImages.
WAYS: dict[str, dict[str, Any]] = {
    "decoded and cropped in threads, in each step": {"room": nothing},
    "decoded once, cropped in threads": {"room": everything},
    "decoded once, sent and cropped on the GPU in each step": {"room": everything, "gpu": CUDA},
    "decoded once, kept and cropped on the GPU": {"room": nothing, "gpu": CUDA, "gpu_room": everything},
}


def found_images(folder: Path) -> LabelledImages:
    """Collect images under a folder, at most two batches of them, regardless of class."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))[: 2 * ROWS]
    if len(files) < ROWS:
        raise SystemExit(f"{folder} holds {len(files)} images, fewer than the {ROWS} of a batch")
    return LabelledImages(files, [n % CLASSES for n in range(len(files))], [f"class {c}" for c in range(CLASSES)])


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the total time covered by spans that may overlap."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def busy_share(inputs: list[Inputs], case: Case) -> tuple[float, float]:
    """Return the milliseconds per training step and the share of time in which a kernel or a copy runs on the GPU."""
    with trainer_of(case, ALIGNED, *inputs) as trainer:
        trainer.batches = Ever(len(inputs[0]), len(inputs[1]))
        block(trainer, 0, 3)  # decodes every image
        began = time.perf_counter()
        block(trainer, 3, 2 * BLOCK)
        took = 1000 * (time.perf_counter() - began) / (2 * BLOCK)
        return took, profiled(trainer, 3 + 2 * BLOCK, BLOCK)


def profiled(trainer: Trainer, first: int, steps: int) -> float:
    """Return the share of the time in which a kernel or a copy runs on the GPU, over some steps."""
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        began = time.perf_counter()
        block(trainer, first, steps)
        span = 1e6 * (time.perf_counter() - began)
    work = [one for one in recorded.events() if one.device_type == DeviceType.CUDA and not one.is_user_annotation]
    return covered((one.time_range.start, one.time_range.end) for one in work) / span


def augmented_inputs(images: LabelledImages, way: dict[str, Any], workers: int) -> list[Inputs]:
    """Return the source and target of a batch."""
    return [
        AugmentedImages(
            images.subset(range(start, start + CLASSES * each)), network("resnet50").input, workers=workers, **way
        )
        for start, each in ((0, SOURCE), (CLASSES * SOURCE, TARGET))
    ]


def pipeline_table(images: Path | None, case: Case) -> list[str]:
    """Measure the input pipeline: images are augmented while the GPU works.

    Args:
        images: Folder of images; None to generate them.
        case: What trains.
    """
    rows = []

    def add(name: str, workers: str, inputs: list[Inputs]) -> None:
        took, share = busy_share(inputs, case)
        rows.append([name, workers, f"{took:.1f}", f"{ROWS / took * 1000:.0f}", f"{100 * share:.0f} %"])

    with TemporaryDirectory() as folder:
        found = make_images(Path(folder), ROWS) if images is None else found_images(images)
        for name, way in WAYS.items():
            for workers in [8] if "gpu" in way else sorted({8, os.cpu_count() or 8}):  # there they only decode
                add(name, str(workers), augmented_inputs(found, way, workers))
        add("already on the GPU, not augmented", "–", resident_inputs(case))
    what = "generated JPEG files of 400 x 300" if images is None else f"images of {images}"
    lines = ["## Input pipeline", "", f"{case}, aligned; {what}, cropped and mirrored in each step.", ""]
    lines += [
        "GPU busy: share of the time in which a kernel or a copy runs, by torch's profiler, in steps of their own."
    ]
    return [*lines, "", *table(["images", "threads", "ms per step", "images/s", "GPU busy"], rows), ""]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, help="folder of images (default: generated ones)")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a CUDA GPU")
    print("\n".join(pipeline_table(options.images, Case("all", "bf16-mixed"))))


if __name__ == "__main__":
    main()
