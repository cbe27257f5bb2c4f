"""Compare rules of choosing among settings with a handful of labels per class, on the development tasks.

    python studies/choosing/rules.py FOLDER --out docs/results/choosing-rules.md

FOLDER holds features: see tasks.py. Each rule sees what candidates say about held-out shots (and, where its name says
so, about held-out source rows or unlabelled test rows), and takes one candidate or an average of some. On 16 cores it
takes about six minutes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tasks run side by side

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import softmax
from tasks import Task, command_line, development_tasks

from sohot.heads.fit import fit_stack
from sohot.heads.problem import FeatureProblem
from sohot.methods.settings import HeadSettings
from sohot.selection.choice import CandidateScore, FoldScore, blending_weights, choose
from sohot.selection.held_out import HeldOut

REPEATS = 3
"""Folds are dealt anew so often for "repeated folds"."""
TESTED = 600
"""Test rows of a task, at most."""

CLASSIFIERS = {
    f"λ {decay}, share {share}": HeadSettings(head_decay=decay, target_weight=share)
    for decay in (0.03, 0.01, 0.1)
    for share in (0.5, 0.7, 0.85)
}
"""Nine settings of the classifier; the first is the default."""
ALIGNED = {"default": HeadSettings()} | {
    method: HeadSettings(method=method, sigma1=1.0, sigma2=1.0, steps=100) for method in ("means", "m", "so")
}
GROUPS = {"nine classifiers": CLASSIFIERS, "default and alignments": ALIGNED}


@dataclass(frozen=True)
class Seen:
    """What candidates say: logits of shape (candidates, rows, classes)."""

    held: list[np.ndarray]  # of the shots, for each time that folds were dealt
    shots: np.ndarray
    source: np.ndarray  # of a tenth of the source rows, held out as well
    source_classes: np.ndarray
    test: np.ndarray
    test_classes: np.ndarray


def problem(
    source: tuple[np.ndarray, np.ndarray], target: tuple[np.ndarray, np.ndarray], classes: int
) -> FeatureProblem:
    """Make a problem of rows."""
    rows = [torch.from_numpy(np.asarray(part)) for side in (source, target) for part in side]
    return FeatureProblem(rows[0].float(), rows[1].long(), rows[2].float(), rows[3].long(), classes)


def deal(labels: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
    """Assign shots to folds: in order, or at random."""
    folds = np.zeros(len(labels), dtype=int)
    for c in np.unique(labels):
        rows = np.flatnonzero(labels == c)
        folds[rows] = np.arange(len(rows)) if random is None else random.permutation(len(rows))
    return folds


def look(task: Task, settings: Sequence[HeadSettings]) -> Seen:
    """Train candidates on all folds and on everything."""
    random = np.random.default_rng(0)
    (xs, ys), (xt, yt) = task.source, task.target
    left = random.permutation(len(ys)) % 10 == 0
    dealt = [deal(yt, None if time == 0 else random) for time in range(REPEATS)]
    parts, held = [problem(task.source, task.target, task.classes)], []
    parts.append(problem((xs[~left], ys[~left]), task.target, task.classes))
    for time, folds in enumerate(dealt):
        for number in range(folds.max() + 1):
            parts.append(problem(task.source, (xt[folds != number], yt[folds != number]), task.classes))
            held.append((time, folds == number))
    fits = fit_stack(parts * len(settings), [one for one in settings for _ in parts])
    some = random.permutation(len(task.test[1]))[:TESTED]

    def logits(fit: object, rows: np.ndarray) -> np.ndarray:
        return fit.predict_logits(torch.from_numpy(rows).float()).double().numpy()  # type: ignore[attr-defined]

    count = len(settings)
    shots = [np.zeros((count, len(yt), task.classes)) for _ in range(REPEATS)]
    test, source = [], []
    for place in range(count):
        own = fits[place * len(parts) : (place + 1) * len(parts)]
        test.append(logits(own[0], task.test[0][some]))
        source.append(logits(own[1], xs[left]))
        for fit, (time, rows) in zip(own[2:], held, strict=True):
            shots[time][place, rows] = logits(fit, xt[rows])
    return Seen(shots, yt, np.stack(source), ys[left], np.stack(test), task.test[1][some])


def rules(seen: Seen) -> dict[str, float]:
    """Return the test accuracy of each rule."""
    first = [CandidateScore(str(n), (FoldScore.of(HeldOut(one, seen.shots)),)) for n, one in enumerate(seen.held[0])]
    often = [
        CandidateScore(str(n), tuple(FoldScore.of(HeldOut(held[n], seen.shots)) for held in seen.held))
        for n in range(len(seen.test))
    ]
    rows, count = len(seen.shots), len(seen.test)
    likelihood = np.asarray([one.log_likelihoods for one in first])  # (candidates, rows)
    total, hits = likelihood.sum(1), np.asarray([one.right for one in first])
    temperatures = np.asarray([one.temperature for one in first])[:, None, None]
    calibrated = seen.test / temperatures
    leader = int(total.argmax())

    def accuracy(logits: np.ndarray) -> float:
        return float((logits.argmax(1) == seen.test_classes).mean())

    def within(errors: float) -> list[int]:
        gaps = likelihood[leader] - likelihood
        return [n for n in range(count) if gaps[n].mean() <= errors * gaps[n].std(ddof=1) / rows**0.5 + 1e-12]

    def mixed(weights: np.ndarray) -> np.ndarray:
        return np.tensordot(weights, calibrated, 1)

    shares = np.full(
        count, 1 / count
    )  # stacking: the mixture that makes held-out labels most likely, with a weak prior
    for _ in range(100):
        parts = shares[:, None] * np.exp(likelihood)
        shares = ((parts / parts.sum(0)).sum(1) + 5 / count) / (rows + 5)
    of_source = np.asarray([HeldOut(one, seen.source_classes).log_likelihoods().mean() for one in seen.source])
    pool = softmax(calibrated, axis=2)
    mean = pool.mean(1)
    information = (pool * np.log(pool + 1e-12)).sum(2).mean(1) - (mean * np.log(mean + 1e-12)).sum(1)
    agreement = (pool.argmax(2) == pool.mean(0).argmax(1)).mean(1)
    top = np.argsort(-total)[:5]
    clear = {f"log-likelihood, if {n} standard errors above the default": n for n in (1, 2)}
    gains = likelihood[leader] - likelihood[0]
    lead = gains.mean() / (gains.std(ddof=1) / rows**0.5 + 1e-12)
    return {
        "default": accuracy(seen.test[0]),
        "most hits": accuracy(seen.test[int(hits.argmax())]),
        "log-likelihood": accuracy(seen.test[leader]),
        f"log-likelihood, folds dealt {REPEATS} times": accuracy(
            seen.test[int(np.argmax([one.log_likelihoods.sum() for one in often]))]
        ),
        "the first within one standard error of the best": accuracy(seen.test[within(1.0)[0]]),
        **{name: accuracy(seen.test[leader if lead > n else 0]) for name, n in clear.items()},
        "`sohot.selection.choose`": accuracy(seen.test[choose(first).place]),
        "average by likelihood (`blending_weights`)": accuracy(mixed(np.asarray(blending_weights(first)))),
        f"average by likelihood, folds dealt {REPEATS} times": accuracy(
            mixed(softmax([one.log_likelihoods.sum() / REPEATS for one in often]))
        ),
        "average of the best five": accuracy(calibrated[top].mean(0)),
        "average of those within one standard error": accuracy(calibrated[within(1.0)].mean(0)),
        "average of all": accuracy(calibrated.mean(0)),
        "stacking": accuracy(np.tensordot(shares, pool, 1)),
        "log-likelihood of shots and source rows": accuracy(seen.test[int((total / rows + of_source).argmax())]),
        "pool: information": accuracy(seen.test[int(information.argmax())]),
        "pool: log-likelihood and information": accuracy(seen.test[int((total / rows + information).argmax())]),
        "pool: agreement with the average": accuracy(seen.test[int(agreement.argmax())]),
        "the best on the test (no rule can know it)": max(map(accuracy, seen.test)),
    }


def compute(task: Task) -> dict[str, dict[str, float]]:
    """Apply all rules to all groups of candidates on one task."""
    torch.set_num_threads(1)
    return {group: rules(look(task, list(candidates.values()))) for group, candidates in GROUPS.items()}


def main() -> None:
    """Compute all tasks side by side, and write the tables."""
    options = command_line(__doc__).parse_args()
    tasks = development_tasks(options.folder)
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(compute, tasks))
    sets = list(dict.fromkeys(task.data for task in tasks))
    lines = []
    for group, candidates in GROUPS.items():
        own = {data: [one[group] for task, one in zip(tasks, found, strict=True) if task.data == data] for data in sets}
        counted = " | ".join(f"{data} ({len(own[data])})" for data in sets)
        lines += [f"## {group.capitalize()} ({len(candidates)} candidates)", "", f"| rule | {counted} | mean |"]
        lines.append("| --- |" + " --- |" * (len(sets) + 1))
        for rule in found[0][group]:
            gains = [np.asarray([100 * (one[rule] - one["default"]) for one in own[data]]) for data in sets]
            cells = [f"{gain.mean():+.2f} ± {gain.std(ddof=1) / len(gain) ** 0.5:.2f}" for gain in gains]
            if rule == "default":
                cells = [f"{100 * np.mean([one[rule] for one in own[data]]):.2f}" for data in sets]
                lines.append(f"| default | {' | '.join(cells)} | |")
                continue
            lines.append(f"| {rule} | {' | '.join(cells)} | {np.mean([gain.mean() for gain in gains]):+.2f} |")
        lines.append("")
    options.out.write_text("\n".join(lines), encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
