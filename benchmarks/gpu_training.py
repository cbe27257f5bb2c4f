"""Measure a training step of ResNet-50 on a GPU: what alignment adds; what precision, layout, compiler and cache save.

    python benchmarks/gpu_training.py [--rounds 7] [--seconds 150]

Steps are those of `sohot fit` (the same trainer, optimiser and deterministic kernels) with random weights, on which
speed does not depend. Steps with alignment (so+to+fo+zeta) and without (s+t) take turns; times are medians of CUDA
events around blocks of steps. A batch has 31 classes of 5 source and 3 target images, 224 x 224.
"""

import argparse
import gc
import json
import subprocess
import sys
import time
import warnings
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from statistics import median

import torch
from gpu_pipeline import profiled
from gpu_steps import (
    ALIGNED,
    BLOCK,
    CLASSES,
    PLAIN,
    ROWS,
    SOURCE,
    TARGET,
    Case,
    Ever,
    block,
    resident_inputs,
    trainer_of,
)
from timing import table

from sohot.training.trainer import Trainer

BAR, CACHED_BAR = 3.0, 5.0  # per cent that alignment may add
CASES = (
    Case("paper", "bf16-mixed", cache=True),
    Case("paper", "bf16-mixed", cache=True, capture=False),
    Case("paper", "32-true", cache=True),
    Case("paper", "32-true", cache=True, capture=False),
    Case("all", "bf16-mixed"),
    Case("all", "bf16-mixed", capture=False),
    Case("paper", "bf16-mixed"),
    Case("all", "32-true"),
    Case("paper", "32-true"),
    Case("all", "bf16-mixed", channels_last=False),
    Case("all", "16-mixed"),
    Case("paper", "bf16-mixed", compile=True, cache=True),
    Case("all", "bf16-mixed", compile=True),
)


@dataclass
class Measured:
    """Milliseconds per step by method, with the peak GPU memory."""

    plain: float
    aligned: float
    gib: float
    waits: tuple[int, ...] = ()  # how often a step makes the host wait, without and with alignment
    busy: float = 0.0  # share of the time in which the GPU works, with alignment
    rounds: list[float] = field(default_factory=list)  # per cent added, round by round

    @property
    def added(self) -> float:
        return 100 * (self.aligned / self.plain - 1)


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
                block(trainer, 4 + turn * (BLOCK + 1), 1)  # starts from the state in which the other left the GPU
                times[method].append(block(trainer, 5 + turn * (BLOCK + 1)))
        busy = profiled(trainers[ALIGNED], 5 + rounds * (BLOCK + 1), 4 * BLOCK)
    memory = torch.cuda.max_memory_allocated() / 2**30
    added = [100 * (b / a - 1) for a, b in zip(times[PLAIN], times[ALIGNED], strict=True)]
    return Measured(median(times[PLAIN]), median(times[ALIGNED]), memory, waits, busy, added)


def measure_apart(case: Case, rounds: int, seconds: float) -> Measured:
    """Measure a case in a separate process with a time limit: how long a compiler takes is unknown beforehand."""
    words = [sys.executable, __file__, "--case", str(CASES.index(case)), "--rounds", str(rounds)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=seconds, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return Measured(**{**found, "waits": tuple(found["waits"])})


def training_bars(rounds: int = 7, seconds: float = 150.0) -> list[str]:
    """Measure all cases that fit in the time, and return them as lines of Markdown."""
    ends = time.perf_counter() + seconds
    results: dict[Case, Measured] = {}
    skipped: list[str] = []
    for case in CASES:
        left = ends - time.perf_counter()
        try:
            if left < (40 if case.compile else 5):
                raise TimeoutError("no time was left")
            results[case] = measure_apart(case, rounds, left) if case.compile else measure(case, rounds)
            print(f"{case}: {results[case]}", file=sys.stderr, flush=True)
        except Exception as error:  # one failing case must not stop the others
            skipped.append(f"{case} ({type(error).__name__}: {' '.join(str(error).split())[:200]})")
            print(f"left out: {skipped[-1]}", file=sys.stderr, flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    lines = ["## Training step of ResNet-50", "", _heading(), "", *_step_table(results), ""]
    return lines + ([f"Left out: {'; '.join(skipped)}.", ""] if skipped else [])


def _heading() -> str:
    return (
        f"{ROWS} images of 224 x 224 ({CLASSES} classes, {SOURCE} source and {TARGET} target images each), SGD with "
        f"momentum, deterministic kernels as in `sohot fit`. Without alignment: `{PLAIN}`; with: `{ALIGNED}`. "
        f"Goal: the alignment adds at most {BAR:g} %, or {CACHED_BAR:g} % with a cached trunk. GPU busy: share of the "
        "time in which a kernel or a copy runs, by torch's profiler, with alignment."
    )


def _step_table(results: dict[Case, Measured]) -> list[str]:
    rows = []
    for case, one in results.items():
        spread = f"{min(one.rounds):+.1f} … {max(one.rounds):+.1f}"
        verdict = "met" if one.added <= (CACHED_BAR if case.cache else BAR) else "missed"
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
                f"{100 * one.busy:.0f} %",
                f"{one.gib:.1f}",
            ]
        )
    head = [
        "case",
        "without, ms",
        "with, ms",
        "images/s",
        "added (rounds)",
        "goal",
        "added, ms",
        "host waits",
        "GPU busy",
        "GiB",
    ]
    return table(head, rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=150.0, help="approximate time limit")
    parser.add_argument("--case", type=int, help="measure only this case and print it as JSON")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a CUDA GPU")
    if options.case is not None:
        print(json.dumps(asdict(measure(CASES[options.case], options.rounds))))
        return
    print("\n".join(training_bars(options.rounds, options.seconds)))


if __name__ == "__main__":
    main()
