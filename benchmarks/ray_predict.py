"""`sohot predict --engine ray` beside the plain command, on this machine: images per second, and memory as images pass.

Both label the same images with the same head, in turns. Rates leave out what a command needs to start: that of the
plain command is the difference of two runs, that of Ray is taken between two parts of one run.

    python benchmarks/ray_predict.py                  # both parts, written to benchmarks/results/ray-predict-cpu.md
    python benchmarks/ray_predict.py --part speed     # one part, printed
    python benchmarks/ray_predict.py --quick          # few images, printed
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import torch
from PIL import Image
from timing import table

RESULTS = Path(__file__).parent / "results" / "ray-predict-cpu.md"
MB = 1 << 20
PART = 256  # images in a part, for so few of them
_COPIES = 256  # of so many images, hard-linked


class Sample(NamedTuple):
    """A running command at one moment: parts done, seconds, processor seconds, and MB by kind of process."""

    done: int
    seconds: float
    cpu: float
    memory: dict[str, float]


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    cpu: float
    samples: list[Sample]


def run(words: list[str], parts: Path | None = None) -> Cost:
    """Run a command to its end, and watch it and all that it starts."""
    began, used, samples = time.perf_counter(), dict[int, float](), list[Sample]()
    process = subprocess.Popen([sys.executable, "-m", "sohot", *words], stdout=subprocess.DEVNULL)
    root = psutil.Process(process.pid)
    while process.poll() is None:
        megabytes = {"driver": 0.0, "largest worker": 0.0}
        with suppress(psutil.Error):
            for one in [root, *root.children(recursive=True)]:
                with suppress(psutil.Error, IndexError):
                    times = one.cpu_times()
                    used[one.pid] = times.user + times.system
                    kind = "driver" if one == root else "largest worker" if "MapWorker" in one.cmdline()[0] else ""
                    if kind:
                        megabytes[kind] = max(megabytes[kind], own_memory(one))
        done = len(list(parts.glob("*.pt"))) if parts is not None else 0
        samples.append(Sample(done, time.perf_counter() - began, sum(used.values()), megabytes))
        time.sleep(0.3)
    assert process.returncode == 0, words
    return Cost(time.perf_counter() - began, sum(used.values()), samples)


def own_memory(process: psutil.Process) -> float:
    """Return what a process holds apart from files and from what it shares with others, in MB."""
    found = process.memory_info()
    return (found.rss - found.shared) / MB


def make_images(folder: Path, count: int) -> None:
    """Write soft shapes, and hard-linked copies of them, 256 in a folder."""
    random = np.random.default_rng(0)
    for number in range(count):
        place = folder / f"{number // _COPIES:04d}"
        place.mkdir(parents=True, exist_ok=True)
        file = place / f"{number % _COPIES:03d}.jpg"
        if number < _COPIES:
            small = Image.fromarray(random.integers(0, 255, (12, 12, 3), dtype=np.uint8))
            small.resize((160, 120), Image.Resampling.BICUBIC).save(file)
        else:
            os.link(folder / "0000" / file.name, file)


def make_head(folder: Path) -> Path:
    """Train a head on the features of a few images, which is all the same here."""
    for domain in ("source", "target"):
        for name in ("a", "b", "c"):
            make_images(folder / domain / name, 3)
        run(["features", str(folder / domain), "--out", str(folder / f"{domain}.npz"), "--quiet"])
    files = [word for domain in ("source", "target") for word in (f"--{domain}", str(folder / f"{domain}.npz"))]
    run(["fit-features", *files, "--out", str(folder / "head"), "--quiet"])
    return folder / "head"


def compare(folder: Path, few: int, many: int, rounds: int) -> list[str]:
    """Label images with both engines in turns; return a table of the best rates."""
    head = make_head(folder)
    for count in (few, many):
        make_images(folder / str(count), count)
    plain, ray = list[tuple[float, float]](), list[tuple[float, float]]()
    for _ in range(rounds):
        costs = {}
        for count in (few, many):
            words = ["predict", str(head), str(folder / str(count)), "--out"]
            costs[count] = run([*words, str(folder / "local.csv")])
        less, more = costs[few], costs[many]
        plain.append(((many - few) / (more.seconds - less.seconds), (many - few) / (more.cpu - less.cpu)))
        seen = run([*words, str(folder / "ray.csv"), "--engine", "ray"], folder / "ray.csv.parts").samples
        last = max(sample.done for sample in seen)
        first, end = (next(sample for sample in seen if sample.done >= done) for done in (2, last - 2))
        images = (end.done - first.done) * PART
        ray.append((images / (end.seconds - first.seconds), images / (end.cpu - first.cpu)))
    same = (folder / "ray.csv").read_bytes() == (folder / "local.csv").read_bytes()
    best = [[max(column) for column in zip(*rates, strict=True)] for rates in (plain, ray)]
    rows = [[name, *(f"{rate:.1f}" for rate in rates)] for name, rates in zip(("local", "ray"), best, strict=True)]
    rows.append(["ray / local", *(f"{ours / theirs:.2f}" for theirs, ours in zip(*best, strict=True))])
    lines = table(["engine", "images/s", "images per processor second"], rows)
    return [*lines, "", f"The two files of {many} images are {'' if same else 'NOT '}the same, byte for byte."]


def memory(folder: Path, count: int) -> list[str]:
    """Label many images; return a table of the memory after each fifth of them."""
    make_images(folder / str(count), count)
    out = folder / "many.csv"
    words = ["predict", str(folder / "head"), str(folder / str(count)), "--engine", "ray", "--out", str(out)]
    seen = run(words, folder / "many.csv.parts").samples
    total = max(sample.done for sample in seen)
    rows = []
    for part in range(1, 6):
        low, high = (part - 1) * total / 5, part * total / 5
        if there := [sample.memory for sample in seen if low < sample.done <= high]:
            peaks = [f"{max(used[kind] for used in there):.0f}" for kind in ("driver", "largest worker")]
            rows.append([f"{round(low / total * count)} to {round(high / total * count)}", *peaks])
    return table(["images done", "driver, MB", "largest worker, MB"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few images and one turn; not saved")
    parser.add_argument("--part", choices=("speed", "memory"), help="only this part; not saved")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each engine")
    arguments = parser.parse_args()
    few, many, rounds, total = (256, 2048, 1, 1024) if arguments.quick else (512, 3072, arguments.rounds, 20_000)
    report = [
        "# Labelling images on Ray, on one machine",
        "",
        "Command: `python benchmarks/ray_predict.py`. EfficientNet-Lite0 and a head;",
        "made-up images of 160 × 120. Processor seconds are those of all processes, Ray's own included.",
        f"Python {platform.python_version()}, torch {torch.__version__}, Ray {version('ray')}, {os.cpu_count()} cores.",
    ]
    with tempfile.TemporaryDirectory() as folder:
        if arguments.part != "memory":
            load = os.getloadavg()[0]
            report += [
                "",
                f"## Speed (`--part speed --rounds {rounds}`)",
                "",
                *compare(Path(folder), few, many, rounds),
            ]
            report += [
                "",
                f"Best of {rounds} turns, without the start of the commands. Other work shared the cores: the load was",
                f"{load:.0f} before and {os.getloadavg()[0]:.0f} after. On busy cores two processes get more than",
                "one, so compare by processor seconds, not by the clock.",
            ]
        if arguments.part != "speed":
            if arguments.part == "memory":
                make_head(Path(folder))
            report += ["", f"## Memory over {total} images (`--part memory`)", "", *memory(Path(folder), total)]
            report += ["", "What a process holds for itself, without files and what it shares; peak of each fifth."]
    print("\n".join(report))
    if not arguments.quick and arguments.part is None:
        RESULTS.write_text("\n".join(report) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
