"""Measure the memory of the losses with many rows: forward and backward, one process each.

    python benchmarks/memory.py [--rows 5000 10000 20000] [--losses order2 order2+3+4 supcon]

Half of the rows are source rows, half target rows; all are one class to the alignment (scope="marginal"). Prints what
the process needed at its peak beyond what it held before the loss: the features and the libraries.
"""

import argparse
import resource
import subprocess
import sys
import time

FEATURES, CLASSES = 512, 10
LOSSES = ("order2", "order2-unbiased", "order2+3+4", "order2+3+4-unbiased", "supcon", "ccsa", "dsne", "dage")


def measure(name: str, rows: int) -> tuple[float, float]:
    """Return the peak in GB and the seconds of one forward and backward pass, in this process."""
    import torch

    from sohot import ScatterAlignment
    from sohot.losses.domain_loss import loss_class
    from sohot.methods.registry import method

    def make_loss() -> torch.nn.Module:
        if not name.startswith("order"):
            return loss_class(method(name).loss)(CLASSES)
        orders, _, estimator = name.removeprefix("order").partition("-")
        numbers = tuple(map(int, orders.split("+")))
        return ScatterAlignment(CLASSES, numbers, scope="marginal", estimator=estimator or "plugin")

    def step(rows: int) -> None:
        source, target = (torch.randn(rows // 2, FEATURES, requires_grad=True) for _ in range(2))
        labels = torch.arange(rows // 2) % CLASSES
        nonlocal before, start
        before, start = peak(), time.perf_counter()
        make_loss()(source, labels, target, labels).backward()

    before, start = 0.0, 0.0
    step(8)  # loads what the loss needs
    step(rows)
    return peak() - before, time.perf_counter() - start


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5000, 10000, 20000])
    parser.add_argument("--losses", nargs="+", default=LOSSES, choices=LOSSES)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(
            "| {} | {} | {:.2f} | {:.1f} |".format(
                name := arguments.losses[0], rows := arguments.rows[0], *measure(name, rows)
            )
        )
        return
    print(
        f"| loss, d = {FEATURES} | rows | peak beyond the features, GB | s here |\n| --- | --- | --- | --- |",
        flush=True,
    )
    for name in arguments.losses:
        for rows in arguments.rows:
            subprocess.run([sys.executable, __file__, "--here", "--losses", name, "--rows", str(rows)], check=True)


if __name__ == "__main__":
    main()
