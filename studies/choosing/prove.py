"""Compare what users would get with plain classifiers, on tasks that had no part in finding the rule of choosing.

    python studies/choosing/prove.py FOLDER --out docs/results/choosing-proof.md

FOLDER holds features: see tasks.py. On 16 cores it takes about four minutes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tasks run side by side

import csv
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tasks import Task, command_line, proof_tasks

from sohot import SoHoTClassifier, SoHoTClassifierCV
from sohot.heads.baselines import baseline
from sohot.selection.answers import Answers
from sohot.selection.held_out import HeldOut

REFERENCES = ("logistic-both", "logistic ½")
OURS = ("SoHoTClassifier", "SoHoTClassifierCV")
NAMES = (*OURS, *REFERENCES, "class-mean-both", "lda-both")


def half_weights(domains: np.ndarray) -> np.ndarray:
    """Give both domains the same total weight; the mean weight of a row is 1."""
    source = domains > 0
    return np.where(source, len(source) / 2 / source.sum(), len(source) / 2 / (~source).sum())


def compute(task: Task) -> list[dict[str, object]]:
    """Train everything on one task."""
    torch.set_num_threads(1)
    x, y, domains = task.joined()
    rows: list[dict[str, object]] = []
    for name in NAMES:
        began = time.perf_counter()
        found: dict[str, object] = {"data": task.data, "task": task.name, "classifier": name}
        if name in OURS:
            model = SoHoTClassifier() if name == OURS[0] else SoHoTClassifierCV()
            model.fit(x, y, sample_domain=domains)
            log_shares = model.predict_log_proba(task.test[0])
            answers = HeldOut(log_shares, task.test[1])
            found["ece_after"] = Answers.of(answers).calibration_error()
            found["ece_before"] = Answers.of(answers, 1 / model.temperature_).calibration_error()
            found["temperature"] = model.temperature_
        elif name == "logistic ½":
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
            model.fit(x, y, logisticregression__sample_weight=half_weights(domains))
        else:
            model = baseline(name).fit(x, y, sample_domain=domains)
        found["accuracy"] = float(np.mean(model.predict(task.test[0]) == task.test[1]))
        found["seconds"] = time.perf_counter() - began
        rows.append(found)
    return rows


def interval(differences: np.ndarray) -> str:
    """Mean of paired differences in points, with its 95 % interval."""
    mean, count = 100 * differences.mean(), len(differences)
    half = 100 * stats.t.ppf(0.975, count - 1) * differences.std(ddof=1) / count**0.5
    return f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]"


def tabulate(rows: list[dict[str, object]]) -> str:
    """Write the tables."""
    sets = list(dict.fromkeys(str(row["data"]) for row in rows))

    def column(name: str, data: str | None, key: str = "accuracy") -> np.ndarray:
        return np.asarray(
            [row[key] for row in rows if row["classifier"] == name and data in (None, row["data"])], float
        )

    counts = {data: len(column(OURS[0], data)) for data in sets}
    lines = [f"| | {' | '.join(f'{data} ({counts[data]})' for data in sets)} | all ({sum(counts.values())}) |"]
    lines.append("| --- |" + " --- |" * (len(sets) + 1))
    for name in NAMES:
        cells = [f"{100 * column(name, data).mean():.2f}" for data in (*sets, None)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "Paired differences in points, with 95 % intervals:", ""]
    lines += [f"| | {' | '.join(sets)} | all |", "| --- |" + " --- |" * (len(sets) + 1)]
    for name in OURS:
        for other in REFERENCES:
            cells = [interval(column(name, data) - column(other, data)) for data in (*sets, None)]
            lines.append(f"| {name} − {other} | {' | '.join(cells)} |")
    cells = [interval(column(OURS[1], data) - column(OURS[0], data)) for data in (*sets, None)]
    lines.append(f"| {OURS[1]} − {OURS[0]} | {' | '.join(cells)} |")
    lines += ["", "Expected calibration error of the test rows in %, before → after calibration by held-out shots:", ""]
    lines += [f"| | {' | '.join(sets)} | all |", "| --- |" + " --- |" * (len(sets) + 1)]
    for name in OURS:
        pairs = [(column(name, data, "ece_before"), column(name, data, "ece_after")) for data in (*sets, None)]
        lines.append(f"| {name} | {' | '.join(f'{100 * a.mean():.1f} → {100 * b.mean():.1f}' for a, b in pairs)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compute all tasks side by side, and write the tables and a CSV file of all numbers."""
    options = command_line(__doc__).parse_args()
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        rows = [row for found in pool.map(compute, proof_tasks(options.folder)) for row in found]
    options.out.write_text(tabulate(rows), encoding="utf-8")
    with options.out.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
