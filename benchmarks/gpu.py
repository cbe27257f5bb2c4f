"""Run all GPU measurements in one call of about five minutes: the loss, training with it, and how images get there.

    python benchmarks/gpu.py [--out FILE.md] [--only kernel|training|pipeline]

Prints Markdown; with --out, also writes it to a file.
"""

import argparse
import platform
import subprocess
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import torch
from gpu_training import pipeline_table, training_table

MINUTES = 5
PARTS = ("kernel", "training", "pipeline")


def machine() -> list[str]:
    """Describe the machine."""
    card = torch.cuda.get_device_properties(0)
    names = ("torch", "triton", "torchvision", "timm", "lightning-fabric", "numpy")
    versions = ", ".join(f"{name} {_version(name)}" for name in names)
    return [
        f"{card.name}, {card.total_memory / 2**30:.0f} GiB, {card.multi_processor_count} multiprocessors; driver "
        f"{_driver()}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}; Python "
        f"{platform.python_version()}, {versions}.",
        "",
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # installed without metadata
        module = name.replace("-", "_")
        return str(getattr(import_module(module), "__version__", "?")) if find_spec(module) else "absent"


def _driver() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def kernel() -> list[str]:
    """Measure the fused kernel."""
    from gpu_kernel import kernel_bars, report

    return ["## Fused kernel", "", *report(kernel_bars()), ""]


def write(file: Path | None, lines: list[str]) -> None:
    """Write the Markdown, if a file is given."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="file to write the Markdown to")
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    parser.add_argument("--rounds", type=int, default=7, help="blocks of steps of each training")
    parser.add_argument("--seconds", type=float, default=150.0, help="approximate time limit for the training part")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a CUDA GPU")
    began = time.perf_counter()
    lines = ["# On a GPU", "", *machine()]
    parts: dict[str, Callable[[], list[str]]] = {
        "kernel": kernel,
        "training": lambda: training_table(options.rounds, options.seconds),
        "pipeline": pipeline_table,
    }
    for name, measured in parts.items():
        if options.only in (None, name):
            lines += measured()
            write(options.out, lines)  # keep this part, whatever happens next
    took = time.perf_counter() - began
    lines.append(f"Measured by `python benchmarks/gpu.py` in {took / 60:.1f} minutes (limit: {MINUTES}).")
    write(options.out, lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
