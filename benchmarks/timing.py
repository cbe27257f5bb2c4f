"""Timing and memory for the benchmarks: candidates take turns, so that a noisy moment affects all of them."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from sohot.data import LabelledImages

Step = Callable[[], Tensor]
Name = TypeVar("Name")


class Batch(NamedTuple):
    num_classes: int
    arguments: tuple[Tensor, ...]  # (source, source_labels, target, target_labels), or just features

    @property
    def features(self) -> list[Tensor]:
        return [x for x in self.arguments if x.is_floating_point()]

    @property
    def feature_bytes(self) -> int:
        return sum(x.numel() * x.element_size() for x in self.features)


def make_batch(classes: int, source: int, target: int, size: int) -> Batch:
    """Make random features with shuffled rows."""
    generator = torch.Generator().manual_seed(0)
    arguments: list[Tensor] = []
    for rows in (source, target):
        labels = torch.arange(classes).repeat_interleave(rows)[torch.randperm(classes * rows, generator=generator)]
        features = torch.randn(classes * rows, size, generator=generator) + torch.randn(size, generator=generator)
        arguments += [features.requires_grad_(), labels]
    return Batch(classes, tuple(arguments))


def once(step: Step, batch: Batch) -> float:
    """Return the seconds of one forward and backward pass."""
    for x in batch.features:
        x.grad = None
    start = time.perf_counter()
    step().backward()
    return time.perf_counter() - start


def in_turns(steps: dict[Name, Step], batch: Batch | dict[Name, Batch], rounds: int) -> dict[Name, float]:
    """Return the median seconds of each step over `rounds` rounds of turns, on one shared batch or on its own."""
    seconds: dict[Name, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            own = batch[name] if isinstance(batch, dict) else batch
            once(step, own)  # warm-up: memory is as the previous step left it
            seconds[name].append(once(step, own))
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_extra_memory(step: Step, batch: Batch) -> int:
    """Return the peak bytes alive during forward and backward, beyond those already allocated."""
    once(step, batch)
    for x in batch.features:
        x.grad = None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step().backward()
    alive = peak = 0
    changes = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(changes, key=lambda event: event.start_ns()):
        alive += event.nbytes()
        peak = max(peak, alive)
    return peak


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    """Format rows as lines of Markdown."""
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]


def make_images(folder: Path, count: int) -> LabelledImages:
    """Write images of coarse random colours, 400 x 300, as JPEG files."""
    random = np.random.default_rng(0)
    files = []
    for number in range(count):
        coarse = Image.fromarray(random.integers(0, 256, (30, 40, 3), dtype=np.uint8))
        files.append(folder / f"{number}.jpg")
        coarse.resize((400, 300), Image.Resampling.BICUBIC).save(files[-1], quality=90)
    return LabelledImages(tuple(files), tuple(number % 31 for number in range(count)), tuple(map(str, range(31))))
