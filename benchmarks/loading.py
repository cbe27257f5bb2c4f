"""Measure how fast images are read, against a plain Pillow loop and by threads, and what keeping them saves.

    python benchmarks/loading.py [--quick] [--images N] [--only-augmented]

Reads Office-31 if available (the folder named by SOHOT_OFFICE31) and large photographs that it generates. Every
comparison is a ratio within one run, measured in turns: rates per core by processor time, so that other work on the
machine does not matter; growth with threads by the best wall time. Writes benchmarks/results/loading-cpu.md.
"""

import argparse
import hashlib
import os
import platform
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import PIL
import torch
from PIL import Image
from timing import make_images, table
from torch import nn

from sohot.data import AugmentedImages, InputSpec, LabelledImages, iter_batches
from sohot.data.crops import fit_image
from sohot.data.datasets import open_dataset
from sohot.data.protocols import paper_split
from sohot.data.readers import read_item
from sohot.networks.trunk_cache import cache_trunk

RESULTS = Path(__file__).parent / "results" / "loading-cpu.md"
OFFICE31 = Path(os.environ.get("SOHOT_OFFICE31", Path(__file__).parents[2] / "shared" / "data" / "office31"))
SPEC = InputSpec(size=224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), resize=256)
BATCH = 32


def pillow_picture(file: Path) -> Image.Image:
    """Do what one would write without a library: open, resize the shorter side, crop the centre."""
    with Image.open(file) as opened:
        image = opened.convert("RGB")
    scale = SPEC.resize / min(image.size)
    size = round(image.width * scale), round(image.height * scale)
    image = image.resize(size, Image.Resampling.BICUBIC)
    left, top = (size[0] - SPEC.size) // 2, (size[1] - SPEC.size) // 2
    return image.crop((left, top, left + SPEC.size, top + SPEC.size))


def pillow_bytes(images: LabelledImages) -> None:
    for file in images.files:
        np.asarray(pillow_picture(file))


def pillow_tensors(images: LabelledImages) -> None:
    """Do the same, giving batches of normalised tensors."""
    mean, std = (torch.tensor(numbers).view(3, 1, 1) for numbers in (SPEC.mean, SPEC.std))
    for start in range(0, len(images), BATCH):
        pictures = [np.array(pillow_picture(file)) for file in images.files[start : start + BATCH]]
        torch.stack([(torch.from_numpy(each).permute(2, 0, 1) / 255 - mean) / std for each in pictures])


def our_bytes(images: LabelledImages) -> None:
    for row in range(len(images)):
        np.asarray(fit_image(read_item(images, row, at_least=2 * SPEC.resize), SPEC))


def our_tensors(images: LabelledImages, workers: int) -> None:
    for _ in iter_batches(images, SPEC, BATCH, workers):
        pass


def hashing(content: bytes, threads: int) -> None:
    """Do work that does not need Python's lock, to see what the machine can give threads at this moment."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: hashlib.sha256(content).digest(), range(128)))


def measure(ways: dict[str, Callable[[], None]], rounds: int, warm: bool = True) -> dict[str, tuple[float, float]]:
    """Return the lowest processor and wall seconds of each way, taken in turns, after an optional warm-up round."""
    best = dict.fromkeys(ways, (float("inf"), float("inf")))
    for number in range(0 if warm else 1, rounds + 1):
        for name, way in ways.items():
            wall, processor = time.perf_counter(), time.process_time()
            way()
            taken = time.process_time() - processor, time.perf_counter() - wall
            if number:
                best[name] = min(best[name][0], taken[0]), min(best[name][1], taken[1])
    return best


def compare(images: LabelledImages, rounds: int) -> tuple[list[str], str]:
    """Compare rates with Pillow's, in one thread."""
    ways: dict[str, Callable[[], None]] = {
        "decode and resize: Pillow loop": partial(pillow_bytes, images),
        "decode and resize: sohot": partial(our_bytes, images),
        "to batches of tensors: Pillow loop": partial(pillow_tensors, images),
        "to batches of tensors: sohot": partial(our_tensors, images, 1),
    }
    taken = measure(ways, rounds)
    rows, ratios = [], {}
    for name, (processor, wall) in taken.items():
        pillow = taken[f"{name.split(':')[0]}: Pillow loop"]
        ratios[name] = f"{pillow[0] / processor:.2f}"
        rows.append([name, f"{len(images) / wall:.0f}", ratios[name], f"{pillow[1] / wall:.2f}"])
    said = f"per core, decode and resize: {ratios['decode and resize: sohot']}"
    said += f"  to tensors: {ratios['to batches of tensors: sohot']}"
    return table(["one thread", "images/s here", "rate per core / Pillow's", "rate / Pillow's"], rows), said


def growth(images: LabelledImages, rounds: int, most: int) -> tuple[list[str], str]:
    """Measure how the rate grows with threads, in the round in which the machine was least busy."""
    content = bytes(1 << 20)
    rows, said = [], []
    for count in [count for count in (2, 4, 8, 16) if count <= most]:
        best = (0.0, 0.0)
        for _ in range(rounds):
            ways = {
                "machine, one": partial(hashing, content, 1),
                "before": partial(hashing, content, count),
                "ours": partial(our_tensors, images, count),
                "after": partial(hashing, content, count),
                "ours, one": partial(our_tensors, images, 1),
            }
            walls = {name: wall for name, (_, wall) in measure(ways, 1, warm=False).items()}
            free = walls["machine, one"] / max(walls["before"], walls["after"])
            best = max(best, (free, walls["ours, one"] / walls["ours"]))
        rows.append([str(count), f"{best[1]:.2f}", f"{best[0]:.2f}"])
        said.append(f"{count}: {best[1]:.2f} of {best[0]:.2f}")
    header = ["threads", "rate / rate of one thread", "SHA-256 in as many threads / in one"]
    return table(header, rows), f"growth with threads: {', '.join(said)}"


def cached(images: LabelledImages) -> tuple[list[str], float]:
    """Time two epochs: the first reads files and fills the cache, the second takes its batches from there."""
    start = time.perf_counter()
    whole = cache_trunk(nn.Identity(), iter_batches(images, SPEC, BATCH), len(images))
    first = time.perf_counter() - start
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    start = time.perf_counter()
    for rows in order.split(BATCH):
        whole[rows]
    second = time.perf_counter() - start
    rows = [
        ["first, from files", f"{len(images) / first:.0f}"],
        ["second, from the cache", f"{len(images) / second:.0f}"],
    ]
    return table(["epoch", "images/s here"], rows), first / second


def augmented(images: LabelledImages, rounds: int, most: int) -> tuple[list[str], str]:
    """Compare random crops of images decoded again in each epoch with crops of images decoded once."""
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0)).split(BATCH)

    def epoch(inputs: AugmentedImages) -> None:
        for rows in order:
            inputs.batch(rows)

    rows, said = [], []
    for workers in [count for count in (1, 2, 4, 8) if count <= most]:
        once = AugmentedImages(images, SPEC, lambda: float("inf"), workers)
        anew = AugmentedImages(images, SPEC, lambda: 0.0, workers)
        taken = measure(
            {
                "anew": partial(epoch, anew),
                "once": partial(epoch, once),
                "first": lambda workers=workers: epoch(AugmentedImages(images, SPEC, lambda: float("inf"), workers)),
            },
            rounds,
        )
        wall = [taken["anew"][1] / taken[name][1] for name in ("once", "first")]
        per_core = [taken["anew"][0] / taken[name][0] for name in ("once", "first")]
        rates = [f"{len(images) / taken[name][1]:.0f}" for name in ("anew", "once")]
        rows.append([str(workers), *rates, *(f"{ratio:.2f}" for ratio in (wall[0], per_core[0], wall[1], per_core[1]))])
        said.append(f"{workers}: {per_core[0]:.2f}")
    header = [
        "threads",
        "images/s here: again",
        "once",
        "rate, once / again",
        "per core",
        "first epoch / again",
        "per core",
    ]
    return table(header, rows), f"per core, augmented, decoded once / again, by threads: {', '.join(said)}"


def augmented_report(rounds: int, most: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        lines, said = augmented(make_images(Path(folder), 128), rounds, most)
    title = "## Augmented: generated images, 400 × 300, 128 images"
    words = "Random crops and mirroring, as with `--augment`: each image decoded again in each epoch, or once and kept."
    return ["", title, "", words, "", *lines, "", said]


def office(count: int) -> LabelledImages | None:
    if not OFFICE31.is_dir():
        return None
    images = paper_split(open_dataset("office31", OFFICE31), "A-W", 1).sides["target_test"]
    return images.subset(range(0, len(images), max(1, len(images) // count)))


def large_photographs(folder: Path, count: int) -> LabelledImages:
    """Write soft shapes as large as a phone's photograph: 2000 × 1500, JPEG."""
    random = np.random.default_rng(0)
    files = []
    for number in range(count):
        small = Image.fromarray(random.integers(0, 255, (60, 80, 3), dtype=np.uint8))
        files.append(folder / f"{number}.jpg")
        small.resize((2000, 1500), Image.Resampling.BICUBIC).save(files[-1], quality=90)
    return LabelledImages(files, [0] * count, ["made"], folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few images and rounds; not saved")
    parser.add_argument("--images", type=int, default=200, help="number of Office-31 images")
    parser.add_argument("--only-augmented", action="store_true", help="print only that part; not saved")
    arguments = parser.parse_args()
    rounds, most = (2, 2) if arguments.quick else (6, len(os.sched_getaffinity(0)))
    torch.set_num_threads(1)
    if arguments.only_augmented:
        print("\n".join(augmented_report(rounds, most)))
        return
    report = [
        "# Reading images on a CPU",
        "",
        "Command: `python benchmarks/loading.py`. Ratios within one run, in turns; images/s depend on the machine and",
        "its other work. Per core: by processor time. Growth with threads: in the round in which the machine was",
        "least busy, next to SHA-256 in as many threads, which does not need Python's lock.",
        f"Python {platform.python_version()}, torch {torch.__version__}, Pillow {PIL.__version__}, {most} cores.",
    ]
    with tempfile.TemporaryDirectory() as folder:
        made = large_photographs(Path(folder), 6 if arguments.quick else 24)
        sets = {"Office-31, 256 × 256": office(arguments.images), "Generated photographs, 2000 × 1500": made}
        for title, images in sets.items():
            if images is None:
                continue
            lines, said = compare(images, rounds)
            grown, growing = growth(images.subset(range(min(len(images), 128))), 2 * rounds, most)
            epochs, saved = cached(images)
            report += ["", f"## {title}, {len(images)} images", "", *lines, "", *grown, "", *epochs, ""]
            report += [f"{said}  {growing}  second epoch: {saved:.0f} times the first"]
    report += augmented_report(rounds, most)
    print("\n".join(report))
    if not arguments.quick:
        RESULTS.write_text("\n".join(report) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
