"""A training step of ResNet-50 on a GPU: what the alignment adds, what precision, layout, compiler and cache save.

    python benchmarks/gpu_training.py [--images DIR] [--rounds 7] [--seconds 150]

Steps are those of `sohot fit` (the same trainer, optimiser and deterministic kernels), on random weights: speed does
not depend on them. A step with alignment (so+to+fo+zeta) and one without (s+t) take turns; times are medians of CUDA
events around blocks of steps. A batch has 31 classes of 5 source and 3 target images, 224 x 224.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image
from timing import table
from torch import Tensor

from sohot.data import ImageInputs, LabelledImages
from sohot.runs.training_inputs import Augmented
from sohot.streams import Backbone, TwoStreams, create_backbone
from sohot.training import FitSettings, Inputs, TensorInputs
from sohot.training.compiling import compiled
from sohot.training.fabric import make_fabric
from sohot.training.inputs import Domain, WholeSet
from sohot.training.randomness import reproducible
from sohot.training.trainer import Trainer

CLASSES, SOURCE, TARGET, SIDE = 31, 5, 3, 224
ROWS = CLASSES * (SOURCE + TARGET)
BLOCK = 5  # steps between two events
BAR = 3.0  # per cent that the alignment may add
PLAIN, ALIGNED = "s+t", "so+to+fo+zeta"


@dataclass(frozen=True)
class Case:
    """What is measured: how much trains, and how it is computed."""

    trains: str  # "paper" (layer4 and the classifier) or "all"
    precision: str
    channels_last: bool = True
    compile: bool = False
    cache: bool = False

    def __str__(self) -> str:
        parts = ["all layers" if self.trains == "all" else "layer4 + classifier", self.precision.replace("-true", "")]
        parts += ["channels-last"] * self.channels_last + ["compiled"] * self.compile
        return ", ".join([*parts, "cached trunk"] if self.cache else parts)


CASES = (
    Case("all", "bf16-mixed"),
    Case("paper", "bf16-mixed"),
    Case("paper", "bf16-mixed", cache=True),
    Case("all", "32-true"),
    Case("paper", "32-true"),
    Case("paper", "32-true", cache=True),
    Case("all", "bf16-mixed", channels_last=False),
    Case("all", "16-mixed"),
    Case("paper", "bf16-mixed", compile=True, cache=True),
    Case("all", "bf16-mixed", compile=True),
)


@dataclass
class Measured:
    """Milliseconds of a step by method, with the most GPU memory it took."""

    plain: float
    aligned: float
    gib: float
    waits: tuple[int, ...] = ()  # how often a step lets the host wait, without and with alignment
    rounds: list[float] = field(default_factory=list)  # per cent added, round by round

    @property
    def added(self) -> float:
        return 100 * (self.aligned / self.plain - 1)


class PlainLayout(Domain):
    """Leaves images as they are: channel by channel."""

    def arrange(self, inputs: Tensor) -> Tensor:
        return inputs


@contextmanager
def trainer_of(case: Case, method: str, source: Inputs, target: Inputs, steps: int = 10_000) -> Iterator[Trainer]:
    """Build the trainer of a case as `fit` does."""
    with ExitStack() as stack:
        settings = FitSettings(
            method=method,
            steps=steps,
            accelerator="cuda",
            precision=case.precision,
            compile=case.compile,
            from_trunk=case.cache,
            schedule="constant",
            lr=1e-6,
        )
        fabric = make_fabric(settings)
        stack.enter_context(reproducible(0, "cuda"))
        model = make_model(case)
        stack.enter_context(compiled(model, case.compile, fabric.device))
        kind = Domain if case.channels_last else PlainLayout
        domains = [
            kind(name, inputs, torch.arange(CLASSES).repeat_interleave(len(inputs) // CLASSES), CLASSES)
            for name, inputs in (("source", source), ("target", target))
        ]
        trainer = Trainer(fabric, model, *domains, WholeSet(len(source), len(target)), settings)
        stack.callback(trainer.close)
        yield trainer


@cache
def network() -> Backbone:
    """ResNet-50, split into its stages once."""
    return create_backbone("resnet50", pretrained=False)


def make_model(case: Case) -> TwoStreams:
    """Build the streams of a case on the GPU."""
    model = TwoStreams(deepcopy(network()), CLASSES, trains=case.trains, batch_norm="fixed")
    layout = torch.channels_last if case.channels_last else torch.contiguous_format
    return model.to("cuda", memory_format=layout)


def resident_inputs(case: Case) -> list[Inputs]:
    """Images, or outputs of the trunk, that lie on the GPU already."""
    images = [torch.randn(CLASSES * each, 3, SIDE, SIDE, device="cuda") for each in (SOURCE, TARGET)]
    if case.cache:
        with torch.no_grad():
            images = [make_model(case).trunk("target")(one) for one in images]
    return [TensorInputs(one) for one in images]


class Ever(WholeSet):
    """The whole set in every step, gathered anew each time as in training with more rows than a batch has."""

    def batch(self, step: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        source, target = self._rows
        return source.clone(), target.clone()


def block(trainer: Trainer, first: int, steps: int = BLOCK) -> float:
    """Milliseconds of a step on the GPU, over a block of them."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for step in range(first, first + steps):
        trainer.step(step)
    end.record()
    end.synchronize()
    trainer.records()
    return start.elapsed_time(end) / steps


def count_waits(trainer: Trainer, step: int) -> int:
    """How often a step lets the host wait for the GPU."""
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trainer.step(step)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(one.message) for one in caught)


def measure(case: Case, rounds: int) -> Measured:
    """Measure a case with and without alignment, in turns."""
    source, target = resident_inputs(case)
    torch.cuda.reset_peak_memory_stats()
    with ExitStack() as stack:
        trainers = {
            method: stack.enter_context(trainer_of(case, method, source, target)) for method in (PLAIN, ALIGNED)
        }
        for trainer in trainers.values():
            trainer.batches = Ever(len(source), len(target))
            block(trainer, 0, 3)
        waits = tuple(count_waits(trainer, 3) for trainer in trainers.values())
        times: dict[str, list[float]] = {method: [] for method in trainers}
        for turn in range(rounds):
            order = list(trainers.items())[:: 1 if turn % 2 == 0 else -1]
            for method, trainer in order:
                block(trainer, 4 + turn * (BLOCK + 1), 1)  # finds the card as the other left it
                times[method].append(block(trainer, 5 + turn * (BLOCK + 1)))
    memory = torch.cuda.max_memory_allocated() / 2**30
    added = [100 * (b / a - 1) for a, b in zip(times[PLAIN], times[ALIGNED], strict=True)]
    return Measured(median(times[PLAIN]), median(times[ALIGNED]), memory, waits, added)


def make_images(folder: Path, count: int) -> LabelledImages:
    """Photographs of coarse random colours, 400 x 300, as JPEG files."""
    random = np.random.default_rng(0)
    files = []
    for number in range(count):
        coarse = Image.fromarray(random.integers(0, 256, (30, 40, 3), dtype=np.uint8))
        files.append(folder / f"{number}.jpg")
        coarse.resize((400, 300), Image.Resampling.BICUBIC).save(files[-1], quality=90)
    return LabelledImages(files, [number % CLASSES for number in range(count)], [f"class {c}" for c in range(CLASSES)])


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
    return took, resident / took


def measure_apart(case: Case, rounds: int, seconds: float) -> Measured:
    """Measure a case in a process of its own that may take so long: nobody knows beforehand what a compiler takes."""
    words = [sys.executable, __file__, "--case", str(CASES.index(case)), "--rounds", str(rounds)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=seconds, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return Measured(**{**found, "waits": tuple(found["waits"])})


def training_bars(images: Path | None = None, rounds: int = 7, seconds: float = 150.0) -> list[str]:
    """Measure all cases, as far as the time goes, and give them as lines of Markdown."""
    ends = time.perf_counter() + seconds
    results: dict[Case, Measured] = {}
    skipped: list[str] = []
    pipeline: list[str] = []
    for case in CASES:
        left = ends - time.perf_counter()
        if case.compile and not pipeline and results:
            pipeline = _pipeline(images, results)  # before what may take all of the time
            left = ends - time.perf_counter()
        try:
            if left < (40 if case.compile else 10):
                raise TimeoutError("no time was left")
            results[case] = measure_apart(case, rounds, left) if case.compile else measure(case, rounds)
            print(f"{case}: {results[case]}", file=sys.stderr, flush=True)
        except Exception as error:  # one case must not cost the others
            skipped.append(f"{case} ({type(error).__name__}: {' '.join(str(error).split())[:200]})")
            print(f"left out: {skipped[-1]}", file=sys.stderr, flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    lines = ["## Training step of ResNet-50", "", _heading(), "", *_step_table(results), ""]
    lines += [f"Left out: {'; '.join(skipped)}.", ""] if skipped else []
    return [*lines, *(pipeline or _pipeline(images, results))]


def _heading() -> str:
    return (
        f"{ROWS} images of 224 x 224 ({CLASSES} classes, {SOURCE} source and {TARGET} target images each), SGD with "
        f"momentum, deterministic kernels as in `sohot fit`. Without alignment: `{PLAIN}`; with: `{ALIGNED}`. "
        f"Bar: the alignment adds at most {BAR:g} %."
    )


def _step_table(results: dict[Case, Measured]) -> list[str]:
    rows = []
    for case, one in results.items():
        spread = f"{min(one.rounds):+.1f} … {max(one.rounds):+.1f}"
        verdict = "met" if one.added <= BAR else "missed"
        rows.append(
            [
                str(case),
                f"{one.plain:.2f}",
                f"{one.aligned:.2f}",
                f"{ROWS / one.aligned * 1000:.0f}",
                f"{one.added:+.2f} % ({spread})",
                verdict,
                f"{one.aligned - one.plain:.2f}",
                " / ".join(map(str, one.waits)),
                f"{one.gib:.1f}",
            ]
        )
    head = ["case", "without, ms", "with, ms", "images/s", "added (rounds)", "bar", "added, ms", "host waits", "GiB"]
    return table(head, rows)


def _pipeline(images: Path | None, results: dict[Case, Measured]) -> list[str]:
    """Measure the input pipeline: images are decoded and augmented while the card works."""
    case = Case("all", "bf16-mixed")
    if case not in results:
        return []
    rows = []
    with TemporaryDirectory() as folder:
        found = make_images(Path(folder), ROWS) if images is None else found_images(images)
        for workers in sorted({8, os.cpu_count() or 8}):
            took, share = busy_share(case, found, workers, results[case].aligned)
            rows.append([str(workers), f"{took:.1f}", f"{ROWS / took * 1000:.0f}", f"{100 * share:.0f} %"])
    what = "made-up JPEG files of 400 x 300" if images is None else f"images of {images}"
    lines = ["## Input pipeline", "", f"{case}, aligned; {what}, read, cropped and mirrored anew in each step.", ""]
    return [*lines, *table(["threads that read", "ms a step", "images/s", "GPU busy"], rows), ""]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, help="folder of images to decode; made-up ones without it")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=150.0, help="about how long it may take")
    parser.add_argument("--case", type=int, help="measure this case alone and print it as JSON")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a CUDA GPU")
    if options.case is not None:
        print(json.dumps(asdict(measure(CASES[options.case], options.rounds))))
        return
    print("\n".join(training_bars(options.images, options.rounds, options.seconds)))


if __name__ == "__main__":
    main()
