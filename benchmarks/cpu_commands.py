"""Measure the commands of a user on a CPU, against an earlier version and against ONNX Runtime.

    python benchmarks/cpu_commands.py SOURCE TARGET [--before CHECKOUT] [--steps N] [--images N] [--threads N]

SOURCE and TARGET are class folders of images. Trains for a few steps, then labels images and extracts features, in
processes of their own and in turns; CHECKOUT is another version of this repository. ONNX Runtime labels the same
images with the exported model, in a loop that reads them ahead with as many threads as `sohot predict`. Times of one
run are to be compared with each other only. Writes benchmarks/results/commands-cpu.md.
"""

import argparse
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from timing import table

RESULTS = Path(__file__).parent / "results" / "commands-cpu.md"
HERE = Path(__file__).parents[1]
FEW = 8
"""So many images tell what starting up costs."""

ONNX_LOOP = """
import sys, json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np, onnxruntime
from sohot.data.crops import to_tensor
from sohot.data.decode import default_workers, read_image
from sohot.data.input_spec import InputSpec
model, folder, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[4])
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
known = json.loads(session.get_modelmeta().custom_metadata_map["preprocessing"])
spec = InputSpec(known["size"], tuple(known["mean"]), tuple(known["std"]), known["resize"], known["interpolation"])
def read(file):
    return to_tensor(read_image(file, 3, at_least=2 * spec.resize), spec).numpy()
files = sorted(folder.iterdir())[:count]
with ThreadPoolExecutor(default_workers()) as pool:
    images, batch = pool.map(read, files), []
    for number, image in enumerate(images, 1):
        batch.append(image)
        if len(batch) == 32 or number == len(files):
            session.run(None, {session.get_inputs()[0].name: np.stack(batch)})
            batch = []
"""


@dataclass(frozen=True)
class Cost:
    """What a process took: seconds of the clock and of the processor, page faults, and its largest memory in bytes."""

    wall: float
    user: float
    system: float
    faults: int
    memory: int


def measure(words: list[str], checkout: Path, threads: int) -> Cost:
    """Run a process and count what it takes; it must succeed."""
    # A child of its own, because the largest memory is known only over all children of a process.
    begin = time.perf_counter()
    variables = {"PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": str(threads)}
    process = subprocess.Popen(
        [sys.executable, *words], env={**os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.read().decode(errors="replace")
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    if status:
        raise SystemExit(f"{shlex.join(words)} failed:\n{said[-2000:]}")
    return Cost(wall, used.ru_utime, used.ru_stime, used.ru_minflt, used.ru_maxrss * 1024)


def best(costs: list[Cost]) -> Cost:
    return min(costs, key=lambda cost: cost.user + cost.system)


def pictures(target: Path, folder: Path, count: int) -> Path:
    """Link images of all classes into one flat folder."""
    files = sorted(file.resolve() for file in target.rglob("*") if file.is_file())
    folder.mkdir()
    for number, file in enumerate(files[:: max(1, len(files) // count)][:count]):
        (folder / f"{number:04d}{file.suffix}").symlink_to(file)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--before", type=Path, help="checkout of an earlier version")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2, help="turns of a command")
    parser.add_argument(
        "--predict-rounds", type=int, default=5, help="turns of predict, which is compared most closely"
    )
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        lines = compare(given, work)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def sohot(words: str) -> list[str]:
    return ["-m", "sohot", *shlex.split(words)]


def compare(given: argparse.Namespace, work: Path) -> list[str]:
    """Measure all commands and return the page."""
    images = pictures(given.target, work / "images", given.images)
    versions = {"now": HERE} if given.before is None else {"before": given.before.resolve(), "now": HERE}
    domains = f"--source {shlex.quote(str(given.source))} --target {shlex.quote(str(given.target))}"
    target, model = shlex.quote(str(given.target)), work / "model.onnx"
    commands = {
        "fit": f"fit {domains} --shots 3 --steps {given.steps} --out {work}/{{name}}-{{turn}} --quiet",
        "predict": f"predict {work}/{{name}}-0 {images} --out {work}/{{name}}-{{turn}}.csv --quiet",
        "features": f"features {target} --out {work}/{{name}}-{{turn}}.npz --quiet",
        "report": f"report {work}/{{name}}-0 --quiet",
    }
    costs: dict[tuple[str, str], list[Cost]] = {}
    for command, words in commands.items():
        turns = range(given.predict_rounds if command == "predict" else given.rounds)
        for turn in turns:
            for name, checkout in versions.items():
                costs.setdefault((command, name), []).append(
                    measure(sohot(words.format(name=name, turn=turn)), checkout, given.threads)
                )
        if command == "predict":
            measure(sohot(f"export {work}/now-0 --onnx {model}"), HERE, given.threads)
            loop = ["-c", ONNX_LOOP, str(model), str(images), str(given.images), str(given.threads)]
            costs[command, "ONNX Runtime"] = [measure(loop, HERE, given.threads) for _ in turns]
            few = pictures(given.target, work / "few", FEW)
            words = f"predict {work}/now-0 {few} --out {work}/few.csv --quiet"
            costs[f"predict {FEW}", "now"] = [measure(sohot(words), HERE, given.threads) for _ in turns]
            loop[-2] = str(FEW)
            costs[f"predict {FEW}", "ONNX Runtime"] = [measure(loop, HERE, given.threads) for _ in turns]
    return page(given, {key: best(found) for key, found in costs.items()})


def beyond_start(costs: dict[tuple[str, str], Cost], version: str) -> tuple[float, float]:
    """Return the seconds, of the processor and of the clock, that images take beyond the start."""
    few, many = costs[f"predict {FEW}", version], costs["predict", version]
    return many.user + many.system - few.user - few.system, many.wall - few.wall


def page(given: argparse.Namespace, costs: dict[tuple[str, str], Cost]) -> list[str]:
    """Write the figures as Markdown."""
    header = [
        "command",
        "version",
        "wall s",
        "user s",
        "system s",
        "system / user",
        "page faults",
        "memory GB",
        "before / this",
    ]
    rows = []
    for (command, version), cost in costs.items():
        before = costs.get((command, "before"))
        rows.append(
            [
                command,
                version,
                f"{cost.wall:.1f}",
                f"{cost.user:.1f}",
                f"{cost.system:.1f}",
                f"{100 * cost.system / cost.user:.0f} %",
                f"{cost.faults / 1e6:.2f} million",
                f"{cost.memory / 1e9:.2f}",
                "" if before is None else f"{(before.user + before.system) / (cost.user + cost.system):.2f}",
            ]
        )
    now, other = (beyond_start(costs, version) for version in ("now", "ONNX Runtime"))
    return [
        "# Commands on a CPU",
        "",
        f"`python benchmarks/cpu_commands.py SOURCE TARGET {shlex.join(sys.argv[3:])}`, {platform.machine()}, "
        f"{given.threads} threads, {given.steps} steps, {given.images} images to label. "
        f"The best of {given.rounds} turns (of predict: {given.predict_rounds}) by processor time; the last column is "
        "a ratio of processor times.",
        "",
        *table(header, rows),
        "",
        f"Rate of `sohot predict` against ONNX Runtime on the same model and images, decoding included in both, "
        f"start-up in neither: {other[0] / now[0]:.2f} by processor time, {other[1] / now[1]:.2f} by the clock.",
    ]


if __name__ == "__main__":
    main()
