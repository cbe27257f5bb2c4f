"""Measure what caching the frozen trunk saves: an epoch of VGG16, trained as in the paper, with and without the cache.

    python benchmarks/trunk_cache.py [--images 96] [--batch 32] [--rounds 2]

Uses random weights and generated images that are read from disk. All ways are measured in turns within one run and
compared by their medians. Writes benchmarks/results/trunk-cache-cpu.md.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from sohot.data import ImageInputs, LabelledImages, iter_batches
from sohot.networks import TwoStreams, cache_trunk, create_backbone

RESULTS = Path(__file__).parent / "results" / "trunk-cache-cpu.md"
CLASSES = 31
NEEDED = 4.0
SLOW = "no cache"

Batches = Callable[[], Iterator[Tensor]]


def make_images(folder: Path, count: int) -> LabelledImages:
    """Write images of coarse random colours, 400 x 300, as JPEG files."""
    random = np.random.default_rng(0)
    files = []
    for number in range(count):
        coarse = Image.fromarray(random.integers(0, 256, (30, 40, 3), dtype=np.uint8))
        files.append(folder / f"{number}.jpg")
        coarse.resize((400, 300), Image.Resampling.BICUBIC).save(files[-1], quality=90)
    return LabelledImages(
        tuple(files), tuple(number % CLASSES for number in range(count)), tuple(map(str, range(CLASSES)))
    )


def train_epoch(
    model: TwoStreams, optimiser: torch.optim.Optimizer, batches: Iterator[Tensor], from_trunk: bool
) -> None:
    """Train on the cross-entropy of both domains; three quarters of a batch are source, the rest is target."""
    for rows in batches:
        split = len(rows) * 3 // 4
        labels = torch.arange(len(rows)) % CLASSES
        optimiser.zero_grad()
        output = model(rows[:split], rows[split:], from_trunk=from_trunk)
        logits = torch.cat([output.source_logits, output.target_logits])
        nn.functional.cross_entropy(logits, labels).backward()
        optimiser.step()


def measure(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Return the median seconds of an epoch; the fast ways get two turns for each turn of the slow one."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(2 * rounds):
        for name, epoch in ways.items():
            if name == SLOW and turn % 2:
                continue
            start = time.perf_counter()
            epoch()
            seconds[name].append(time.perf_counter() - start)
            print(f"{name}: {seconds[name][-1]:.1f} s", file=sys.stderr, flush=True)
    return {name: median(times) for name, times in seconds.items()}


def compare(folder: Path, count: int, batch: int, rounds: int) -> tuple[dict[str, float], float, float]:
    """Time the epochs and building the cache; also compare features with and without it."""
    images = make_images(folder, count)
    torch.manual_seed(0)
    model = TwoStreams(create_backbone("vgg16", pretrained=False), CLASSES, trains="paper").train()
    spec, trunk = model.inputs["target"], model.trunk("target")
    inputs = ImageInputs(images, spec)
    order = torch.arange(count).split(batch)

    start = time.perf_counter()
    mapped = cache_trunk(trunk, iter_batches(images, spec, batch), count, file=folder / "trunk.safetensors")
    making = time.perf_counter() - start
    held = mapped.clone()
    with torch.no_grad():
        with_cache = model(None, mapped[:4], from_trunk=True).target_features
        without = model(None, inputs.batch(torch.arange(4))).target_features
    difference = float((with_cache - without).norm() / without.norm())

    optimiser = torch.optim.SGD(model.parameter_groups(1e-4), momentum=0.9)

    def read_and(cache: Tensor) -> Iterator[Tensor]:
        for rows in order:
            inputs.batch(rows)
            yield cache[rows]

    ways = {
        SLOW: lambda: train_epoch(model, optimiser, (inputs.batch(rows) for rows in order), False),
        "cache on disk": lambda: train_epoch(model, optimiser, (mapped[rows] for rows in order), True),
        "cache in memory": lambda: train_epoch(model, optimiser, (held[rows] for rows in order), True),
        "cache on disk, images read anyway": lambda: train_epoch(model, optimiser, read_and(mapped), True),
    }
    return measure(ways, rounds), making, difference


def report(seconds: dict[str, float], making: float, difference: float, options: argparse.Namespace) -> str:
    base = seconds[SLOW]
    options_used = f"--images {options.images} --batch {options.batch} --rounds {options.rounds}"
    lines = [
        "# An epoch with and without the trunk cache, on a CPU",
        "",
        f"Command: `python benchmarks/trunk_cache.py {options_used}`.",
        "Medians, measured in turns within one run; seconds depend on the machine.",
        f"Python {platform.python_version()}, torch {torch.__version__}, {torch.get_num_threads()} threads.",
        f"Load average at the end: {os.getloadavg()[1]:.1f} over five minutes (other work on the machine adds noise).",
        "",
        "VGG16, `paper` (the last two convolutions and the fully connected layers train), random weights,",
        f"{options.images} JPEG images of 400 x 300 read from disk, batches of {options.batch}, SGD with momentum.",
        "",
        "| epoch | s here | times faster |",
        "| --- | --- | --- |",
        *(f"| {name} | {value:.1f} | {base / value:.2f} |" for name, value in seconds.items()),
        "",
        f"Building the cache took {making:.1f} s, once. Features with it differ from those without by {difference:.1e}",
        "(relative). Counting operations alone, the speed-up would be about 5.6.",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        seconds, making, difference = compare(Path(folder), options.images, options.batch, options.rounds)
    text = report(seconds, making, difference, options)
    print(text)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(text)
    slowest = max(value for name, value in seconds.items() if name != SLOW)
    if seconds[SLOW] / slowest < NEEDED:
        print(f"less than {NEEDED:.0f} times faster", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
