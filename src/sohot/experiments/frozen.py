"""Cells that train on frozen features: many at once, with their settings chosen in the same stacks."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import torch
from torch import Tensor

from .._device import choose_device
from ..data.labelled import LabelledImages, Progress
from ..data.pools import POOL
from ..data.protocols.cross_validation import few_shot_folds, hold_out
from ..data.protocols.split import Split
from ..heads.fit import fit_stack
from ..heads.problem import FeatureProblem
from ..heads.result import StackedFit
from ..methods.settings import HeadSettings
from ..runs.trunk_folder import TrunkFolder
from ..selection.candidates import Candidate
from ..selection.choice import AllFailed, CandidateScore, FoldScore, choose, tabulate
from ..selection.held_out import HeldOut
from ..training.evaluation import evaluate
from .cell import Cell
from .cell_training import Workplace, draw_split
from .cell_trunks import trunks_of
from .engines import Outcome, Work
from .frozen_settings import frozen_candidates, head_settings
from .result import CellResult, ChosenSettings
from .run_cell import curve_steps

TOGETHER = 30
"""Cells that are claimed, trained and stored together: the most that a killed runner loses."""
STAGE = "training on frozen features"


class FrozenEngine:
    """Trains the heads of many cells together, in the calling process.

    Args:
        where: The folders of images and features, and the device.
        progress: Receives the number of fits done.
    """

    def __init__(self, where: Workplace, progress: Progress | None = None) -> None:
        self.where, self.progress = where, progress
        self._networks: dict[str, _Features] = {}

    def run(self, cells: Iterator[Cell], work: Work) -> Iterator[Outcome]:  # noqa: ARG002 - an engine's signature
        """Compute cells; see `sohot.experiments.engines.Engine`."""
        while claimed := list(islice(cells, TOGETHER)):
            yield from self._compute(claimed)

    def _compute(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        ready, failed = [], []
        for cell in cells:
            try:
                ready.append(self._task(cell))
            except Exception as error:  # one cell's failure does not affect the others
                failed.append(Outcome(cell, None, f"{type(error).__name__}: {error}", 0.0))
        yield from failed
        began = time.perf_counter()
        self._choose(ready)
        chosen = time.perf_counter()
        fits = self._fit([task.problem for task in ready], [task.settings() for task in ready])
        trained = time.perf_counter()
        shares = {"select": (chosen - began) / max(len(ready), 1), "train": (trained - chosen) / max(len(ready), 1)}
        for task, fit in zip(ready, fits, strict=True):
            if fit.diverged:
                advice = "training diverged: lower lr, sigma1, sigma2 or loss_weight"
                yield Outcome(task.cell, None, advice, sum(shares.values()))
            else:
                yield Outcome(task.cell, task.result(fit, shares), None, sum(shares.values()))

    def _choose(self, tasks: Sequence["_Task"]) -> None:
        """Score every candidate of every cell on its folds, all in one call."""
        pairs = [(one, fold) for task in tasks for one in task.tried for fold in task.folds]
        fits = self._fit([fold.problem for _, fold in pairs], [one.settings for one, _ in pairs])
        scores = (fold.score(fit) for (_, fold), fit in zip(pairs, fits, strict=True))
        for task in tasks:
            task.scores = tabulate([one.name for one in task.tried], len(task.folds), scores)

    def _fit(self, problems: list[FeatureProblem], settings: list[HeadSettings]) -> list[StackedFit]:
        if not problems:
            return []
        report = None if self.progress is None else self._report
        place = choose_device(self.where.device)
        return fit_stack(problems, settings, device="cpu" if place.type == "mps" else place, on_progress=report)

    def _report(self, done: int, of: int) -> None:
        if self.progress is not None:
            self.progress(STAGE, done, of)

    def _task(self, cell: Cell) -> "_Task":
        split = draw_split(cell, self.where)
        key, trunks = trunks_of(cell, len(split.classes), self.where)
        features = self._networks.setdefault(key, _Features(trunks))
        sides, target = split.sides, split.sides["target_train"]
        tests: list[tuple[LabelledImages, LabelledImages]] = []
        if cell.select == "cv":
            tests = few_shot_folds(target)
        elif cell.select == "validation":
            tests = [(target, sides["validation"])]
        folds = [
            _FeatureFold(features.problem(hold_out(split, rest, held)), *features.test(held)) for rest, held in tests
        ]
        tried = frozen_candidates(cell.method, cell.settings, cell.search["space"]) if folds else []
        return _Task(cell, split, features.problem(sides), features.test(sides["target_test"]), folds, tried)


class _Features:
    """Features of images of both domains, each in one tensor."""

    def __init__(self, trunks: dict[str, TrunkFolder]) -> None:
        self.trunks = trunks
        whole = {id(one): one.whole() for one in trunks.values()}
        self.tensors = {domain: whole[id(one)] for domain, one in trunks.items()}

    def rows(self, domain: str, images: LabelledImages) -> Tensor:
        found = self.trunks[domain].rows(images)
        if found is None:
            raise ValueError("features of some images are missing: have files changed since the run began?")
        return found

    def problem(self, sides: Mapping[str, LabelledImages]) -> FeatureProblem:
        source, target, pool = sides["source_train"], sides["target_train"], sides.get(POOL)
        return FeatureProblem(
            self.tensors["source"],
            torch.tensor(source.labels),
            self.tensors["target"],
            torch.tensor(target.labels),
            len(target.classes),
            self.rows("source", source),
            self.rows("target", target),
            None if pool is None else self.tensors["target"][self.rows("target", pool)],
        )

    def test(self, images: LabelledImages) -> tuple[Tensor, Tensor]:
        return self.tensors["target"][self.rows("target", images)], torch.tensor(images.labels)


@dataclass
class _FeatureFold:
    """Rows to train on and rows to score on."""

    problem: FeatureProblem
    held: Tensor
    labels: Tensor

    def score(self, fit: StackedFit) -> FoldScore:
        if fit.diverged:
            return FoldScore(0, len(self.labels), "training diverged")
        return FoldScore.of(HeldOut(fit.predict_logits(self.held).cpu().numpy(), self.labels.numpy()))


@dataclass
class _Task:
    """A cell with its training and test data."""

    cell: Cell
    split: Split
    problem: FeatureProblem
    test: tuple[Tensor, Tensor]
    folds: list[_FeatureFold]
    tried: list[Candidate[HeadSettings]]
    scores: list[CandidateScore] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The cell's own settings, which come first, unless the labels clearly speak for others."""
        try:
            return choose(self.scores).place
        except AllFailed:  # the whole may train even if its parts did not
            return 0

    def settings(self) -> HeadSettings:
        if not self.tried:
            return head_settings(self.cell.method, self.cell.settings)
        return self.tried[self.best].settings

    def result(self, fit: StackedFit, seconds: dict[str, float]) -> CellResult:
        """Return the result of a cell, as `run_cell` does."""
        began = time.perf_counter()
        features, labels = self.test
        accuracy = evaluate(fit.predict_logits(features).cpu(), labels, self.split.classes)
        zeta = None if fit.zeta is None else {name: values.tolist() for name, values in fit.zeta.items()}
        steps = curve_steps(len(fit.history["loss"]))
        curve = {name: values[steps].tolist() for name, values in fit.history.items()}
        chosen = None
        if self.tried:
            score = self.scores[self.best].accuracy or 0.0
            chosen = ChosenSettings(dict(self.tried[self.best].options), score, len(self.tried))
        source, target = self.problem.sizes
        pool = {} if self.problem.pool is None else {"pool": len(self.problem.pool)}
        return CellResult(
            accuracy=accuracy,
            zeta=zeta,
            curve={"step": [step + 1 for step in steps], **curve},
            chosen=chosen,
            seconds={"features": 0.0, **seconds, "test": time.perf_counter() - began},
            steps=len(fit.history["loss"]) if fit.settings.trains_network() else 0,
            sizes={"source": source, "target": target, "test": len(labels), **pool},
            notes=list(self.split.notes),
        )
