"""Measure training steps of ResNet-50 on a GPU: what alignment adds, what graphs and compiler save, what reading costs.

    python benchmarks/gpu.py --only training|pipeline

Steps are those of `sohot fit` (the same trainer, optimiser and deterministic kernels) with random weights and made-up
images, on which speed does not depend. A batch has 31 classes of 5 source and 3 target images, 224 x 224.
"""

import gc
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
from timing import make_images, table
from torch import Tensor
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from sohot.data import AugmentedImages
from sohot.methods import FitSettings
from sohot.networks import Backbone, TwoStreams, create_backbone
from sohot.training import Inputs, TensorInputs
from sohot.training.fabric import make_fabric
from sohot.training.inputs import Domain, WholeSet
from sohot.training.randomness import reproducible
from sohot.training.trainer import Trainer, compiled

CLASSES, SOURCE, TARGET, SIDE = 31, 5, 3, 224
ROWS = CLASSES * (SOURCE + TARGET)
BLOCK = 5  # steps between two events
PLAIN, ALIGNED = "s+t", "so+to+fo+zeta"
CUDA = torch.device("cuda", 0)


@dataclass(frozen=True)
class Case:
    """What is measured: which layers train, and how they are computed."""

    trains: str  # "paper" (layer4 and the classifier) or "all"
    precision: str
    cache: bool = False
    capture: bool = True
    compile: bool = False

    def __str__(self) -> str:
        parts = ["all layers" if self.trains == "all" else "layer4 + classifier", self.precision.replace("-true", "")]
        parts += ["cached trunk"] * self.cache + ["compiled"] * self.compile
        return ", ".join([*parts, *["not captured"] * (not self.capture)])


CASES = (
    Case("paper", "bf16-mixed", cache=True),
    Case("paper", "bf16-mixed", cache=True, capture=False),
    Case("paper", "bf16-mixed", cache=True, compile=True),
    Case("paper", "32-true", cache=True),
    Case("paper", "32-true", cache=True, capture=False),
    Case("all", "bf16-mixed"),
    Case("all", "bf16-mixed", capture=False),
    Case("all", "bf16-mixed", compile=True),
    Case("paper", "bf16-mixed"),
    Case("all", "32-true"),
    Case("paper", "32-true"),
)


@cache
def network() -> Backbone:
    """Build the network, split into its stages, once."""
    return create_backbone("resnet50", pretrained=False)


def make_model(case: Case) -> TwoStreams:
    """Build the streams for a case on the GPU."""
    model = TwoStreams(deepcopy(network()), CLASSES, trains=case.trains, batch_norm="fixed")
    return model.to(CUDA, memory_format=torch.channels_last)


def resident_inputs(case: Case) -> list[Inputs]:
    """Return images, or outputs of the trunk, that are already on the GPU."""
    images = [torch.randn(CLASSES * each, 3, SIDE, SIDE, device=CUDA) for each in (SOURCE, TARGET)]
    if case.cache:
        with torch.no_grad():
            images = [make_model(case).trunk("target")(one) for one in images]
    return [TensorInputs(one.contiguous(memory_format=torch.channels_last)) for one in images]


class Ever(WholeSet):
    """The whole set in every step, gathered again each time, as in training with more rows than fit in a batch."""

    def batch(self, step: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        source, target = self._rows
        return source.clone(), target.clone()


@contextmanager
def trainer_of(case: Case, method: str, source: Inputs, target: Inputs) -> Iterator[Trainer]:
    """Build the trainer for a case as `fit` does."""
    settings = FitSettings(
        method=method,
        steps=10_000,
        device="cuda",
        precision=case.precision,
        compile=case.compile,
        capture=case.capture,
        from_trunk=case.cache,
        schedule="constant",
        lr=1e-6,
    )
    with ExitStack() as stack:
        fabric = make_fabric(settings)
        stack.enter_context(reproducible(0, "cuda"))
        model = make_model(case)
        stack.enter_context(compiled(model, case.compile))
        domains = [
            Domain(name, inputs, torch.arange(CLASSES).repeat_interleave(len(inputs) // CLASSES), CLASSES)
            for name, inputs in (("source", source), ("target", target))
        ]
        trainer = Trainer(fabric, model, *domains, Ever(len(source), len(target)), settings)
        stack.callback(trainer.close)
        yield trainer


def block(trainer: Trainer, first: int, steps: int = BLOCK) -> float:
    """Return the milliseconds per step on the GPU, over a block of steps."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for step in range(first, first + steps):
        trainer.step(step)
    end.record()
    end.synchronize()
    trainer.records()
    return start.elapsed_time(end) / steps


def count_waits(trainer: Trainer, step: int) -> int:
    """Count how often a step makes the host wait for the GPU."""
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trainer.step(step)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(one.message) for one in caught)


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the total time covered by spans that may overlap."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def busy_share(trainer: Trainer, first: int, steps: int) -> float:
    """Return the share of the time in which a kernel or a copy runs on the GPU, over some steps."""
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        began = time.perf_counter()
        block(trainer, first, steps)
        span = 1e6 * (time.perf_counter() - began)
    work = [one for one in recorded.events() if one.device_type == DeviceType.CUDA and not one.is_user_annotation]
    return covered((one.time_range.start, one.time_range.end) for one in work) / span


@dataclass
class Measured:
    """Milliseconds per step by method, with the peak GPU memory."""

    plain: float
    aligned: float
    gib: float
    waits: tuple[int, ...]  # how often a step makes the host wait, without and with alignment
    busy: float  # share of the time in which the GPU works, with alignment
    begin: float  # seconds of the first steps of both, which compile and record
    rounds: list[float] = field(default_factory=list)  # per cent added, round by round


def measure(case: Case, rounds: int) -> Measured:
    """Measure a case with and without alignment, in turns."""
    source, target = resident_inputs(case)
    torch.cuda.reset_peak_memory_stats()
    with ExitStack() as stack:
        trainers = {
            method: stack.enter_context(trainer_of(case, method, source, target)) for method in (PLAIN, ALIGNED)
        }
        began = time.perf_counter()
        for trainer in trainers.values():
            block(trainer, 0, 3)
        begin = time.perf_counter() - began
        waits = tuple(count_waits(trainer, 3) for trainer in trainers.values())
        times: dict[str, list[float]] = {method: [] for method in trainers}
        for turn in range(rounds):
            for method, trainer in list(trainers.items())[:: 1 if turn % 2 == 0 else -1]:
                block(trainer, 4 + turn * (BLOCK + 1), 1)  # starts from the state in which the other left the GPU
                times[method].append(block(trainer, 5 + turn * (BLOCK + 1)))
        busy = busy_share(trainers[ALIGNED], 5 + rounds * (BLOCK + 1), 4 * BLOCK)
    memory = torch.cuda.max_memory_allocated() / 2**30
    added = [100 * (b / a - 1) for a, b in zip(times[PLAIN], times[ALIGNED], strict=True)]
    return Measured(median(times[PLAIN]), median(times[ALIGNED]), memory, waits, busy, begin, added)


def training_table(rounds: int = 7, seconds: float = 150.0) -> list[str]:
    """Measure all cases that fit in the time, and return them as lines of Markdown."""
    ends = time.perf_counter() + seconds
    rows: list[list[str]] = []
    skipped: list[str] = []
    for case in CASES:
        try:
            if ends - time.perf_counter() < (30 if case.compile else 5):
                raise TimeoutError("no time was left")
            found = measure(case, rounds)
            rows.append(_row(case, found))
            print(f"{case}: {found}", file=sys.stderr, flush=True)
        except Exception as error:  # one failing case must not stop the others
            skipped.append(f"{case} ({type(error).__name__}: {' '.join(str(error).split())[:200]})")
            print(f"left out: {skipped[-1]}", file=sys.stderr, flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    head = ["case", "without, ms", "with, ms", "images/s", "added (rounds)", "host waits", "GPU busy", "GiB"]
    lines = ["## Training step of ResNet-50", "", _heading(), "", *table([*head, "first steps, s"], rows), ""]
    return lines + ([f"Left out: {'; '.join(skipped)}.", ""] if skipped else [])


def _heading() -> str:
    return (
        f"{ROWS} images of 224 x 224 ({CLASSES} classes, {SOURCE} source and {TARGET} target images each), SGD with "
        f"momentum, channels-last, deterministic kernels as in `sohot fit`. Without alignment: `{PLAIN}`; with: "
        f"`{ALIGNED}`; both in turns, medians of CUDA events around blocks of {BLOCK} steps. GPU busy: share of the "
        "time in which a kernel or a copy runs, by torch's profiler, with alignment. First steps: three of each, which "
        "compile and record."
    )


def _row(case: Case, found: Measured) -> list[str]:
    return [
        str(case),
        f"{found.plain:.2f}",
        f"{found.aligned:.2f}",
        f"{ROWS / found.aligned * 1000:.0f}",
        f"{100 * (found.aligned / found.plain - 1):+.2f} % ({min(found.rounds):+.1f} … {max(found.rounds):+.1f})",
        " / ".join(map(str, found.waits)),
        f"{100 * found.busy:.0f} %",
        f"{found.gib:.1f}",
        f"{found.begin:.1f}",
    ]


def nothing() -> float:
    return 0.0


def everything() -> float:
    return float("inf")


def pipeline_table() -> list[str]:
    """Measure training on images that are augmented while the GPU works: decoded in each step, or once."""
    case = Case("all", "bf16-mixed")
    rows = []

    def add(name: str, inputs: list[Inputs]) -> None:
        with trainer_of(case, ALIGNED, *inputs) as trainer:
            block(trainer, 0, 3)  # decodes every image
            began = time.perf_counter()
            block(trainer, 3, 2 * BLOCK)
            took = 1000 * (time.perf_counter() - began) / (2 * BLOCK)
            share = busy_share(trainer, 3 + 2 * BLOCK, BLOCK)
        rows.append([name, f"{took:.1f}", f"{ROWS / took * 1000:.0f}", f"{100 * share:.0f} %"])

    with TemporaryDirectory() as folder:
        images = make_images(Path(folder), ROWS)
        halves = [images.subset(range(CLASSES * SOURCE)), images.subset(range(CLASSES * SOURCE, ROWS))]
        spec, threads = network().input, os.cpu_count() or 8
        decoded = [AugmentedImages(half, spec, nothing, threads) for half in halves]
        add(f"decoded and cropped by {threads} threads, in each step", decoded)
        kept = [AugmentedImages(half, spec, nothing, threads, gpu=CUDA, gpu_room=everything) for half in halves]
        add("decoded once, kept and cropped on the GPU", kept)
        add("already on the GPU, not augmented", resident_inputs(case))
    what = f"{case}, aligned; generated JPEG files of 400 x 300, cropped and mirrored in each step."
    return ["## Input pipeline", "", what, "", *table(["images", "ms per step", "images/s", "GPU busy"], rows), ""]
