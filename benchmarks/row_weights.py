"""Measure what weights of rows cost, and that calls without them cost what they did before there were any.

    git worktree add --detach ../before COMMIT    # the commit to compare with
    python benchmarks/row_weights.py --before ../before [--rounds 100]

One process for each kind of call; they take turns, forwards and backwards, on one thread each, and count the time of
the processor, so that other programs on the machine disturb all alike. Writes benchmarks/results/row-weights-cpu.md.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from timing import make_batch, table

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "row-weights-cpu.md"
SMALLEST = "10 × (8 + 3) × 64"
SIZES = {
    "31 × (20 + 3) × 4096": (31, 20, 3, 4096),
    "31 × (20 + 20) × 1280": (31, 20, 20, 1280),
    SMALLEST: (10, 8, 3, 64),
}
ESTIMATORS = ("plugin", "unbiased")
KINDS = ("before", "now", "weighted", "half of the weights 0")


def work() -> None:
    """Answer each line "size,estimator,kind" with the seconds of one forward and backward pass."""
    from sohot.functional import scatter_alignment

    torch.set_num_threads(1)
    batches = {name: make_batch(*size) for name, size in SIZES.items()}
    generator = torch.Generator().manual_seed(0)
    for line in sys.stdin:
        name, estimator, kind = line.rstrip("\n").split(",")
        batch = batches[name]
        rows = [len(x) for x in batch.features]
        options = {}
        if kind in KINDS[2:]:
            weights = [torch.rand(n, generator=generator) for n in rows]
            if kind == KINDS[3]:
                weights = [w * (w > 0.5) for w in weights]
            options = {"source_weights": weights[0], "target_weights": weights[1]}
        for _ in range(2):  # the first warms up
            for x in batch.features:
                x.grad = None
            start = time.process_time()
            scatter_alignment(
                *batch.arguments, batch.num_classes, (2, 3), estimator=estimator, **options
            ).loss.backward()
            seconds = time.process_time() - start
        print(seconds, flush=True)


def start(checkout: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "row_weights.py"), "--work"]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def measure(before: Path, rounds: int) -> list[list[str]]:
    workers = {kind: start(before if kind == "before" else HERE.parent) for kind in KINDS}
    rows = []
    for name in SIZES:
        for estimator in ESTIMATORS:
            seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
            # The smallest problem takes a tenth of the time, and noise a larger share of it.
            for turn in range(rounds if name != SMALLEST else 4 * rounds):
                for kind, worker in list(workers.items())[:: 1 if turn % 2 else -1]:
                    assert worker.stdin is not None
                    assert worker.stdout is not None
                    worker.stdin.write(f"{name},{estimator},{kind}\n")
                    worker.stdin.flush()
                    seconds[kind].append(float(worker.stdout.readline()))
            medians = {kind: statistics.median(values) for kind, values in seconds.items()}
            ratios = [f"{medians[kind] / medians['before']:.2f}" for kind in KINDS[1:]]
            rows.append([name, estimator, f"{1e3 * medians['before']:.2f}", *ratios])
            print(" | ".join(rows[-1]), flush=True)
    for worker in workers.values():
        worker.communicate()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="checkout of the commit to compare with")
    parser.add_argument(
        "--rounds", type=int, default=100, help="turns of each kind; four times as many of the smallest"
    )
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work()
        return
    if options.before is None or not (options.before / "src" / "sohot").is_dir():
        parser.error("--before must be a checkout of sohot: git worktree add --detach ../before COMMIT")
    commit = ["git", "-C", str(options.before), "rev-parse", "--short", "HEAD"]
    base = subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip()
    rows = measure(options.before, options.rounds)
    report = [
        "# Weights of rows on a CPU",
        "",
        f"Command: `python benchmarks/row_weights.py --before CHECKOUT`, a checkout of {base}, the commit before rows",
        f"had weights. Ratios of medians over {options.rounds} turns (four times as many of the smallest) within one",
        "run: processor time of `scatter_alignment`, orders 2+3, forward + backward, float32, one thread. 1.00 is the",
        "commit before.",
        f"Python {platform.python_version()}, torch {torch.__version__}.",
        "",
        *table(["classes × (N + N*) × d", "estimator", "ms before", "without weights", "weighted", KINDS[3]], rows),
    ]
    print("\n".join(report))
    RESULTS.write_text("\n".join(report) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
