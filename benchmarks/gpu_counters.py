"""Read the hardware's counters while the loss runs once, and a training step: what holds them up.

    python benchmarks/gpu_counters.py

Needs NVIDIA's Nsight Compute (`ncu`) and leave to read counters. Each kernel runs by itself, so its time is what it
needs alone; clocks are left as they are.
"""

import argparse
import csv
import shutil
import subprocess
import sys
from collections import defaultdict
from typing import NamedTuple

import torch
from gpu_kernel import FEW, Step, step_of
from gpu_steps import ALIGNED, Case, Ever, resident_inputs, trainer_of
from timing import table

COUNTERS = {
    "µs": "gpu__time_duration.sum",
    "multiprocessors %": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory %": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "DRAM %": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "warps resident %": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue slots %": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "waves": "launch__waves_per_multiprocessor",
}
SHORT = 5.0  # microseconds: a kernel below it is latency
CASES = {
    "loss, 31 × (20 + 3) × 4096, float32": FEW,
    "loss, 31 × (20 + 3) × 4096, bfloat16": FEW._replace(dtype=torch.bfloat16),
    "step of EfficientNet-Lite0, cached trunk, bf16-mixed": Case(
        "paper", "bf16-mixed", cache=True, capture=False, network="lite0"
    ),
    "step of ResNet-50's layer4, cached trunk, bf16-mixed": Case("paper", "bf16-mixed", cache=True, capture=False),
}


class Kernel(NamedTuple):
    """A kernel that ran, with its counters by the names above."""

    name: str
    counters: dict[str, float]


def run_once(name: str) -> None:
    """Run a case, and let the profiler see the last time alone."""
    case = CASES[name]
    if not isinstance(case, Case):
        step = step_of(case, case.batch())
        for _ in range(3):
            step()
        _seen(step)
        return
    source, target = resident_inputs(case)
    with trainer_of(case, ALIGNED, source, target) as trainer:
        trainer.batches = Ever(len(source), len(target))
        for number in range(3):
            trainer.step(number)
        _seen(lambda: trainer.step(3))


def _seen(step: Step) -> None:
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    step()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def counted(name: str, seconds: float) -> list[Kernel]:
    """Run a case under the profiler."""
    words = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv", "--print-units", "base"]
    words += ["--metrics", ",".join(COUNTERS.values()), sys.executable, __file__, "--run", name]
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode or not lines:
        raise SystemExit(f"ncu failed on {name}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    found: dict[str, dict[str, float]] = defaultdict(dict)
    names = {metric: short for short, metric in COUNTERS.items()}
    kernels: dict[str, str] = {}
    for row in csv.DictReader(lines):
        if row["Metric Name"] in names:
            kernels[row["ID"]] = row["Kernel Name"].partition("(")[0].partition("<")[0]
            found[row["ID"]][names[row["Metric Name"]]] = float(row["Metric Value"].replace(",", ""))
    return [Kernel(kernels[number], {**counters, "µs": counters["µs"] / 1000}) for number, counters in found.items()]


def report(name: str, kernels: list[Kernel]) -> list[str]:
    """Return the counters of the longest kernels, their mean over the time of all, and how many are short."""
    total = sum(kernel.counters["µs"] for kernel in kernels)
    short = [kernel for kernel in kernels if kernel.counters["µs"] < SHORT]
    mean = {key: sum(k.counters[key] * k.counters["µs"] for k in kernels) / total for key in list(COUNTERS)[1:]}
    largest = sorted(kernels, key=lambda kernel: -kernel.counters["µs"])[:8]
    rows = [[k.name[-60:], *(f"{k.counters[key]:.1f}" for key in COUNTERS)] for k in largest]
    rows.append(["all, weighted by time", f"{total:.1f}", *(f"{value:.1f}" for value in mean.values())])
    return [
        f"### {name.capitalize()}",
        "",
        f"{len(kernels)} kernels, {total:.0f} µs one after the other; {len(short)} of them are shorter than "
        f"{SHORT:g} µs, together {sum(kernel.counters['µs'] for kernel in short):.0f} µs.",
        "",
        *table(["kernel", *COUNTERS], rows),
        "",
    ]


def main() -> None:
    """Print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0, help="limit for each case")
    parser.add_argument("--only", default="", help="cases whose name holds this, such as Lite0")
    parser.add_argument("--run", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        run_once(options.run)
        return
    if shutil.which("ncu") is None:
        raise SystemExit("this benchmark needs ncu (NVIDIA Nsight Compute) on the path")
    for name in filter(lambda name: options.only in name, CASES):
        print("\n".join(report(name, counted(name, options.seconds))), flush=True)


if __name__ == "__main__":
    main()
