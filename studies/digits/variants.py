"""Compare variants of the loss of `so` with it on the digits: does changing one thing help?

    python studies/digits/variants.py --splits 200-205 --out digits-variants.md [--store FILE.jsonl] [--only NAME,…]

Trains on the development half of the handwritten digits and tests on the rest of that half. The half that `sohot demo`
tests on is never touched, so these comparisons choose nothing that the demo reports. Within a split all variants have
the same images, initial weights and batches, so differences are paired. Every training is recorded in the store (by
default next to the table); a stopped run continues from there. The store identifies variants by name: delete it after
changing one.

Each variant has one setting, the best of the few tried on splits 0-7. The results are in
docs/results/digits-variants.md.
"""

import argparse
import json
import math
import operator
import platform
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from sohot import ScatterAlignment
from sohot.experiments.digit_splits import NUM_CLASSES, SHOTS, draw_split
from sohot.experiments.digit_training import SIGMA, STEPS, fit_digits, new_model, settings_for
from sohot.losses.domain_labels import DomainLabels
from sohot.losses.domain_loss import DomainLoss
from sohot.reporting.statistics import paired_difference, summarise
from sohot.training import Diverged, objective

HALF = "development"
BASELINES = ("so", "s+t")
"""Every variant is compared with these."""

Accuracies = Mapping[str, Mapping[int, float]]
"""In per cent, by variant and split."""


class Plain(DomainLoss):
    """The loss of `so` written out for balanced batches; each class below changes one thing in it.

    Features are divided by the same constant as in `so`, so that σ has the same meaning.
    """

    def __init__(self, sigma: float = SIGMA) -> None:
        super().__init__(NUM_CLASSES, weight=sigma, feature_scale="initial", check_values=False)

    def compute(self, source: Tensor, target: Tensor, labels: DomainLabels) -> Tensor:
        """Add the distances between means and between scatters."""
        blocks = _by_class(source, labels.source), _by_class(target, labels.target)
        return self.means(*blocks) + self.scatters(*blocks)

    def means(self, source: Tensor, target: Tensor) -> Tensor:
        """Compare the means of rows (classes, n, d), class by class."""
        return (source.mean(1) - target.mean(1)).square().sum(1).mean()

    def scatters(self, source: Tensor, target: Tensor) -> Tensor:
        """Compare the scatters, class by class."""
        return (_scatters(source) - _scatters(target)).square().sum((1, 2)).mean()


class Relative(Plain):
    """Distances relative to the sizes compared: shrinking all features no longer lowers the loss."""

    def means(self, source: Tensor, target: Tensor) -> Tensor:
        """Divide by the spread of both domains."""
        spread = sum(_centred(rows).square().sum(2).mean(1) for rows in (source, target))
        return ((source.mean(1) - target.mean(1)).square().sum(1) / (spread + 1e-6)).mean()

    def scatters(self, source: Tensor, target: Tensor) -> Tensor:
        """Divide by the squared norms of both scatters."""
        first, second = _scatters(source), _scatters(target)
        size = first.square().sum((1, 2)) + second.square().sum((1, 2))
        return ((first - second).square().sum((1, 2)) / (size + 1e-6)).mean()


class Pooled(Plain):
    """One scatter per domain, averaged over the classes: three rows say little about the scatter of one class."""

    def scatters(self, source: Tensor, target: Tensor) -> Tensor:
        """Compare the averages."""
        return (_scatters(source).mean(0) - _scatters(target).mean(0)).square().sum()


class Shrunk(Plain):
    """Target scatters moved part of the way to their average over the classes, for the same reason."""

    share = 0.3

    def scatters(self, source: Tensor, target: Tensor) -> Tensor:
        """Compare with the moved scatters."""
        own = _scatters(target)
        return (_scatters(source) - own.lerp(own.mean(0, keepdim=True), self.share)).square().sum((1, 2)).mean()


class Scheduled(Plain):
    """A weight that changes during training: full alignment may help only late, or only early."""

    def __init__(self, strength: Callable[[float], float]) -> None:
        super().__init__()
        self.strength = strength
        self.step = 0

    def compute(self, source: Tensor, target: Tensor, labels: DomainLabels) -> Tensor:
        """Multiply by the strength at this point of the training."""
        self.step += 1
        return self.strength(self.step / STEPS) * super().compute(source, target, labels)


class Rooted(Plain):
    """Orders 2, 3 and 4, with the root of its order taken of each distance: all then grow alike with the features.

    The weights of the orders sum to 1; they are equal or learned.
    """

    orders = (2, 3, 4)

    def __init__(self, sigma: float = SIGMA, learned: bool = False) -> None:
        super().__init__(sigma)
        self.raw = nn.Parameter(torch.zeros(len(self.orders)), requires_grad=learned)

    def scatters(self, source: Tensor, target: Tensor) -> Tensor:
        """Compare through signed sums of powers of the Gram matrix: a tensor of order 4 is too large to build."""
        rows, n, m = torch.cat([_centred(source), _centred(target)], dim=1).double(), source.shape[1], target.shape[1]
        signs = torch.tensor([1 / n] * n + [-1 / m] * m, dtype=rows.dtype)
        gram, pairs = rows @ rows.mT, torch.outer(signs, signs)
        distances = [(pairs * gram**order).sum((1, 2)).clamp(min=0) + 1e-8 for order in self.orders]
        rooted = [one.pow(1 / order).mean() for one, order in zip(distances, self.orders, strict=True)]
        return self.raw.softmax(0).to(source.dtype) @ torch.stack(rooted).to(source.dtype)


class Normed(ScatterAlignment):
    """Features normalised to length 1 for the alignment (not for the classifier), so that they are bounded."""

    def forward(self, source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor, **more: Any) -> Any:
        """Align the directions."""
        return super().forward(normalize(source), source_labels, normalize(target), target_labels, **more)


def _by_class(rows: Tensor, labels: Tensor) -> Tensor:
    """Reshape the rows of a balanced batch to (classes, n, d)."""
    return rows[labels.argsort(stable=True)].view(NUM_CLASSES, -1, rows.shape[1])


def _centred(rows: Tensor) -> Tensor:
    return rows - rows.mean(1, keepdim=True)


def _scatters(rows: Tensor) -> Tensor:
    centred = _centred(rows)
    return centred.mT @ centred / rows.shape[1]


@dataclass(frozen=True)
class Variant:
    """A method as the demo trains it, except for the stated change."""

    about: str
    method: str = "so"
    settings: Mapping[str, Any] = field(default_factory=dict)
    loss: Callable[[], nn.Module] | None = None  # replaces the method's own loss
    network: Mapping[str, str] = field(default_factory=dict)  # for `new_model`


_CLOSED_FORM = partial(ScatterAlignment, NUM_CLASSES, (2,), SIGMA, SIGMA, "closed-form", feature_scale="initial")
_NORMED = partial(Normed, NUM_CLASSES, sigma1=0.1, sigma2=0.1, check_values=False)
_RISING = partial(Scheduled, lambda done: min(1.0, done / 0.3))
_FALLING = partial(Scheduled, lambda done: (1 + math.cos(math.pi * done)) / 2)
_UNBIASED = {"estimator": "unbiased", "feature_scale": "unit"}
_WEAKER = {"sigma": SIGMA / 10}

VARIANTS = {
    "s+t": Variant("nothing aligned", "s+t"),
    "so": Variant("class means and order-2 scatters aligned"),
    "so+zeta": Variant("the same, class weights learned", "so+zeta"),
    "m": Variant("whole domains aligned", "m"),
    "means": Variant("only class means aligned", "means"),
    "variance": Variant("class spread penalised, nothing aligned", "variance"),
    "written-out": Variant("`so` by other formulas, equal up to rounding", loss=Plain),
    "scatter-alone": Variant("scatters but no means, σ 0.001", settings={"sigma2": 0.0}),
    "closed-form": Variant("optimal class weights in each step, α 0.1", loss=_CLOSED_FORM),
    "pooled": Variant("one scatter per domain, σ 0.001", loss=Pooled),
    "shrunk": Variant("target scatters moved 30 % towards their average, σ 0.001", loss=Shrunk),
    "rooted": Variant("roots of orders 2, 3, 4, σ 0.001", loss=Rooted),
    "learned-orders": Variant("the same with learned order weights, σ 0.01", loss=partial(Rooted, 0.01, True)),
    "warm-up": Variant("weight rises over 30 % of the steps to σ 0.001", loss=_RISING),
    "decay": Variant("weight falls from σ 0.001 to 0", loss=_FALLING),
    "after-relu": Variant("features after the ReLU, σ 0.0001", settings=_WEAKER, network={"tap": "after-relu"}),
    "separate": Variant("one stream per domain, σ 0.0001", settings=_WEAKER, network={"streams": "separate"}),
    "normed": Variant("features normalised to length 1, σ 0.1", loss=_NORMED),
    "normed-unbiased": Variant("the same, unbiased estimator", loss=partial(_NORMED, estimator="unbiased")),
    "unbiased": Variant("unbiased estimator, running scale, σ 0.001", settings=_UNBIASED),
    "relative": Variant("distances relative to the sizes compared, σ 0.03", loss=partial(Relative, 0.03)),
}


def aligning_by(loss: nn.Module) -> AbstractContextManager[Any]:
    """Make `fit` train with this loss instead of the method's while the context is open.

    `fit` takes the name of a method, not a loss, so that the settings alone identify a stored run. These variants are
    not meant to become methods, so the one function that builds the loss is replaced temporarily.
    """
    return patch.object(objective, "make_alignment", lambda *_, **__: loss)


def train(variant: Variant, split: int, **changes: Any) -> float:
    """Train on a split of the development half; return the accuracy in per cent, or chance if training diverges."""
    settings = settings_for(variant.method, **{"seed": split, **variant.settings, **changes})
    with nullcontext() if variant.loss is None else aligning_by(variant.loss()):
        try:
            return fit_digits(draw_split(split, half=HALF), settings, new_model(split, **variant.network)).accuracy
        except Diverged:
            return 100 / NUM_CLASSES


def table(found: Accuracies) -> list[str]:
    """Format accuracies (population standard deviation) and paired differences (standard error) as Markdown."""
    titles = ["variant", "", "accuracy", "difference from `so`", "p", "difference from `s+t`", "p", "splits"]
    lines = [f"| {' | '.join(titles)} |", "| --- | --- |" + " ---: |" * 6]
    for name, values in found.items():
        if (whole := summarise(list(values.values()))) is None:
            continue
        cells = [f"`{name}`", VARIANTS[name].about, f"{whole.mean:.1f} ± {whole.std:.1f}"]
        for baseline in BASELINES:
            cells += ["", ""] if name == baseline else _difference(values, found.get(baseline, {}))
        lines.append(f"| {' | '.join([*cells, str(whole.count)])} |")
    return lines


def _difference(values: Mapping[int, float], baseline: Mapping[int, float]) -> list[str]:
    found = paired_difference(values, baseline)
    if found is None:
        return ["–", "–"]
    error = "" if found.std is None else f" ± {found.std / math.sqrt(found.pairs):.1f}"
    p = "–" if found.p_t is None else "< 0.001" if found.p_t < 0.001 else f"{found.p_t:.3f}"
    mean = round(found.mean, 1) + 0.0  # no −0.0
    return [f"{mean:+.1f}{error}".replace("-", "−"), p]


def read_store(store: Path, names: Sequence[str], splits: Sequence[int]) -> dict[str, dict[int, float]]:
    """Return the results already stored for these variants and splits."""
    found: dict[str, dict[int, float]] = {name: {} for name in names}
    for number, line in enumerate(store.read_text(encoding="utf-8").splitlines() if store.exists() else (), start=1):
        try:
            name, split, accuracy = operator.itemgetter("variant", "split", "accuracy")(json.loads(line))
        except (ValueError, KeyError, TypeError):
            raise SystemExit(f"{store}: line {number} is not the record of a training; delete it") from None
        if name in found and split in splits:
            found[name][split] = accuracy
    return found


def train_all(store: Path, names: Sequence[str], splits: Sequence[int]) -> Accuracies:
    """Train what is not in the store yet, split by split, so that a run stopped early has complete comparisons."""
    found = read_store(store, names, splits)
    missing = [(split, name) for split in splits for name in names if split not in found[name]]
    for number, (split, name) in enumerate(missing, start=1):
        accuracy = found[name][split] = train(VARIANTS[name], split)
        with store.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"variant": name, "split": split, "accuracy": accuracy}) + "\n")
        print(f"{number}/{len(missing)} split {split}, {name}: {accuracy:.1f} %", file=sys.stderr, flush=True)
    return found


def numbers(text: str) -> range:
    """Parse a range such as 200-205, or one number."""
    first, _, last = text.partition("-")
    found = range(int(first), int(last or first) + 1)
    if not found:
        raise ValueError
    return found


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; a mistake gives a sentence that names the option."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=numbers, required=True, help="first and last, such as 200-205, or one number")
    parser.add_argument("--out", type=Path, required=True, help="the Markdown file to write")
    parser.add_argument("--store", type=Path, help="file that records every training (default: --out plus .jsonl)")
    parser.add_argument("--only", default=",".join(VARIANTS), help="comma-separated names; so and s+t are always added")
    given = parser.parse_args(arguments)
    wanted = given.only.split(",")
    if unknown := [name for name in wanted if name not in VARIANTS]:
        parser.error(f"--only does not know {', '.join(map(repr, unknown))}; known are {', '.join(VARIANTS)}")
    given.names = [name for name in VARIANTS if name in {*wanted, *BASELINES}]
    given.store = given.store or given.out.with_name(given.out.name + ".jsonl")
    return given


def main() -> None:
    """Train and write the table."""
    given = options()
    torch.set_num_threads(1)  # more do not speed up small networks, and the result must not depend on their number
    for file in (given.out, given.store):
        file.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        "    " + shlex.join(["python", "studies/digits/variants.py", *sys.argv[1:]]),
        "",
        f"Accuracy in % on handwritten digits of the {HALF} half, {SHOTS} labels per class, {STEPS} steps.",
        "",
        *table(train_all(given.store, given.names, given.splits)),
        "",
        f"torch {torch.__version__}, Python {platform.python_version()}, one thread.",
    ]
    given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
