"""Train `sohot fit` and `sohot fit --method auto` on the images of tasks that had no part in finding the rule.

    python studies/choosing/images.py FOLDER DATA --out docs/results/choosing-images.md

FOLDER holds features (see tasks.py), DATA the folders office31 and pacs. It also plays the case of a new user: 60
photos and 40 cartoons of each class, three of these labelled, in ten draws. On a GPU with 16 cores it takes about eight
minutes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # runs go side by side

import json
import multiprocessing
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
from prove import interval
from tasks import Task, command_line, image_tasks, read_domains

from sohot import SoHoTClassifier, SoHoTClassifierCV
from sohot.data.labelled import LabelledImages
from sohot.heads.baselines import baseline
from sohot.runs.config import RunConfig
from sohot.runs.pipeline import fit_run
from sohot.runs.split_file import write_run_split

Job = tuple[str, str, dict[str, object]]
"""A data set, the name of a task, and options of `sohot fit`."""


def root_of(data: Path, domain: str) -> Path:
    """Return the folder of a domain's class folders."""
    return data / "pacs" / domain if domain in ("photo", "cartoon") else data / "office31" / domain / "images"


def write_split(task: Task, classes: list[str], data: Path, out: Path) -> Path:
    """Write which images of a task train and test, in the form that `sohot fit --split` takes."""
    assert task.files is not None
    source, target = (root_of(data, domain) for domain in task.name.split(" ")[0].split("-"))
    labels = {"source_train": task.source[1], "target_train": task.target[1], "target_test": task.test[1]}
    sides = {}
    for side, names in task.files.items():
        root = source if side == "source_train" else target
        sides[side] = LabelledImages(tuple(root / name for name in names), tuple(labels[side]), tuple(classes), root)
    out.mkdir(parents=True)
    write_run_split(out, tuple(classes), sides)
    return out / "split.json"


def task_jobs(folder: Path, data: Path, work: Path, office: int, pacs: int) -> Iterator[Job]:
    """Yield two runs for each task: as it comes, and with `--method auto`."""
    for name, draws, classes_of in (("office31", office, "office31"), ("pacs", pacs, "photo")):
        classes = np.load(folder / f"{classes_of}-lite0.npz")["classes"].tolist()
        for task in image_tasks(folder, name, "lite0", range(draws)):
            split = write_split(task, classes, data, work / "splits" / task.name.replace(" ", "-"))
            for method in ("as it comes", "auto"):
                options = {"split": split} | ({} if method == "as it comes" else {"method": "auto"})
                yield name, f"{task.name}/{method}", options


def user_jobs(data: Path, work: Path) -> Iterator[Job]:
    """Yield the runs of a new user."""
    for domain, count in (("photo", 60), ("cartoon", 40)):
        for folder in sorted(root_of(data, domain).iterdir()):
            kept = work / "user" / domain / folder.name
            kept.mkdir(parents=True)
            for file in sorted(folder.iterdir())[:count]:
                shutil.copy(file, kept)
    for seed in range(10):
        folders = {"source": work / "user" / "photo", "target": work / "user" / "cartoon"}
        yield "new user", f"draw {seed}/as it comes", {**folders, "shots": 3, "seed": seed}


def run(job: Job, work: Path, device: str) -> dict[str, object]:
    """Train one run; return its accuracy, that of the classifier on frozen features, and what was kept."""
    torch.set_num_threads(1)
    data, name, options = job
    out = work / "runs" / name.replace(" ", "-")
    # One pass: what is compared is the choice between a classifier and layers, from the same features.
    own = {"batch_norm": "fixed", "read_threads": 2, "loggers": "none"}
    config = RunConfig(out=out, device=device, **own, **options)  # type: ignore[arg-type]
    report = fit_run(config)
    chosen = (report.get("selection") or {}).get("chosen")
    found = {"data": data, "name": name, "kept": chosen, "accuracy": report["accuracy"]["micro"]}
    found |= {"head": report["head"]["test"]["accuracy"], "ece": report["accuracy"].get("calibration")}
    return {**found, "split": str(out / "split.json")}


def on_features(folder: Path, split: Path) -> dict[str, float]:
    """Train classifiers on features of the images of a run of the new user."""
    domains = read_domains(folder, "lite0")["pacs"]
    sides = json.loads(split.read_text(encoding="utf-8"))["sides"]
    rows = {}
    for side, domain in (("source_train", "photo"), ("target_train", "cartoon"), ("target_test", "cartoon")):
        x, y, files = domains[domain]
        place = {name: row for row, name in enumerate(files)}
        chosen = [place[name] for name in sides[side]["files"]]
        rows[side] = x[chosen], y[chosen]
    task = Task("new user", "", rows["source_train"], rows["target_train"], rows["target_test"])
    x, y, sample_domain = task.joined()
    models = {"SoHoTClassifierCV": SoHoTClassifierCV(), "SoHoTClassifier": SoHoTClassifier()}
    models["logistic-both"] = baseline("logistic-both")
    for model in models.values():
        model.fit(x, y, sample_domain=sample_domain)
    return {name: float(np.mean(model.predict(task.test[0]) == task.test[1])) for name, model in models.items()}


def tabulate(found: list[dict[str, object]], user: list[dict[str, float]]) -> str:
    """Write the tables."""
    lines = ["| | tasks | frozen features | `sohot fit` | `--method auto` | auto − fit | layers kept by fit, auto |"]
    lines.append("| --- |" + " --- |" * 6)
    for data in ("office31", "pacs"):
        own = [one for one in found if one["data"] == data]
        usual, auto = ([one for one in own if str(one["name"]).endswith(end)] for end in ("as it comes", "auto"))
        means = [
            100 * np.mean([one[key] for one in part])
            for part, key in ((usual, "head"), (usual, "accuracy"), (auto, "accuracy"))
        ]
        gain = interval(np.asarray([a["accuracy"] - b["accuracy"] for a, b in zip(auto, usual, strict=True)]))
        kept = [sum(one["kept"] != "head" for one in part) for part in (usual, auto)]
        lines.append(
            f"| {data} | {len(usual)} | "
            + " | ".join(f"{mean:.2f}" for mean in means)
            + f" | {gain} | {kept[0]}, {kept[1]} |"
        )
    fits = np.asarray([one["accuracy"] for one in found if one["data"] == "new user"])
    columns = {"`sohot fit`": fits} | {name: np.asarray([one[name] for one in user]) for name in user[0]}
    lines += ["", "The new user: photos to cartoons, 21 labelled cartoons, 259 to test, ten draws.", ""]
    lines += ["| | mean | − logistic-both |", "| --- | --- | --- |"]
    for name, values in columns.items():
        against = "" if name == "logistic-both" else interval(values - columns["logistic-both"])
        lines.append(f"| {name} | {100 * values.mean():.2f} | {against} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train all runs side by side, and write the tables and a JSON file of all numbers."""
    parser = command_line(__doc__)
    parser.add_argument("data", type=Path, help="the folders office31 and pacs")
    parser.add_argument("--work", type=Path, default=Path("choosing-runs"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--office", type=int, default=5, help="draws of Office-31")
    parser.add_argument("--pacs", type=int, default=10, help="draws of PACS")
    options = parser.parse_args()
    jobs = [*user_jobs(options.data, options.work)]
    jobs += sorted(
        task_jobs(options.folder, options.data, options.work, options.office, options.pacs),
        key=lambda job: job[2].get("method") != "auto",
    )
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(run, job, options.work, options.device) for job in jobs]
        found = []
        for one in waiting:
            found.append(one.result())
            print(json.dumps(found[-1]), flush=True)
        splits = [Path(str(one["split"])) for one in found if one["data"] == "new user"]
        user = list(pool.map(on_features, [options.folder] * len(splits), splits))
    found = sorted(
        ({key: value for key, value in one.items() if key != "split"} for one in found),
        key=lambda one: str(one["name"]),
    )
    options.out.write_text(tabulate(found, user), encoding="utf-8")
    options.out.with_suffix(".json").write_text(json.dumps({"runs": found, "user": user}, indent=1), encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
