"""Measure training steps by how many threads compute and how they wait, on an idle and on a busy machine.

    python benchmarks/threads_cpu.py [--steps N] [--rounds N] [--busy N]

A step trains the last two blocks of a mobile network on cached outputs of the layers before. Variants take turns, each
in a process of its own, first alone, then beside other programs that never stop computing. Compare times of one run
with each other only. Writes benchmarks/results/threads-cpu.md.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from timing import table

RESULTS = Path(__file__).parent / "results" / "threads-cpu.md"

STEPS = """
import os, sys, time
from sohot._start import prepare_process
prepare_process()
import torch
from torch import nn
threads, steps = map(int, sys.argv[1:])
torch.set_num_threads(threads)
def block():
    return nn.Sequential(
        nn.Conv2d(192, 1152, 1, bias=False), nn.BatchNorm2d(1152), nn.ReLU6(),
        nn.Conv2d(1152, 1152, 5, padding=2, groups=1152, bias=False), nn.BatchNorm2d(1152), nn.ReLU6(),
        nn.Conv2d(1152, 192, 1, bias=False), nn.BatchNorm2d(192))
network = nn.Sequential(block(), block(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 31))
rows, labels = torch.randn(96, 192, 7, 7), torch.randint(31, (96,))
optimizer = torch.optim.SGD(network.parameters(), 0.01)
def step():
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(rows), labels).backward()
    optimizer.step()
step()
begin, used = time.perf_counter(), time.process_time()
for _ in range(steps):
    step()
print((time.perf_counter() - begin) / steps, (time.process_time() - used) / steps)
"""


@contextmanager
def other_programs(count: int) -> Iterator[None]:
    """Keep processes busy meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def seconds(threads: int, policy: str, steps: int) -> tuple[float, float]:
    """Return the seconds of a step, by the clock and of the processor."""
    variables = {**os.environ, "OMP_WAIT_POLICY": policy}
    if policy == "libgomp's default":
        del variables["OMP_WAIT_POLICY"]
        program = STEPS.replace("import torch\n", "del os.environ['OMP_WAIT_POLICY']\nimport torch\n", 1)
    else:
        program = STEPS
    words = [sys.executable, "-c", program, str(threads), str(steps)]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=True)
    wall, used = map(float, done.stdout.split())
    return wall, used


def main() -> None:
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=cores)
    given = parser.parse_args()
    variants = [(1, "passive"), (cores, "libgomp's default"), (cores, "passive")]
    rows = []
    for others in (0, given.busy):
        found: dict[tuple[int, str], list[tuple[float, float]]] = {variant: [] for variant in variants}
        with other_programs(others):
            for _ in range(given.rounds):
                for variant in variants:
                    found[variant].append(seconds(*variant, given.steps))
        for (threads, policy), times in found.items():
            wall, used = (1000 * statistics.median(values) for values in zip(*times, strict=True))
            rows.append([str(others), str(threads), policy, f"{wall:.0f}", f"{used:.0f}"])
    header = ["other busy programs", "threads", "waiting threads", "ms per step", "processor ms per step"]
    lines = [
        "# Threads that compute, and how they wait",
        "",
        f"`python benchmarks/threads_cpu.py --steps {given.steps} --rounds {given.rounds}`, {cores} cores, "
        f"medians of {given.rounds} turns of {given.steps} steps. "
        "Commands of sohot use one thread per core, and threads that wait sleep (passive).",
        "",
        *table(header, rows),
    ]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
