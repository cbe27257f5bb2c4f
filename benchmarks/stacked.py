"""Compare many fits on features at once with the same fits one after another.

    python benchmarks/stacked.py                       # two CPU cores: about five minutes
    python benchmarks/stacked.py --device cuda         # both, about two minutes
    python benchmarks/stacked.py --features feats.npz  # real features, as `sohot features` writes them

The fits have the shape of Office-31: six shifts between three domains with 10 splits each, 31 classes, 20 source rows
per class from the first domain or 8 from the others, 3 target rows per class. Both ways do all the work, from raw
features to trained fits, in turns within one run; the ratio is that of the medians. Writes nothing without --out.
"""

import argparse
import platform
import resource
import statistics
import time
from itertools import permutations
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sohot.heads import FeatureProblem, StackedFit, fit_stack
from sohot.methods import HeadSettings

CLASSES, SIZE, SHOTS = 31, 1280, 3
PER_CLASS = 40  # synthetic rows of each class in each domain


def made_up() -> tuple[Tensor, Tensor, Tensor]:
    """Generate features, labels and domains: classes with their own spread, domains shifted apart."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(CLASSES).repeat_interleave(PER_CLASS).repeat(3)
    domains = torch.arange(3).repeat_interleave(CLASSES * PER_CLASS)
    centres = torch.randn(CLASSES, SIZE, generator=generator)
    moved = torch.randn(3, SIZE, generator=generator)
    noise = torch.randn(len(labels), SIZE, generator=generator)
    return (centres[labels] + moved[domains] + 2 * noise).relu(), labels, domains


def from_file(file: Path) -> tuple[Tensor, Tensor, Tensor]:
    with np.load(file, allow_pickle=False) as arrays:
        return tuple(torch.from_numpy(arrays[name]) for name in ("features", "labels", "domains"))


def office_problems(features: Tensor, labels: Tensor, domains: Tensor, count: int) -> list[FeatureProblem]:
    """Draw splits, cycling through the shifts; all share one tensor of features."""
    num_classes = int(labels.max()) + 1
    shifts = list(permutations(domains.unique().tolist(), 2))
    problems = []
    for number in range(count):
        source, target = shifts[number % len(shifts)]
        generator = torch.Generator().manual_seed(number)
        rows = [
            _draw(labels, domains == domain, shots, num_classes, generator)
            for domain, shots in ((source, 20 if source == 0 else 8), (target, SHOTS))
        ]
        problems.append(FeatureProblem.from_rows(features, labels, *rows, num_classes))
    return problems


def _draw(labels: Tensor, members: Tensor, shots: int, num_classes: int, generator: torch.Generator) -> Tensor:
    found = [((labels == c) & members).nonzero().flatten() for c in range(num_classes)]
    return torch.cat([rows[torch.randperm(len(rows), generator=generator)[:shots]] for rows in found])


def stacked(problems: list[FeatureProblem], settings: HeadSettings, device: str) -> list[StackedFit]:
    return fit_stack(problems, [settings] * len(problems), device=device)


def one_by_one(problems: list[FeatureProblem], settings: HeadSettings, device: str) -> list[StackedFit]:
    return [fit_stack([problem], [settings], device=device)[0] for problem in problems]


def compare(problems: list[FeatureProblem], settings: HeadSettings, device: str, rounds: int) -> list[str]:
    """Time both ways in turns; report the speed-up of the stack, how far the results differ, and its memory."""
    stacked(problems[:2], settings, device)  # warm-up: load libraries, choose kernels
    before = _peak_bytes(device, reset=True)
    stacked(problems, settings, device)
    memory = _peak_bytes(device) - before
    seconds: dict[str, list[float]] = {"stacked": [], "one by one": []}
    fits: dict[str, list[StackedFit]] = {}
    for _ in range(rounds):
        for name, way in (("stacked", stacked), ("one by one", one_by_one)):
            start = time.perf_counter()
            fits[name] = way(problems, settings, device)
            if device == "cuda":
                torch.cuda.synchronize()
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    loss = [max(abs(_last(a) - _last(b)) / abs(_last(b)) for a, b in zip(*fits.values(), strict=True))]
    rows = problems[0].target
    same = [
        (a.predict_logits(rows).argmax(1) == b.predict_logits(rows).argmax(1)).double().mean().item()
        for a, b in zip(*fits.values(), strict=True)
    ]
    steps = len(problems) * settings.steps
    return [
        f"{name} ({device}): {value:.2f} s, {1e3 * value / steps:.3f} ms per step of one fit"
        for name, value in medians.items()
    ] + [
        f"memory of the stack ({device}): {memory / 2**20:.0f} MiB at the peak",
        f"agreement ({device}): last losses within {loss[0]:.1e}, at least {100 * min(same):.2f} % same predictions",
        f"stacked vs one by one ({device}): {medians['one by one'] / medians['stacked']:.2f}",
    ]


def _last(fit: StackedFit) -> float:
    return float(fit.history["loss"][-1])


def _peak_bytes(device: str, reset: bool = False) -> int:
    """Return the peak memory so far: of the allocator on a GPU, of the whole process on a CPU."""
    if device == "cuda":
        if reset:
            torch.cuda.reset_peak_memory_stats()
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if platform.system() == "Darwin" else 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda also measures the CPU")
    parser.add_argument("--skip-cpu", action="store_true", help="with --device cuda: measure only the GPU")
    parser.add_argument("--fits", type=int, default=60)
    parser.add_argument("--method", default="so")
    parser.add_argument("--components", type=int, help="default: that of the method")
    parser.add_argument("--steps", type=int, help="default: 100 on a CPU, 300 on a GPU")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--features", type=Path, help="an .npz with features, labels and domains")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    options = parser.parse_args()

    data = made_up() if options.features is None else from_file(options.features)
    problems = office_problems(*data, options.fits)
    components = HeadSettings(method=options.method, components=options.components).used_components() or "all"
    report = [
        f"{options.fits} fits, method {options.method}, {data[0].shape[1]} features, {components} components; "
        f"Python {platform.python_version()}, torch {torch.__version__}, {torch.get_num_threads()} CPU threads"
        + (f", {torch.cuda.get_device_name()}" if options.device == "cuda" else "")
    ]
    print(report[0], flush=True)
    for device in ("cpu", "cuda"):
        if (device == "cpu" and options.skip_cpu) or (device == "cuda" and options.device == "cpu"):
            continue
        steps = options.steps or (100 if device == "cpu" else 300)
        settings = HeadSettings(method=options.method, components=options.components, steps=steps)
        lines = compare(problems, settings, device, options.rounds)
        print("\n".join(lines), flush=True)
        report += lines
    if options.out is not None:
        options.out.write_text("\n".join(report) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
